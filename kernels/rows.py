"""Activations of generated rows as 16-bit numbers in two int8 planes, and what defines them.

A block of 32 elements has one scale, its largest magnitude / 32,258; each element is rounded to

    value = scale * (254 * high + low),     high and low whole numbers from -127 to 127

so that a product with whole-number codes is two exact ``dp4a`` sums a block, and the error is that
of 16 bits. ``sums`` of 16 elements are there for offsets and minima.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

from kernels.packed.layout import BLOCK

LOW_STEPS: Final = 254
LARGEST: Final = 127 * LOW_STEPS
SUM_ELEMENTS: Final = 16
LEAST: Final = 2.0**-100
"""A block whose largest magnitude is smaller counts as zeros: its reciprocal might overflow."""
MOST_ROWS: Final = 16
"""Rows of one step at most."""


@dataclass(frozen=True, slots=True)
class QuantizedRows:
    """Rows of activations.

    Attributes:
        high, low: [rows, columns] int8, contiguous.
        scales: [rows, columns / 32] float32.
        sums: [rows, columns / 16] int32: of ``254 * high + low``.
    """

    high: torch.Tensor
    low: torch.Tensor
    scales: torch.Tensor
    sums: torch.Tensor

    @property
    def rows(self) -> int:
        """How many."""
        return self.high.shape[0]

    @property
    def columns(self) -> int:
        """Elements of a row, a multiple of 32."""
        return self.high.shape[1]

    def values(self) -> torch.Tensor:
        """What the rows stand for: [rows, columns] float64."""
        whole = LOW_STEPS * self.high.double() + self.low.double()
        return whole * self.scales.double().repeat_interleave(BLOCK, dim=1)


def empty_rows(rows: int, columns: int, device: torch.device) -> QuantizedRows:
    """Room for rows; what it holds is anything."""
    return QuantizedRows(
        torch.empty(rows, columns, dtype=torch.int8, device=device),
        torch.empty(rows, columns, dtype=torch.int8, device=device),
        torch.empty(rows, columns // BLOCK, dtype=torch.float32, device=device),
        torch.empty(rows, columns // SUM_ELEMENTS, dtype=torch.int32, device=device),
    )


def quantized(values: torch.Tensor) -> QuantizedRows:
    """The definition: [rows, columns] float32 to rows, the same bits that kernels write.

    The reciprocal is ``32258 / largest`` in float32, rounded once; an element times it is rounded
    to float32 and then to the nearest whole number, ties to even. A block whose largest magnitude
    is below 2 ** -100 counts as zeros and has scale 0. A block that holds a NaN or an infinity has
    zeros and a scale that is no finite number, so that every product with it is NaN.
    """
    blocks = values.float().view(len(values), -1, BLOCK)
    largest = blocks.abs().amax(-1, keepdim=True)
    reciprocal = torch.tensor(1.0 / LARGEST, dtype=torch.float32, device=values.device)
    scales = (largest * reciprocal).masked_fill(largest < LEAST, 0.0)
    usable = (largest >= LEAST) & largest.isfinite()
    # A number over a tensor would be its reciprocal times the number: rounded twice.
    inverse = torch.full_like(largest, LARGEST) / largest
    rounded = (blocks * inverse).round().clamp(-LARGEST, LARGEST)
    whole = torch.where(usable, rounded, torch.zeros_like(rounded)).int()
    high = torch.div(whole + whole.sign() * (LOW_STEPS // 2), LOW_STEPS, rounding_mode="trunc")
    low = whole - LOW_STEPS * high
    shape = values.shape
    return QuantizedRows(
        high.to(torch.int8).view(shape),
        low.to(torch.int8).view(shape),
        scales.squeeze(-1),
        whole.view(len(values), -1, SUM_ELEMENTS).sum(-1, dtype=torch.int32),
    )
