"""The product in plain torch."""

from __future__ import annotations

import torch


def product(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """``x @ weight.T + bias`` in float64, [rows, outputs]."""
    found = x.double() @ weight.double().T
    return found if bias is None else found + bias.double()
