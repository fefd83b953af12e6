"""Launches between the logits and the drawn token.

How a draw on the host (``engine.sampling.keyed``, in float64) gets what it needs without the whole
row: ``candidates`` gives every logit that is no lower than a bound, ids ascending, and the bound is
such that 1,024 are there at least. Not exactly 1,024: the set above a bound is complete, so the
host sees for itself what it may decide, and ties need no rule here. From it follow, to the bit of a
draw from the whole row, without penalties that raise a logit:

- greedy draws;
- top-k up to 1,024, with any top-p and min-p, which then look at those k alone;
- min-p without top-k and top-p, where its least logit is above the lowest candidate.

Excluded ids, and penalties that lower logits, take away as many of the 1,024 as they meet there.
Top-p without top-k needs the sum over all probabilities, and with neither top-k nor top-p nor min-p
every token may win: those take the whole row.

Where more logits than there is room for are no lower than the bound (many equal ones, or all the
high ones side by side), ``found`` says so, and the whole row is taken.
"""

from __future__ import annotations

from typing import Final

import torch

from kernels.checks import KernelShapeError
from kernels.dependent import dependent
from kernels.draw.kernel import (
    best_kernel,
    bound_kernel,
    choose_kernel,
    gather_kernel,
    maxima_kernel,
    soft_cap_kernel,
    tally_kernel,
)
from kernels.draw.sizes import (
    MOST_VOCABULARY,
    TILE,
    WANTED,
    candidate_words,
    group_of,
    maxima_count,
    tile_count,
)

WARPS: Final = 8
CHOOSE_WARPS: Final = 1
BOUND_WARPS: Final = 8


def greedy(logits: torch.Tensor, keys: torch.Tensor, out: torch.Tensor) -> None:
    """The best token of each row: the highest logit, the lowest id among equals.

    Args:
        logits: [rows, vocabulary] float32, any row stride; only read.
        keys: scratch of rows * ``tile_count(vocabulary)`` int64 at least.
        out: [rows] int32; -1 where a logit is NaN.

    Raises:
        KernelShapeError: too little scratch, or a vocabulary above 2 ** 20.
    """
    rows, vocabulary = _checked(logits)
    parts = tile_count(vocabulary)
    if keys.numel() < rows * parts or keys.dtype is not torch.int64 or len(out) < rows:
        raise KernelShapeError(f"{keys.numel()} keys are too few for {rows} x {vocabulary}.")
    best_kernel[(rows, parts)](
        logits, keys, vocabulary, logits.stride(0), parts, TILE=TILE, num_warps=WARPS
    )
    choose_kernel[(rows,)](keys, out, parts, WIDTH=_power(parts), num_warps=CHOOSE_WARPS)


def soft_cap(logits: torch.Tensor, cap: float) -> None:
    """``cap * tanh(logits / cap)`` in place: [rows, vocabulary] float32, any row stride."""
    rows, vocabulary = _checked(logits)
    soft_cap_kernel[(rows, tile_count(vocabulary))](
        logits,
        vocabulary,
        logits.stride(0),
        cap,
        TILE=TILE,
        num_warps=WARPS,
        **dependent(logits.device),
    )


def candidates(
    logits: torch.Tensor,
    ids: torch.Tensor,
    values: torch.Tensor,
    found: torch.Tensor,
    scratch: torch.Tensor,
) -> None:
    """Every logit of a row that is no lower than a bound, 1,024 of them or more.

    Args:
        logits: [rows, vocabulary] float32, any row stride; only read.
        ids, values: [rows, room] int32 and float32, contiguous: the candidates by ascending id.
        found: [rows] int32: how many there are. More than ``room``: some are missing. As many as
            the vocabulary has: all of it.
        scratch: ``candidate_words`` int32 words at least.

    Raises:
        KernelShapeError: room or scratch are too small.
    """
    rows, vocabulary = _checked(logits)
    room = ids.shape[1]
    if room < WANTED or values.shape != ids.shape or min(len(ids), len(found)) < rows:
        raise KernelShapeError(f"{list(ids.shape)} is no room for candidates of {rows} rows.")
    if scratch.numel() < candidate_words(rows, vocabulary) or not ids.is_contiguous():
        raise KernelShapeError(f"{scratch.numel()} words are too few for {rows} x {vocabulary}.")
    parts, count = tile_count(vocabulary), maxima_count(vocabulary)
    maxima, bounds = scratch, scratch[rows * count :]
    tallies = bounds[rows:]
    grid, stride = (rows, parts), logits.stride(0)
    maxima_kernel[grid](
        logits, maxima, vocabulary, stride, count, TILE=TILE, GROUP=group_of(vocabulary),
        num_warps=WARPS,
    )  # fmt: skip
    bound_kernel[(rows,)](maxima, bounds, count, WANTED, WIDTH=_power(count), num_warps=BOUND_WARPS)
    tally_kernel[grid](
        logits, bounds, tallies, vocabulary, stride, parts, TILE=TILE, num_warps=WARPS
    )
    gather_kernel[grid](
        logits, bounds, tallies, ids, values, found, vocabulary, stride, parts, room, TILE=TILE,
        WIDTH=_power(parts), num_warps=WARPS,
    )  # fmt: skip


def _checked(logits: torch.Tensor) -> tuple[int, int]:
    rows, vocabulary = logits.shape
    if logits.dtype is not torch.float32 or logits.stride(1) != 1 or vocabulary > MOST_VOCABULARY:
        raise KernelShapeError(f"Logits of {list(logits.shape)} {logits.dtype} are not read here.")
    return rows, vocabulary


def _power(count: int) -> int:
    """The smallest power of two that is no less, and 32 at least."""
    return max(32, 1 << (count - 1).bit_length())
