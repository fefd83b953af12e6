"""What the best token, capped logits and candidates are."""

from __future__ import annotations

import torch


def best_of(logits: torch.Tensor) -> torch.Tensor:
    """[rows] int64: the highest logit's id, the lowest one among equals; -1 where a NaN is."""
    best = logits.amax(-1, keepdim=True)
    ids = (logits == best).int().argmax(-1)
    return ids.masked_fill(logits.isnan().any(-1), -1)


def capped(logits: torch.Tensor, cap: float) -> torch.Tensor:
    """``cap * tanh(logits / cap)`` in float64."""
    return (logits.double() / cap).tanh() * cap


def least_of(logits: torch.Tensor, group: int, wanted: int) -> torch.Tensor:
    """[rows]: the ``wanted``-th highest of the maxima of ``group`` neighbours; -inf for fewer.

    At least ``wanted`` logits are no lower: each of the groups above it has one.
    """
    short = -logits.shape[1] % group
    padded = torch.nn.functional.pad(logits, (0, short), value=-torch.inf)
    maxima = padded.view(len(logits), -1, group).amax(-1)
    if maxima.shape[1] < wanted:
        return maxima.new_full((len(logits),), -torch.inf)
    return maxima.sort(-1, descending=True).values[:, wanted - 1]
