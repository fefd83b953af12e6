"""Attention over KV pages with an online softmax: one page after the other, in float32.

The partition of the keys is by page, hence by absolute position, so the bits of a row depend on
the prefix and not on how it was cut. A row attends to itself in the newest page, which is therefore
taken first: from then on every row's running maximum is finite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from engine.cache.pages import PAGE_ROWS
from engine.errors import InvariantBroken


@dataclass(frozen=True, slots=True)
class VisiblePage:
    """The part of one page that a chunk's rows may attend to.

    Attributes:
        page: id in the group's arena.
        first, end: slots ``[first, end)`` of the page that at least one row sees.
        mask: [rows, end - first] float32, 0 or -inf, None where every row sees every slot.
    """

    page: int
    first: int
    end: int
    mask: torch.Tensor | None


def visible_pages(
    table: NDArray[np.int32], position: int, rows: int, window: int | None, repeat: int
) -> tuple[VisiblePage, ...]:
    """The pages that rows ``position .. position + rows`` attend to, newest first.

    Args:
        table: page id by page index.
        window: rows that each row attends to, the own one included; None for all.
        repeat: query heads a kv head; the mask's rows are repeated as often, head by head.
    """
    oldest = 0 if window is None else max(0, position - window + 1)
    end = position + rows
    found = []
    for index in range((end - 1) // PAGE_ROWS, oldest // PAGE_ROWS - 1, -1):
        if table[index] < 0:
            raise InvariantBroken(f"Page {index} is needed by row {position} but is not held.")
        base = index * PAGE_ROWS
        keys = range(max(oldest, base), min(end, base + PAGE_ROWS))
        mask = _mask(keys, position, rows, window)
        found.append(
            VisiblePage(
                page=int(table[index]),
                first=keys.start - base,
                end=keys.stop - base,
                mask=None if mask is None else mask.repeat(repeat, 1),
            )
        )
    return tuple(found)


def attend(
    query: torch.Tensor, pages: torch.Tensor, visible: Sequence[VisiblePage], scale: float
) -> torch.Tensor:
    """Softmax attention of a chunk's rows over the visible pages.

    Args:
        query: [kv_head, heads a kv head * rows, head_dim] float32, contiguous.
        pages: [page, 2, kv_head, slot, head_dim], one layer of the arena, any float dtype.

    Returns:
        [kv_head, heads a kv head * rows, head_dim] float32.
    """
    newest, *older = visible
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
    return mixed.div_(total)


def _scores(
    query: torch.Tensor, pages: torch.Tensor, view: VisiblePage, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scaled, masked scores [kv_head, rows, keys] and the values [kv_head, keys, head_dim]."""
    both = pages[view.page, :, :, view.first : view.end].float()
    keys, values = both[0].transpose(1, 2), both[1]
    if view.mask is None:
        return torch.bmm(query, keys).mul_(scale), values
    return torch.baddbmm(view.mask, query, keys, alpha=scale), values


def _mask(keys: range, position: int, rows: int, window: int | None) -> torch.Tensor | None:
    hides_future = keys.stop - 1 > position
    hides_past = window is not None and keys.start <= position + rows - 1 - window
    if not hides_future and not hides_past:
        return None
    key = torch.arange(keys.start, keys.stop)
    row = torch.arange(position, position + rows).unsqueeze(1)
    hidden = key > row
    if window is not None:
        hidden |= key <= row - window
    return torch.zeros(hidden.shape).masked_fill_(hidden, float("-inf"))
