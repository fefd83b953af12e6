"""Unpacking in plain torch: the numbers that a weight stands for, rounded once."""

from __future__ import annotations

import torch

from kernels.packed.decode import decoded
from kernels.packed.weight import DenseWeight, Weight


def exact(weight: Weight) -> torch.Tensor:
    """All rows as float32, [rows, columns]."""
    return weight.values.float() if isinstance(weight, DenseWeight) else decoded(weight)


def unpacked(weight: Weight, first_row: int, rows: int) -> torch.Tensor:
    """Some rows as bfloat16, to nearest even."""
    return exact(weight)[first_row : first_row + rows].bfloat16()


def unpacked_rows(weight: Weight, ids: torch.Tensor, scale: float) -> torch.Tensor:
    """Rows by number, float32; numbers out of range are the nearest row's."""
    return exact(weight)[ids.long().clamp(0, weight.rows - 1)] * scale
