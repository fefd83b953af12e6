"""What a product of generated rows is: float64 sums of what rows and weights stand for."""

from __future__ import annotations

import torch

from kernels.packed.decode import decoded
from kernels.packed.weight import DenseWeight, Weight
from kernels.rows import QuantizedRows


def weight_values(weight: Weight) -> torch.Tensor:
    """[rows, columns] float64."""
    if isinstance(weight, DenseWeight):
        return weight.values.double()
    return decoded(weight).double()


def product(x: QuantizedRows, weight: Weight) -> torch.Tensor:
    """x @ weight.T: [rows, weight rows] float64."""
    return x.values() @ weight_values(weight).T


def expert_product(x: QuantizedRows, weight: Weight, chosen: torch.Tensor, n: int) -> torch.Tensor:
    """[R, A, n] float64: of row r, or r * A + a where each pair has its own, with its expert."""
    rows, experts = chosen.shape
    stack = weight_values(weight).view(-1, n, weight.columns)
    values = x.values()
    each = values.repeat_interleave(experts, 0) if x.rows == rows else values
    found = stack[chosen.long().flatten()] @ each.unsqueeze(-1)
    return found.view(rows, experts, n)
