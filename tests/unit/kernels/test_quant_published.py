"""Formats of published and MLX checkpoints decode as mlx does, and to answers worked by hand."""

from __future__ import annotations

from fractions import Fraction

import mlx.core as mx
import numpy as np
import pytest
import torch

from kernels.quant import FORMATS
from kernels.quant.facts import FACTS_BY_TYPE

WIDTHS = (2, 3, 4, 5, 6, 8)


def decoded(name: str, raw: bytes) -> list[float]:
    rows = torch.frombuffer(bytearray(raw), dtype=torch.uint8).unsqueeze(0)
    values: list[float] = FORMATS[name].decode(rows)[0].tolist()
    return values


def e4m3(byte: int) -> float:
    """The value by its definition, in exact fractions."""
    exponent, fraction = byte >> 3 & 15, byte & 7
    if byte & 127 == 127:
        return float("nan")
    size = Fraction(fraction, 8) + (exponent > 0)
    value = float(size * Fraction(2) ** (max(exponent, 1) - 7))
    return -value if byte >> 7 else value


@pytest.mark.parametrize("width", WIDTHS)
def test_codes_are_the_bits_of_one_little_endian_number(width: int) -> None:
    """Against a whole number of Python, from which the codes are cut lowest first."""
    raw = np.random.default_rng(width).integers(0, 256, (5, 96 * width // 8), dtype=np.uint8)
    found = FORMATS[f"mlx{width}"].decode(torch.from_numpy(raw)).numpy()
    for row, values in zip(raw, found, strict=True):
        number = int.from_bytes(row.tobytes(), "little")
        assert values.tolist() == [number >> width * i & (1 << width) - 1 for i in range(96)]


@pytest.mark.parametrize("width", WIDTHS)
def test_codes_are_those_that_mlx_multiplies(width: int) -> None:
    """With scale 1 and minimum 0 mlx's own decoding gives its codes, which float32 holds."""
    words = np.random.default_rng(width).integers(0, 1 << 32, (3, 4 * width), dtype=np.uint32)
    ones, zeros = mx.ones((3, 1)), mx.zeros((3, 1))
    wanted = mx.dequantize(mx.array(words), ones, zeros, group_size=128, bits=width)
    found = FORMATS[f"mlx{width}"].decode(torch.from_numpy(words.view(np.uint8)))
    assert np.array_equal(found.numpy(), np.array(wanted))


def test_every_f8_e4m3_is_its_definition() -> None:
    found = decoded("f8_e4m3", bytes(range(256)))
    wanted = [e4m3(byte) for byte in range(256)]
    assert [repr(value) for value in found] == [repr(value) for value in wanted]


def test_every_e8m0_is_a_power_of_two() -> None:
    found = decoded("e8m0", bytes(range(256)))
    assert found[:255] == [2.0 ** (byte - 127) for byte in range(255)]
    assert found[255] != found[255]


def test_e2m1_holds_the_low_nibble_first() -> None:
    found = decoded("e2m1", bytes([0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE]))
    sizes = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    assert found == sizes + [-size for size in sizes]


@pytest.mark.parametrize(
    ("mode", "codes", "scales", "group"),
    [
        ("mxfp4", "e2m1", "e8m0", 32),
        ("mxfp8", "f8_e4m3", "e8m0", 32),
        ("nvfp4", "e2m1", "f8_e4m3", 16),
    ],
)
def test_float_modes_of_mlx_are_codes_times_scales(
    mode: str, codes: str, scales: str, group: int
) -> None:
    values = mx.random.normal((4, 96), key=mx.random.key(5)) * 3
    packed, shared = list(mx.quantize(values, group_size=group, mode=mode))[:2]
    wanted = mx.dequantize(packed, shared, group_size=group, mode=mode, dtype=mx.float32)
    left = FORMATS[codes].decode(torch.from_numpy(np.array(packed).view(np.uint8)))
    right = FORMATS[scales].decode(torch.from_numpy(np.array(shared)))
    found = left.view(4, -1, group) * right.unsqueeze(-1)
    assert np.array_equal(found.view(4, 96).numpy(), np.array(wanted))


def test_no_gguf_number_stands_for_them() -> None:
    own = {name for name, facts in FORMATS.items() if facts.type_id is None}
    assert own == {*(f"mlx{width}" for width in WIDTHS), "e2m1", "e8m0", "f8_e4m3"}
    assert not own & {facts.name for facts in FACTS_BY_TYPE.values()}
