"""What routing to experts, ordering pairs by expert and summing experts mean."""

from __future__ import annotations

import torch


def routed(
    logits: torch.Tensor, active: int, scales: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights [rows, active] float64 and experts [rows, active], both by ascending expert.

    Softmax over all experts in float64, the largest of them, the lower index first among equals;
    their weights divided by their sum, then times ``scales`` of the expert.
    """
    likely = logits.double().softmax(-1)
    # A stable sort leaves the lower index first among equals; topk promises nothing there.
    chosen = torch.sort(likely, stable=True, dim=-1, descending=True).indices[:, :active]
    chosen = chosen.sort(-1).values
    weights = likely.gather(1, chosen)
    weights = weights / weights.sum(-1, keepdim=True)
    return (weights if scales is None else weights * scales.double()[chosen]), chosen


def ordered(chosen: torch.Tensor, expert_count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Pairs ``row * active + a`` by expert, those of one expert in their order, and where the
    pairs of each expert begin: [expert_count + 1], the last one being the count of pairs."""
    flat = chosen.flatten().long()
    counts = torch.bincount(flat, minlength=expert_count)
    starts = torch.cat((counts.new_zeros(1), counts.cumsum(0)))
    return flat.sort(stable=True).indices, starts


def summed(parts: torch.Tensor, weights: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """``x`` plus the weighted parts of a row's experts, in float64."""
    return x.double() + (parts.double() * weights.double()[..., None]).sum(1)
