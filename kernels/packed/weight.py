"""A packed weight on a device: views of one buffer, plane after plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

from kernels.checks import KernelShapeError
from kernels.packed.layout import PackedLayout, ScaleKind, aligned, packed_bytes, plane_bytes

DTYPES: Final = {
    ScaleKind.F16: torch.float16,
    ScaleKind.BF16: torch.bfloat16,
    ScaleKind.F32: torch.float32,
    ScaleKind.E8M0: torch.uint8,
    ScaleKind.SUPER_U8: torch.uint8,
    ScaleKind.SUPER_I8: torch.int8,
}


@dataclass(frozen=True, slots=True)
class PackedWeight:
    """Planes of one weight; see ``kernels.packed.layout`` for what they hold.

    Attributes:
        low: [rows, columns * low_bits / 32] int32.
        high: [rows, columns * high_bits / 32] int32; None without high bits.
        scales: [rows, columns / group].
        supers: [rows, columns / 256] float16; None where scales are the numbers themselves.
        minima, super_minima: the same of what is added.
    """

    layout: PackedLayout
    rows: int
    columns: int
    low: torch.Tensor
    high: torch.Tensor | None
    scales: torch.Tensor
    supers: torch.Tensor | None
    minima: torch.Tensor | None
    super_minima: torch.Tensor | None


@dataclass(frozen=True, slots=True)
class DenseWeight:
    """A weight that is multiplied as it is: [rows, columns] bfloat16, float16 or float32."""

    values: torch.Tensor

    @property
    def rows(self) -> int:
        """Outputs of the product."""
        return self.values.shape[0]

    @property
    def columns(self) -> int:
        """Inputs of the product."""
        return self.values.shape[1]


Weight = PackedWeight | DenseWeight


def packed_views(
    buffer: torch.Tensor, layout: PackedLayout, rows: int, columns: int
) -> PackedWeight:
    """The planes as views of ``buffer``: uint8, ``packed_bytes`` long, its start aligned."""
    if columns % layout.row_unit or rows < 1:
        raise KernelShapeError(
            f"{rows} rows of {columns} are no {layout.name}: rows are whole {layout.row_unit}s."
        )
    if buffer.numel() < packed_bytes(layout, rows, columns):
        raise KernelShapeError(f"{buffer.numel():,} bytes are too few for {rows} x {columns}.")
    found: list[torch.Tensor | None] = []
    at = 0
    for size, dtype in zip(plane_bytes(layout, rows, columns), _dtypes(layout), strict=True):
        plane = buffer[at : at + size].view(dtype).view(rows, -1) if size else None
        found.append(plane)
        at += aligned(size)
    low, high, scales, supers, minima, super_minima = found
    assert low is not None and scales is not None
    return PackedWeight(layout, rows, columns, low, high, scales, supers, minima, super_minima)


def _dtypes(layout: PackedLayout) -> list[torch.dtype]:
    found = [torch.int32, torch.int32]
    for kind in (layout.scale, layout.minimum):
        found += [torch.uint8 if kind is None else DTYPES[kind], torch.float16]
    return found
