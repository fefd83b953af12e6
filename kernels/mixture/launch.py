"""Launches of what a mixture of experts does between its products."""

from __future__ import annotations

from typing import Final

import torch

from kernels.checks import KernelShapeError
from kernels.dependent import dependent
from kernels.mixture.kernel import count_kernel, place_kernel, route_kernel, sum_kernel
from kernels.mixture.sizes import BLOCK_PAIRS, count_words

MOST_EXPERTS: Final = 512
MOST_ACTIVE: Final = 16
ROUTE_WARPS: Final = 1
SORT_WARPS: Final = 4
SUM_TILE: Final = 512
SUM_WARPS: Final = 4


def route(
    logits: torch.Tensor,
    scales: torch.Tensor | None,
    weights: torch.Tensor,
    chosen: torch.Tensor,
) -> None:
    """Choose each row's experts: the likeliest of all, with weights whose sum is 1.

    Args:
        logits: [rows, experts] float32, 512 experts at most, any row stride.
        scales: [experts] float32, on the weights after they are divided by their sum.
        weights: [rows, active] float32, contiguous; written by ascending expert.
        chosen: [rows, active] int32, contiguous; the experts, ascending and all different, whatever
            the logits are.

    Raises:
        KernelShapeError: shapes that do not belong together, or more than 16 active ones.
    """
    (rows, experts), active = logits.shape, chosen.shape[1]
    if not active <= min(experts, MOST_ACTIVE) or experts > MOST_EXPERTS or logits.stride(1) != 1:
        raise KernelShapeError(f"{active} of {experts} experts are not routed here.")
    both = (weights, chosen)
    if any(each.shape != (rows, active) or not each.is_contiguous() for each in both):
        raise KernelShapeError(f"{list(weights.shape)}, {list(chosen.shape)} for {rows} rows.")
    route_kernel[(rows,)](
        logits,
        scales,
        weights,
        chosen,
        logits.stride(0),
        EXPERTS=experts,
        WIDTH=_power(experts),
        ACTIVE=active,
        num_warps=ROUTE_WARPS,
        **dependent(logits.device),
    )


def order_pairs(
    chosen: torch.Tensor, order: torch.Tensor, starts: torch.Tensor, counts: torch.Tensor
) -> None:
    """Sort pairs by expert, stably: a pair is ``row * active + a``.

    Args:
        chosen: [rows, active] int32, contiguous, each from 0 to below the count of experts.
        order: [rows * active] int32, the pairs.
        starts: [experts + 1] int32, where in ``order`` each expert's begin; the last one is the
            count of pairs.
        counts: scratch of ``count_words`` int32 words at least.
    """
    pairs, experts = chosen.numel(), len(starts) - 1
    words = counts.view(torch.int32)
    if len(order) < pairs or not chosen.is_contiguous() or experts > MOST_EXPERTS:
        raise KernelShapeError(f"{pairs} pairs of {experts} experts in {list(order.shape)}.")
    if words.numel() < count_words(pairs, experts):
        raise KernelShapeError(f"{words.numel()} words are too few to count {pairs} pairs.")
    blocks = -(-pairs // BLOCK_PAIRS)
    grid = (experts, blocks)
    count_kernel[grid](
        chosen, words, pairs, EXPERTS=experts, TILE=BLOCK_PAIRS, num_warps=SORT_WARPS
    )
    place_kernel[grid](
        chosen,
        words,
        order,
        starts,
        pairs,
        blocks,
        EXPERTS=experts,
        WIDTH=_power(experts),
        TILE=BLOCK_PAIRS,
        num_warps=SORT_WARPS,
    )


def sum_experts(parts: torch.Tensor, weights: torch.Tensor, x: torch.Tensor) -> None:
    """``x += sum over a of weights[:, a] * parts[:, a]``, summed by ascending a first.

    Args:
        parts: [rows, active, columns] float32 or bfloat16, the last dimension dense.
        weights: [rows, active] float32.
        x: [rows, columns] float32; updated in place.
    """
    rows, active, columns = parts.shape
    if x.shape != (rows, columns) or weights.shape != (rows, active):
        raise KernelShapeError(f"{list(parts.shape)} and {list(weights.shape)} to {list(x.shape)}.")
    if parts.stride(2) != 1 or weights.stride(1) != 1 or x.stride(1) != 1:
        raise KernelShapeError("The last dimension of parts, weights and x must be dense.")
    sum_kernel[(rows, -(-columns // SUM_TILE))](
        parts,
        weights,
        x,
        columns,
        parts.stride(0),
        parts.stride(1),
        weights.stride(0),
        x.stride(0),
        ACTIVE=active,
        TILE=SUM_TILE,
        num_warps=SUM_WARPS,
        **dependent(x.device),
    )


def _power(count: int) -> int:
    """The smallest power of two that is no less, and 32 at least."""
    return max(32, 1 << (count - 1).bit_length())
