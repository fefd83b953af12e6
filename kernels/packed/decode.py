"""Reads the planes of a packed weight back, in plain torch: what a kernel's decode must equal."""

from __future__ import annotations

import torch

from kernels.packed.layout import BLOCK, ScaleKind
from kernels.packed.weight import PackedWeight


def decoded(weight: PackedWeight) -> torch.Tensor:
    """What the planes stand for: [rows, columns] float32, the bits of the format's own decode."""
    layout = weight.layout
    codes = codes_of(weight)
    if layout.table is not None:
        table = torch.tensor(layout.table, dtype=torch.float32, device=codes.device)
        values = table[codes]
    else:
        values = (codes - layout.offset).float()
    values = values.view(weight.rows, -1, layout.group)
    values = factors(weight.scales, weight.supers, layout.scale).unsqueeze(-1) * values
    if layout.minimum is not None and weight.minima is not None:
        added = factors(weight.minima, weight.super_minima, layout.minimum).unsqueeze(-1)
        values = values - added if layout.subtracts else values + added
    return values.view(weight.rows, weight.columns)


def codes_of(weight: PackedWeight) -> torch.Tensor:
    """Whole codes, high bits put back: int32 [rows, columns]."""
    layout = weight.layout
    low = _split(weight.low, layout.low_bits).view(weight.rows, weight.columns)
    codes = low.view(torch.int8).int() if layout.signed else low.int()
    if weight.high is not None:
        words = weight.high.view(torch.uint8).view(weight.rows, -1, layout.high_bits, 4)
        high = torch.stack(_fields(words, layout.high_bits), dim=3).view(weight.rows, -1)
        codes |= high.int() << layout.low_bits
    return codes


def _split(low: torch.Tensor, bits: int) -> torch.Tensor:
    size = BLOCK * bits // 8
    return torch.stack(_fields(low.view(torch.uint8).view(len(low), -1, size), bits), dim=2)


def _fields(words: torch.Tensor, bits: int) -> list[torch.Tensor]:
    if bits == 8:
        return [words]
    return [words >> shift & ((1 << bits) - 1) for shift in range(0, 8, bits)]


def factors(plane: torch.Tensor, supers: torch.Tensor | None, kind: ScaleKind) -> torch.Tensor:
    """A plane of scales or minima as float32, one a group."""
    if kind is ScaleKind.E8M0:
        e = plane.int()
        small = torch.full_like(e, 0x00200000) << e.clamp(max=1)
        return torch.where(e < 2, small, (e - 1) << 23).view(torch.float32)
    if supers is None:
        return plane.float()
    each = supers.float().repeat_interleave(plane.shape[1] // supers.shape[1], dim=1)
    return each * plane.float()
