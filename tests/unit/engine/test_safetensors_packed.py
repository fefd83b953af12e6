"""Packed weights: MLX's modes and eight-bit floats give the values that their definition says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from engine.checkpoint.open import open_checkpoint
from engine.checkpoint.source import Dialect, TensorFacts
from engine.errors import CheckpointError, UnsupportedFormat
from engine.forward.weights import Weights
from engine.models.spec import Linear
from tests.fuzz.gguf_mutants import peak_kb, start_peak
from tests.helpers.tiny_safetensors import CONFIG, Stored, bf16, write_folder

Floats = NDArray[np.float32]
WIDTHS = (2, 3, 4, 5, 6, 8)
BF16_STEP = 2.0**-8
SLABS = 48 << 20
"""Room for one slab's codes, words and scales, of 20 bytes an element."""


def quantized(values: mx.array, **how: Any) -> list[Any]:
    """Parts of a packed weight as numpy arrays, bf16 as ``Stored``."""
    return [
        bf16(np.array(part.astype(mx.float32))) if part.dtype == mx.bfloat16 else np.array(part)
        for part in mx.quantize(values, **how)
    ]


def module(name: str, parts: list[Any]) -> dict[str, Any]:
    return dict(zip((f"{name}.weight", f"{name}.scales", f"{name}.biases"), parts, strict=False))


def mlx_config(bits: int, group: int, **modules: Any) -> dict[str, Any]:
    return CONFIG | {"quantization": {"bits": bits, "group_size": group, **modules}}


def unpacked(words: NDArray[np.uint32], bits: int) -> NDArray[np.int64]:
    """Codes of each row, cut out of one whole number a row."""
    count = words.shape[-1] * 32 // bits
    rows = [int.from_bytes(row.astype("<u4").tobytes(), "little") for row in words]
    return np.array([[row >> bits * i & (1 << bits) - 1 for i in range(count)] for row in rows])


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("group", [32, 64, 128])
def test_affine_values_are_scale_times_code_plus_minimum(
    tmp_path: Path, bits: int, group: int
) -> None:
    """Against exact arithmetic in float64, rounded twice; and what mlx says in bfloat16."""
    values = mx.random.normal((9, 384), key=mx.random.key(bits)).astype(mx.bfloat16)
    parts = mx.quantize(values, group_size=group, bits=bits)
    packed = quantized(values, group_size=group, bits=bits)
    config = mlx_config(bits, group)
    with open_checkpoint(write_folder(tmp_path / "x", config, module("m", packed))) as source:
        facts = source.tensors["m.weight"]
        assert (source.dialect, facts.format) == (Dialect.MLX, f"mlx{bits}")
        assert (facts.shape, facts.block) == ((9, 384), (1, group))
        assert list(source.tensors) == ["m.weight"]
        assert facts.stored_bytes == packed[0].nbytes + 2 * len(packed[1].data)
        found = Weights(source).whole("m.weight").numpy()
    codes = unpacked(packed[0], bits).astype(np.float32)
    scales, minima = (
        np.repeat(np.array(part.astype(mx.float32)), group, axis=1) for part in parts[1:]
    )
    assert np.array_equal(found, codes * scales + minima)
    exact = codes.astype(np.float64) * scales + minima.astype(np.float64)
    size = np.abs(codes * scales) + np.abs(minima)
    assert (np.abs(found - exact) <= 2.0**-23 * size).all()
    theirs = mx.dequantize(*parts, group_size=group, bits=bits).astype(mx.float32)
    assert (np.abs(found - np.array(theirs)) <= 2 * BF16_STEP * size).all()
    assert not np.array_equal(found, np.array(theirs))


@pytest.mark.parametrize("dtype", [mx.float16, mx.float32])
def test_scales_of_other_floats_and_a_stack_of_matrices(tmp_path: Path, dtype: Any) -> None:
    values = mx.random.normal((3, 5, 64), key=mx.random.key(1)).astype(dtype)
    parts = mx.quantize(values, group_size=32, bits=4)
    folder = write_folder(
        tmp_path / "x", mlx_config(4, 32), module("m", quantized(values, group_size=32, bits=4))
    )
    codes, scales, minima = parts[0], parts[1].astype(mx.float32), parts[2].astype(mx.float32)
    wanted = np.array(mx.dequantize(codes, scales, minima, group_size=32, bits=4))
    with open_checkpoint(folder) as source:
        assert source.tensors["m.weight"].shape == (3, 5, 64)
        weights = Weights(source)
        found = weights.whole("m.weight").numpy()
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)
        rows = weights.linear(Linear("m.weight", rows=((11, 2), (4, 3)))).numpy()
        assert np.array_equal(rows, found.reshape(15, 64)[[11, 12, 4, 5, 6]])


@pytest.mark.parametrize(("mode", "group"), [("mxfp4", 32), ("mxfp8", 32), ("nvfp4", 16)])
def test_float_modes_are_those_of_mlx_bit_for_bit(tmp_path: Path, mode: str, group: int) -> None:
    values = mx.random.normal((2, 7, 96), key=mx.random.key(2))
    parts = list(mx.quantize(values, mode=mode))
    config = CONFIG | {"quantization": {"mode": mode}}
    folder = write_folder(tmp_path / "x", config, module("m", quantized(values, mode=mode)))
    with open_checkpoint(folder) as source:
        facts = source.tensors["m.weight"]
        assert (facts.shape, facts.block, facts.minima) == ((2, 7, 96), (1, group), None)
        found = Weights(source).whole("m.weight").numpy()
    wanted = mx.dequantize(parts[0], parts[1], mode=mode, dtype=mx.float32)
    assert np.array_equal(found, np.array(wanted))


def test_a_module_may_have_its_own_packing_or_stay_whole(tmp_path: Path) -> None:
    values = mx.random.normal((4, 128), key=mx.random.key(3))
    eight = {"bits": 8, "group_size": 64}
    config = mlx_config(4, 32, **{"a.b": eight, "c": False, "usual": {}, "yes": True})
    tensors = module("a.b", quantized(values, **eight))
    tensors |= module("d", quantized(values, bits=4, group_size=32))
    tensors |= module("usual", quantized(values, bits=4, group_size=64))
    tensors |= module("yes", quantized(values, bits=4, group_size=32))
    tensors |= {"c.weight": np.array(values), "norm.weight": bf16(np.ones(5, np.float32))}
    with open_checkpoint(write_folder(tmp_path / "x", config, tensors)) as source:
        found = {name: (each.format, each.block) for name, each in source.tensors.items()}
    assert found == {
        "a.b.weight": ("mlx8", (1, 64)),
        "d.weight": ("mlx4", (1, 32)),
        "usual.weight": ("mlx4", (1, 64)),
        "yes.weight": ("mlx4", (1, 32)),
        "c.weight": ("f32", (1, 1)),
        "norm.weight": ("bf16", (1, 1)),
    }


def test_an_mlx_checkpoint_without_packing_is_known_by_its_writer(tmp_path: Path) -> None:
    tensors = {"w": np.ones((2, 2), np.float32)}
    folder = write_folder(tmp_path / "x", CONFIG, tensors, metadata={"format": "mlx"})
    with open_checkpoint(folder) as source:
        assert source.dialect is Dialect.MLX
    with open_checkpoint(write_folder(tmp_path / "y", CONFIG, tensors)) as source:
        assert source.dialect is Dialect.PUBLISHED


def fp8(shape: tuple[int, ...], seed: int = 0) -> tuple[Stored, NDArray[np.float64]]:
    """Random codes without NaN, and their values by torch's own type."""
    codes = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    codes[codes & 127 == 127] = 5
    values = torch.from_numpy(codes).view(torch.float8_e4m3fn).double().numpy()
    return Stored("F8_E4M3", shape, codes.tobytes()), values


def spread(scales: Floats, block: tuple[int, int], shape: tuple[int, ...]) -> Floats:
    """One scale an element, block by block, cut to the matrix."""
    wide = np.repeat(np.repeat(scales, block[0], axis=-2), block[1], axis=-1)
    return wide[..., : shape[-2], : shape[-1]]


@pytest.mark.parametrize("shape", [(256, 128), (130, 200), (3, 5, 200), (2, 129, 64)])
@pytest.mark.parametrize("name", ["m.weight_scale_inv", "m.weight_scale"])
def test_block_scaled_fp8_is_code_times_its_blocks_scale(
    tmp_path: Path, shape: tuple[int, ...], name: str
) -> None:
    codes, values = fp8(shape)
    grid = (*shape[:-2], -(-shape[-2] // 128), -(-shape[-1] // 128))
    scales = np.random.default_rng(1).uniform(1e-4, 2, grid).astype(np.float32)
    method = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    config = CONFIG | {"quantization_config": method}
    tensors: dict[str, Any] = {
        "m.weight": codes,
        name: scales,
        "m.input_scale": np.ones(1, np.float32),
    }
    with open_checkpoint(write_folder(tmp_path / "x", config, tensors)) as source:
        facts = source.tensors["m.weight"]
        assert (facts.format, facts.shape, facts.block) == ("f8_e4m3", shape, (128, 128))
        assert list(source.tensors) == ["m.weight"]
        found = Weights(source).whole("m.weight").numpy()
    assert np.array_equal(found, (values * spread(scales, (128, 128), shape)).astype(np.float32))


@pytest.mark.parametrize(
    ("shape", "scales", "block"),
    [
        ((6, 40), (), (6, 40)),
        ((6, 40), (1,), (6, 40)),
        ((6, 40), (6,), (1, 40)),
        ((6, 40), (6, 1), (1, 40)),
        ((3, 6, 40), (3,), (6, 40)),
        ((3, 6, 40), (3, 6, 1), (1, 40)),
        ((40,), (1,), (1, 40)),
    ],
)
@pytest.mark.parametrize(
    "method",
    [
        {"quant_method": "fbgemm_fp8"},
        {
            "quant_method": "compressed-tensors",
            "config_groups": {"group_0": {"weights": {"type": "float", "num_bits": 8}}},
        },
    ],
)
def test_fp8_with_one_scale_a_row_or_a_tensor(
    tmp_path: Path,
    shape: tuple[int, ...],
    scales: tuple[int, ...],
    block: tuple[int, int],
    method: Mapping[str, Any],
) -> None:
    codes, values = fp8(shape)
    numbers = np.random.default_rng(1).uniform(0.1, 2, scales).astype(np.float32)
    tensors: dict[str, Any] = {"m.weight": codes, "m.weight_scale": np.asarray(numbers)}
    config = CONFIG | {"quantization_config": method}
    with open_checkpoint(write_folder(tmp_path / "x", config, tensors)) as source:
        assert source.tensors["m.weight"].block == block
        found = Weights(source).whole("m.weight").numpy()
    matrix = (1, *shape)[-2:]
    spreadable = numbers.reshape(
        *shape[:-2], *(-(-m // b) for m, b in zip(matrix, block, strict=True))
    )
    wanted = values.reshape(*shape[:-2], *matrix) * spread(spreadable, block, matrix)
    assert np.array_equal(found.reshape(wanted.shape), wanted.astype(np.float32))


def test_fp8_scales_may_be_exponents_or_bf16(tmp_path: Path) -> None:
    codes, values = fp8((64, 64))
    method = {"quant_method": "fp8", "weight_block_size": [32, 32]}
    tensors = {
        "a.weight": codes,
        "a.weight_scale_inv": Stored("F8_E8M0", (2, 2), bytes([127, 128, 126, 120])),
        "b.weight": codes,
        "b.weight_scale_inv": bf16(np.array([[1, 2], [0.5, 2**-7]], np.float32)),
    }
    config = CONFIG | {"text_config": {"quantization_config": method}}
    with open_checkpoint(write_folder(tmp_path / "x", config, tensors)) as source:
        weights = Weights(source)
        first, second = weights.whole("a.weight"), weights.whole("b.weight")
    scales = np.array([[1, 2], [0.5, 2**-7]], np.float32)
    assert np.array_equal(first.numpy(), values * spread(scales, (32, 32), (64, 64)))
    assert torch.equal(first, second)


def test_eight_bit_floats_without_scales_stand_for_themselves(tmp_path: Path) -> None:
    codes, values = fp8((3, 8))
    with open_checkpoint(write_folder(tmp_path / "x", CONFIG, {"w": codes})) as source:
        assert np.array_equal(Weights(source).whole("w").numpy(), values)


@pytest.mark.parametrize(
    ("method", "word"),
    [
        ({"quant_method": "gptq", "bits": 4}, "'gptq'"),
        ({"quant_method": "awq"}, "'awq'"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "'bitsandbytes'"),
        ({"quant_method": "mxfp4"}, "'mxfp4'"),
        ({"quant_method": "compressed-tensors", "format": "pack-quantized"}, "'pack-quantized'"),
        ({"quant_method": 7}, "7"),
        ({}, "null"),
    ],
)
def test_a_method_that_is_not_read_is_refused_by_its_name(
    tmp_path: Path, method: Mapping[str, Any], word: str
) -> None:
    config = CONFIG | {"quantization_config": method}
    folder = write_folder(tmp_path / "x", config, {"w": np.ones((2, 2), np.float32)})
    with pytest.raises(UnsupportedFormat) as caught:
        open_checkpoint(folder)
    assert word in caught.value.sentence and "config.json" in caught.value.sentence


def test_decoding_holds_little_beside_its_result(tmp_path: Path) -> None:
    """The file's pages, the result, and slabs of a size that the tensor's has no part in."""
    words = np.zeros((4096, 512), np.uint32)
    scales = np.ones((4096, 64), np.float32)
    folder = write_folder(tmp_path / "x", mlx_config(4, 64), module("m", [words, scales, scales]))
    result, stored = 4096 * 4096 * 4, words.nbytes + 2 * scales.nbytes
    with open_checkpoint(folder) as source:
        weights = Weights(source)
        weights.rows("m.weight", [0])
        before = start_peak()
        assert weights.whole("m.weight").nbytes == result
        rise = 1024 * (peak_kb() - before)
    assert result <= rise < result + stored + SLABS


def test_a_companion_is_asked_for_by_its_own_name(tmp_path: Path) -> None:
    values = mx.random.normal((4, 64), key=mx.random.key(4))
    parts = quantized(values, bits=4, group_size=64)
    with open_checkpoint(write_folder(tmp_path / "x", mlx_config(4, 64), module("m", parts))) as s:
        facts = s.tensors["m.weight"]
        for part, value in ((facts.scales, parts[1]), (facts.minima, parts[2])):
            assert isinstance(part, TensorFacts)
            assert bytes(s.tensor_bytes(part.name)) == value.tobytes()
        with pytest.raises(KeyError):
            s.tensor_bytes("m.nothing")


def test_words_and_scales_that_fit_another_packing_say_which(tmp_path: Path) -> None:
    values = mx.random.normal((4, 128), key=mx.random.key(3))
    tensors = module("m", quantized(values, bits=8, group_size=64))
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(write_folder(tmp_path / "x", mlx_config(4, 64), tensors))
    for part in (
        "'m.weight'",
        "32 words",
        "2 scales",
        "4 bits in groups of 64",
        "8 bits in groups",
    ):
        assert part in caught.value.sentence
