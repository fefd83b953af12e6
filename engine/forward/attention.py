"""Attention over KV pages with an online softmax: one page after the other, in float32.

Rows are taken in blocks and keys in pages, both cut at fixed absolute positions, so the bits of a
row depend on the prefix and not on how a prompt was cut. A row attends to itself in its own page,
which is therefore taken first: from then on every row's running maximum is finite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from engine.cache.formats import PAGE_ROWS
from engine.errors import InvariantBroken
from engine.forward.pages import LayerPages

BLOCK_ROWS = 128
"""Rows that share one list of visible keys; half a page saves a quarter of the causal one."""


@dataclass(frozen=True, slots=True)
class VisiblePage:
    """The part of one page that a block's rows may attend to.

    Attributes:
        page: id in the group's arena.
        first, end: slots ``[first, end)`` of the page that at least one row sees.
        mask: [rows * heads a kv head, end - first] float32, 0 or -inf; None where every row sees
            every slot.
    """

    page: int
    first: int
    end: int
    mask: torch.Tensor | None


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Consecutive query rows of a chunk, one entry a row and head, and the pages they see.

    Attributes:
        queries: where the block lies along the query's second dimension.
        pages: newest first.
    """

    queries: slice
    pages: tuple[VisiblePage, ...]


def row_blocks(
    table: NDArray[np.int32], rows: range, window: int | None, repeat: int
) -> tuple[RowBlock, ...]:
    """Cut rows into blocks and find what each sees.

    Args:
        table: page id by page index.
        rows: absolute positions.
        window: rows that each row attends to, the own one included; None for all.
        repeat: query heads a kv head.
    """
    blocks = []
    first = rows.start
    while first < rows.stop:
        end = min(rows.stop, (first // BLOCK_ROWS + 1) * BLOCK_ROWS)
        queries = slice((first - rows.start) * repeat, (end - rows.start) * repeat)
        pages = _visible_pages(table, range(first, end), window, repeat)
        blocks.append(RowBlock(queries, pages))
        first = end
    return tuple(blocks)


def attend(
    query: torch.Tensor, pages: LayerPages, blocks: Sequence[RowBlock], scale: float
) -> torch.Tensor:
    """Softmax attention of a chunk's rows over the pages they see.

    Args:
        query: [kv_head, rows * heads a kv head, head_dim] float32, contiguous, rows outermost.
        pages: of the layer that owns the keys and values.

    Returns:
        The mixed values in the query's shape, float32.
    """
    mixed = torch.empty_like(query)
    for block in blocks:
        _attend_block(query[:, block.queries], pages, block, scale, mixed[:, block.queries])
    return mixed


def _attend_block(
    query: torch.Tensor, pages: LayerPages, block: RowBlock, scale: float, out: torch.Tensor
) -> None:
    newest, *older = block.pages
    scores, values = _scores(query, pages, newest, scale)
    top = scores.amax(-1, keepdim=True)
    scores.sub_(top).exp_()
    total = scores.sum(-1, keepdim=True)
    mixed = torch.bmm(scores, values)
    for view in older:
        scores, values = _scores(query, pages, view, scale)
        higher = torch.maximum(top, scores.amax(-1, keepdim=True))
        scores.sub_(higher).exp_()
        shrink = top.sub_(higher).exp_()
        total.mul_(shrink).add_(scores.sum(-1, keepdim=True))
        mixed.mul_(shrink).baddbmm_(scores, values)
        top = higher
    torch.div(mixed, total, out=out)


def _scores(
    query: torch.Tensor, pages: LayerPages, view: VisiblePage, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scaled, masked scores [kv_head, rows, keys] and the values [kv_head, keys, head_dim]."""
    both = pages.read(view.page, view.first, view.end)
    keys, values = both[0].transpose(1, 2), both[1]
    if view.mask is None:
        return torch.baddbmm(query.new_empty(()), query, keys, beta=0, alpha=scale), values
    return torch.baddbmm(view.mask, query, keys, alpha=scale), values


def _visible_pages(
    table: NDArray[np.int32], rows: range, window: int | None, repeat: int
) -> tuple[VisiblePage, ...]:
    oldest = 0 if window is None else max(0, rows.start - window + 1)
    found = []
    for index in range((rows.stop - 1) // PAGE_ROWS, oldest // PAGE_ROWS - 1, -1):
        if table[index] < 0:
            raise InvariantBroken(f"Page {index} is needed by row {rows.start} but is not held.")
        base = index * PAGE_ROWS
        keys = range(max(oldest, base), min(rows.stop, base + PAGE_ROWS))
        found.append(
            VisiblePage(
                page=int(table[index]),
                first=keys.start - base,
                end=keys.stop - base,
                mask=_mask(keys, rows, window, repeat),
            )
        )
    return tuple(found)


def _mask(keys: range, rows: range, window: int | None, repeat: int) -> torch.Tensor | None:
    hides_future = keys.stop - 1 > rows.start
    hides_past = window is not None and keys.start <= rows.stop - 1 - window
    if not hides_future and not hides_past:
        return None
    key = torch.arange(keys.start, keys.stop)
    row = torch.arange(rows.start, rows.stop).repeat_interleave(repeat).unsqueeze(1)
    hidden = key > row
    if window is not None:
        hidden |= key <= row - window
    return torch.zeros(hidden.shape).masked_fill_(hidden, float("-inf"))
