"""Packing keeps every bit: planes decode to what the checkpoint's own blocks decode to."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from kernels.checks import KernelShapeError
from kernels.packed.decode import decoded
from kernels.packed.layout import LAYOUTS, ScaleKind, mlx_layout, packed_bytes
from kernels.packed.pack import pack, pack_mlx, rows_between
from kernels.packed.weight import DTYPES, PackedWeight, packed_views
from kernels.quant import FORMATS

ROWS, COLUMNS = 5, 768


def empty(name: str, rows: int = ROWS) -> PackedWeight:
    layout = LAYOUTS[name]
    buffer = torch.full((packed_bytes(layout, rows, COLUMNS),), 0xFF, dtype=torch.uint8)
    return packed_views(buffer, layout, rows, COLUMNS)


def blocks(name: str) -> torch.Tensor:
    """Rows of random blocks, every bit pattern possible."""
    facts = FORMATS[name]
    size = COLUMNS // facts.block_elements * facts.block_bytes
    rng = np.random.default_rng(sum(name.encode()))
    return torch.from_numpy(rng.integers(0, 256, (ROWS, size), dtype=np.uint8))


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    nans = torch.isnan(one) & torch.isnan(other)
    return bool(((one.view(torch.int32) == other.view(torch.int32)) | nans).all())


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_planes_decode_to_the_bits_of_the_blocks(name: str) -> None:
    weight, raw = empty(name), blocks(name)
    pack(name, raw, weight)
    assert same_bits(decoded(weight), FORMATS[name].decode(raw))


@pytest.mark.parametrize("name", ["q4_k", "q6_k", "q5_1", "mxfp4"])
def test_runs_of_rows_fill_the_same_planes_as_all_at_once(name: str) -> None:
    whole, parts, raw = empty(name), empty(name), blocks(name)
    pack(name, raw, whole)
    for first, stop in ((0, 1), (1, 4), (4, 5)):
        pack(name, raw[first:stop], rows_between(parts, first, stop))
    assert same_bits(decoded(whole), decoded(parts))
    pack(name, raw.flip(0), parts)
    assert not same_bits(decoded(whole), decoded(parts))


@pytest.mark.parametrize("name", ["q4_0", "q8_0", "q3_k"])
def test_rows_with_gaps_between_them_pack_as_rows_without(name: str) -> None:
    weight, raw = empty(name), blocks(name)
    wide = torch.zeros(ROWS, raw.shape[1] + 7, dtype=torch.uint8)
    wide[:, 3 : 3 + raw.shape[1]] = raw
    pack(name, wide[:, 3 : 3 + raw.shape[1]], weight)
    assert same_bits(decoded(weight), FORMATS[name].decode(raw))


@pytest.mark.parametrize("scale", [ScaleKind.F16, ScaleKind.BF16, ScaleKind.F32])
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("group", [32, 64, 128])
def test_mlx_planes_are_scale_times_code_plus_minimum(
    bits: int, group: int, scale: ScaleKind
) -> None:
    layout = mlx_layout(bits, group, scale)
    assert layout is not None
    buffer = torch.full((packed_bytes(layout, ROWS, COLUMNS),), 0xFF, dtype=torch.uint8)
    weight = packed_views(buffer, layout, ROWS, COLUMNS)
    generator = torch.Generator().manual_seed(bits * group)
    raw = torch.randint(0, 256, (ROWS, COLUMNS * bits // 8), dtype=torch.uint8, generator=generator)
    shape = (ROWS, COLUMNS // group)
    scales = torch.randn(shape, generator=generator).to(DTYPES[scale])
    minima = torch.randn(shape, generator=generator).to(DTYPES[scale])
    pack_mlx(raw, scales, minima, weight)
    codes = FORMATS[f"mlx{bits}"].decode(raw).view(ROWS, -1, group)
    expected = scales.float().unsqueeze(-1) * codes + minima.float().unsqueeze(-1)
    assert same_bits(decoded(weight), expected.view(ROWS, COLUMNS))


def test_bytes_of_another_shape_or_format_are_refused() -> None:
    weight, raw = empty("q4_k"), blocks("q4_k")
    for bad in (raw[:, 1:], raw[1:], raw.int()):
        with pytest.raises(KernelShapeError, match="q4_k of"):
            pack("q4_k", bad, weight)
    with pytest.raises(KernelShapeError, match="does not go into planes of q4_k"):
        pack("q4_0", blocks("q4_0"), weight)
    with pytest.raises(KernelShapeError, match="no rows"):
        rows_between(weight, 3, 6)
