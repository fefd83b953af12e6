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
    rows = torch.arange(len(experts), device=x.device) // rows_per_pair
    for expert in range(len(weight)):
        pairs = (experts == expert).nonzero().flatten()
        found[pairs] = x[rows[pairs]].double() @ weight[expert].double().T
    return found
