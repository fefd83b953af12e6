"""Products of pairs with their experts in plain torch."""

from __future__ import annotations

import torch


def products(
    x: torch.Tensor, weight: torch.Tensor, experts: torch.Tensor, rows_per_pair: int
) -> torch.Tensor:
    """Row ``pair // rows_per_pair`` of x times the pair's expert, [pairs, outputs] float64.

    Args:
        experts: [pairs], the expert of each.
    """
    found = torch.empty(len(experts), weight.shape[1], dtype=torch.float64, device=x.device)
    order = torch.argsort(experts, stable=True)
    first = 0
    for expert, each in enumerate(weight):
        count = int((experts == expert).sum())
        pairs = order[first : first + count]
        found[pairs] = x[pairs // rows_per_pair].double() @ each.double().T
        first += count
    return found
