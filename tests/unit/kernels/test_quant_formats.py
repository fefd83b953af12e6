"""Every tensor format decodes as the ``gguf`` package does, and to answers worked by hand."""

from __future__ import annotations

import subprocess
import sys
from struct import pack

import gguf
import numpy as np
import pytest
import torch
from gguf import quants

from kernels.checks import KernelShapeError
from kernels.quant import FORMATS, codebooks
from kernels.quant.facts import FACTS, FACTS_BY_TYPE, FOREIGN_NAMES

_NUMPY = {"f64": "<f8", "i8": "<i1", "i16": "<i2", "i32": "<i4", "i64": "<i8"}
_WITHOUT_ORACLE = {*_NUMPY, "q1_0"}
_WITH_ORACLE = [f.name for f in FACTS_BY_TYPE.values() if f.name not in _WITHOUT_ORACLE]


def _decode(name: str, raw: bytes) -> list[float]:
    block = torch.frombuffer(bytearray(raw), dtype=torch.uint8).unsqueeze(0)
    values: list[float] = FORMATS[name].decode(block)[0].tolist()
    return values


def _random_rows(
    name: str, rows: int, blocks: int
) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    random = np.random.default_rng([rows, blocks, FORMATS[name].type_id or 0])
    return random.integers(0, 256, (rows, blocks * FORMATS[name].block_bytes), dtype=np.uint8)


@pytest.mark.parametrize("name", _WITH_ORACLE)
@pytest.mark.parametrize(("rows", "blocks"), [(1, 1), (9, 3)])
def test_random_blocks_decode_bit_for_bit_like_the_gguf_package(
    name: str, rows: int, blocks: int
) -> None:
    raw = _random_rows(name, rows, blocks)
    with np.errstate(all="ignore"):
        wanted = quants.dequantize(raw, gguf.GGMLQuantizationType(FORMATS[name].type_id or 0))
    found = FORMATS[name].decode(torch.from_numpy(raw)).numpy()
    assert found.dtype == np.float32
    assert found.shape == wanted.shape
    nan = np.isnan(wanted)
    assert np.array_equal(nan, np.isnan(found))
    assert np.array_equal(wanted.view(np.int32)[~nan], found.view(np.int32)[~nan])


@pytest.mark.parametrize("name", sorted(_NUMPY))
def test_plain_numbers_decode_like_numpy(name: str) -> None:
    raw = _random_rows(name, 3, 17)
    with np.errstate(all="ignore"):
        wanted = raw.view(_NUMPY[name]).astype(np.float32)
    found = FORMATS[name].decode(torch.from_numpy(raw)).numpy()
    np.testing.assert_array_equal(found, wanted)


def test_one_bit_quants_are_plus_or_minus_the_scale() -> None:
    values = _decode("q1_0", pack("<e", 0.5) + bytes([0b0000_0101]) + bytes(15))
    assert values[:4] == [0.5, -0.5, 0.5, -0.5]
    assert values[4:] == [-0.5] * 124


@pytest.mark.parametrize("name", [n for n in FORMATS if n not in ("f64", "i32", "i64")])
def test_a_changed_byte_changes_some_element(name: str) -> None:
    """The control: every byte of a block is read. Eight blocks, as one may have a NaN scale."""
    size = FORMATS[name].block_bytes
    raw = _random_rows(name, 8, 1)
    blocks = np.repeat(raw[:, np.newaxis], size, axis=1)
    blocks[:, np.arange(size), np.arange(size)] ^= 0x15
    decoded = FORMATS[name].decode(torch.from_numpy(blocks.reshape(-1, size))).numpy()
    plain = FORMATS[name].decode(torch.from_numpy(raw)).numpy()
    differs = decoded.reshape(8, size, -1).view(np.int32) != plain[:, np.newaxis].view(np.int32)
    changed = differs.any(axis=(0, 2))
    assert changed.all(), np.flatnonzero(~changed)


@pytest.mark.parametrize("name", FORMATS)
def test_strided_rows_decode_like_contiguous_ones(name: str) -> None:
    raw = torch.from_numpy(_random_rows(name, 6, 2))
    wide = torch.zeros(6, raw.shape[1] + 3, dtype=torch.uint8)
    wide[:, 1 : 1 + raw.shape[1]] = raw
    strided = wide[::2, 1 : 1 + raw.shape[1]]
    wanted = FORMATS[name].decode(raw[::2].contiguous()).view(torch.int32)
    assert torch.equal(FORMATS[name].decode(strided).view(torch.int32), wanted)


@pytest.mark.parametrize("limit", [1, 64, 96, 200])
def test_slices_of_rows_join_without_a_seam(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    raw = torch.from_numpy(_random_rows("q8_0", 7, 3))
    whole = FORMATS["q8_0"].decode(raw).view(torch.int32)
    monkeypatch.setattr("kernels.quant.decode.SLICE_ELEMENTS", limit)
    assert torch.equal(FORMATS["q8_0"].decode(raw).view(torch.int32), whole)


@pytest.mark.parametrize("shape", [(0, 34), (3, 0), (0, 0)])
def test_no_rows_and_empty_rows_decode_to_nothing(shape: tuple[int, int]) -> None:
    found = FORMATS["q8_0"].decode(torch.zeros(shape, dtype=torch.uint8))
    assert found.shape == (shape[0], shape[1] // 34 * 32)


def test_q4_0_by_hand() -> None:
    values = _decode("q4_0", pack("<e", 0.5) + bytes([0x1F, *[0x88] * 15]))
    assert values == [3.5] + [0.0] * 15 + [-3.5] + [0.0] * 15


def test_q4_1_by_hand() -> None:
    values = _decode("q4_1", pack("<ee", 0.25, -1.0) + bytes([0xF4, *[0x40] * 15]))
    assert values == [0.0] + [-1.0] * 15 + [2.75] + [0.0] * 15


def test_q5_0_by_hand() -> None:
    raw = pack("<eI", 2.0, 1 | 1 << 31) + bytes([0x03, *[0] * 14, 0xF0])
    values = _decode("q5_0", raw)
    assert values[0] == 2.0 * (3 + 16 - 16)
    assert values[31] == 2.0 * (15 + 16 - 16)
    assert set(values[1:31]) == {-32.0}


def test_q5_1_by_hand() -> None:
    raw = pack("<eeI", 1.0, 0.5, 1 << 16) + bytes([0x21, *[0] * 15])
    values = _decode("q5_1", raw)
    assert (values[0], values[16], values[1]) == (1.5, 18.5, 0.5)


def test_q8_0_by_hand() -> None:
    values = _decode("q8_0", pack("<e32b", 0.125, -128, 127, *[8] * 30))
    assert values == [-16.0, 15.875] + [1.0] * 30


def test_q4_k_by_hand() -> None:
    """Scale and minimum of sub-blocks 0 and 7, whose six bits lie in different places."""
    packed = bytearray(12)
    packed[0], packed[4] = 5, 3
    packed[3], packed[7] = 0b1000_0000, 0b0100_0000
    packed[11] = 0x21
    quants_ = bytearray(128)
    quants_[0], quants_[127] = 0x07, 0xE0
    values = _decode("q4_k", pack("<ee", 0.5, 0.25) + bytes(packed) + bytes(quants_))
    assert values[0] == 0.5 * 5 * 7 - 0.25 * 3
    assert values[1] == -0.75
    assert values[255] == 0.5 * (2 << 4 | 1) * 14 - 0.25 * (1 << 4 | 2)
    assert values[32:224] == [0.0] * 192


def test_q5_k_by_hand() -> None:
    packed = bytes([2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0])
    high, low = bytearray(32), bytearray(128)
    high[31], low[31] = 1, 9
    values = _decode("q5_k", pack("<ee", 1.0, 1.0) + packed + bytes(high) + bytes(low))
    assert values[31] == 2 * (16 + 9) - 1
    assert values[:31] == [-1.0] * 31


def test_q6_k_by_hand() -> None:
    low, high = bytearray(128), bytearray(64)
    scales = [0] * 16
    scales[0], scales[15] = 3, -2
    low[0] = 0x05
    high[0] = 0b10
    low[127], high[63] = 0xF0, 0b1100_0000
    raw = bytes(low) + bytes(high) + pack("<16be", *scales, 0.5)
    values = _decode("q6_k", raw)
    assert values[0] == 0.5 * 3 * (5 + 32 - 32)
    assert values[255] == 0.5 * -2 * (15 + 48 - 32)
    assert values[1] == 0.5 * 3 * -32


def test_q2_k_by_hand() -> None:
    raw = bytes([0x21, *[0] * 15]) + bytes([0b11, *[0] * 63]) + pack("<ee", 0.5, 2.0)
    values = _decode("q2_k", raw)
    assert values[0] == 0.5 * 1 * 3 - 2.0 * 2
    assert values[1:16] == [-4.0] * 15
    assert values[16:] == [0.0] * 240


def test_q3_k_by_hand() -> None:
    """Scale 0 is 33 - 32 = 1, all others are 0 - 32; a set mask bit lifts q by four."""
    scales = bytes([0x01, *[0] * 7, 0b10, 0, 0, 0])
    raw = bytes([1, *[0] * 31]) + bytes([0b10, *[0] * 63]) + scales + pack("<e", 1.0)
    values = _decode("q3_k", raw)
    assert values[0] == 1.0 * (33 - 32) * 2
    assert values[1] == 1.0 * (33 - 32) * -4
    assert values[16] == 1.0 * -32 * -4


def test_iq4_nl_by_hand() -> None:
    values = _decode("iq4_nl", pack("<e", 1.0) + bytes([0xF0, *[0x88] * 15]))
    assert values == [-127.0] + [1.0] * 15 + [113.0] + [1.0] * 15


def test_mxfp4_by_hand() -> None:
    """Exponent 128 is 2; nibble 5 is 3.0 and nibble 15 is -6.0."""
    values = _decode("mxfp4", bytes([128, 0xF5, *[0] * 15]))
    assert values == [6.0] + [0.0] * 15 + [-12.0] + [0.0] * 15


def test_nvfp4_by_hand() -> None:
    """E4M3 0x38 is 1.0 and 0x40 is 2.0; nibble 7 is 6.0."""
    raw = bytes([0x38, 0x40, 0, 0]) + bytes([0x17, *[0] * 7, 0x02, *[0] * 23])
    values = _decode("nvfp4", raw)
    assert (values[0], values[8], values[16]) == (6.0, 0.5, 2.0)


def test_bf16_is_the_upper_half_of_a_float32() -> None:
    assert _decode("bf16", bytes([0x80, 0x3F, 0x49, 0xC0])) == [1.0, -3.140625]


def test_sizes_and_type_numbers_are_those_of_the_gguf_package() -> None:
    activations = {gguf.GGMLQuantizationType.Q8_1, gguf.GGMLQuantizationType.Q8_K}
    wanted = {
        kind.name.lower(): (int(kind), *gguf.GGML_QUANT_SIZES[kind])
        for kind in gguf.GGMLQuantizationType
        if kind not in activations
    }
    found = {
        name: (facts.type_id, facts.block_elements, facts.block_bytes)
        for name, facts in FACTS.items()
        if facts.type_id is not None
    }
    assert found == wanted
    assert len(FACTS_BY_TYPE) == len(found)
    assert not FACTS_BY_TYPE.keys() & FOREIGN_NAMES.keys()


@pytest.mark.parametrize("name", ["iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq1_s"])
def test_lattices_are_those_of_the_gguf_package(name: str) -> None:
    reference = getattr(quants, name.upper())
    reference.init_grid()
    ours = getattr(codebooks, "IQ1" if name == "iq1_s" else name.upper())
    table = ours.table(torch.device("cpu")).numpy()
    np.testing.assert_array_equal(table, reference.grid.reshape(reference.grid_shape))


def test_sign_patterns_are_those_of_the_gguf_package() -> None:
    signs = codebooks.even_signs(torch.device("cpu"))
    assert bytes(signs.tolist()) == quants.IQ2_XXS.ksigns


@pytest.mark.parametrize(
    "raw",
    [
        torch.zeros(1, 17, dtype=torch.uint8),
        torch.zeros(18, dtype=torch.uint8),
        torch.zeros(1, 18, dtype=torch.int8),
    ],
    ids=["half a block", "no rows", "signed bytes"],
)
def test_what_is_no_rows_of_whole_blocks_is_refused(raw: torch.Tensor) -> None:
    with pytest.raises(KernelShapeError):
        FORMATS["q4_0"].decode(raw)


def test_the_table_and_its_facts_load_no_torch() -> None:
    code = (
        "import sys, kernels.quant, kernels.quant.facts; "
        "assert not {'torch', 'numpy', 'gguf'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
