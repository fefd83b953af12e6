"""Attention page by page gives what attention over the gathered rows gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.errors import InvariantBroken
from engine.forward.attention import attend, row_blocks
from engine.forward.pages import LayerPages
from tests.helpers.contiguous_attention import contiguous_attention, gathered
from tests.helpers.lone_model import relative_l2

KV_HEADS, REPEAT, HEAD_DIM, SCALE = 2, 3, 12, 0.4
CASES = [
    (0, 1, None),
    (0, 17, None),
    (0, 256, None),
    (256, 44, None),
    (512, 256, None),
    (700, 1, None),
    (767, 1, None),
    (768, 1, None),
    (0, 256, 5),
    (256, 256, 1),
    (256, 256, 100),
    (512, 256, 256),
    (512, 256, 257),
    (512, 200, 300),
    (512, 131, 511),
    (512, 131, 512),
    (700, 1, 100),
    (700, 1, 189),
    (700, 1, 190),
]


def written_pages(rows: int, oldest: int) -> tuple[torch.Tensor, list[int]]:
    """One layer's pages with rows ``[oldest, rows)`` written and NaN everywhere else."""
    draw = torch.Generator().manual_seed(rows)
    table = [4, 0, 3, 5]
    pages = torch.full((6, 2, KV_HEADS, 256, HEAD_DIM), float("nan"))
    for position in range(oldest, rows):
        row = torch.randn(2, KV_HEADS, HEAD_DIM, generator=draw)
        pages[table[position // 256], :, :, position % 256] = row
    return pages, table


def paged(
    query: torch.Tensor, pages: torch.Tensor, table: list[int], position: int, window: int | None
) -> torch.Tensor:
    rows = query.shape[1]
    blocks = row_blocks(np.array(table, np.int32), range(position, position + rows), window, REPEAT)
    by_kv_head = query.view(KV_HEADS, REPEAT, rows, HEAD_DIM).transpose(1, 2)
    mixed = attend(by_kv_head.reshape(KV_HEADS, -1, HEAD_DIM), LayerPages(pages), blocks, SCALE)
    return mixed.view(by_kv_head.shape).transpose(1, 2).reshape(query.shape)


@pytest.mark.parametrize(("position", "rows", "window"), CASES)
def test_pages_give_what_gathered_rows_give(position: int, rows: int, window: int | None) -> None:
    """Rows older than every window, and slots past the newest row, are NaN and never read."""
    oldest = 0 if window is None else max(0, position - window + 1)
    pages, table = written_pages(position + rows, oldest)
    query = torch.randn(KV_HEADS * REPEAT, rows, HEAD_DIM)
    found = paged(query, pages, table, position, window)
    keys, values = gathered(pages, table, position + rows)
    wanted = contiguous_attention(
        query, keys, values, position=position, window=window, scale=SCALE
    )
    assert relative_l2(found, wanted) < 1e-6


@pytest.mark.parametrize("window", [99, 101])
def test_a_window_off_by_one_is_seen(window: int) -> None:
    """The control: the comparison above notices a single row too many or too few."""
    pages, table = written_pages(512, 0)
    query = torch.randn(KV_HEADS * REPEAT, 256, HEAD_DIM)
    keys, values = gathered(pages, table, 512)
    wanted = contiguous_attention(query, keys, values, position=256, window=100, scale=SCALE)
    assert relative_l2(paged(query, pages, table, 256, window), wanted) > 1e-3


def test_16_bit_pages_are_read_as_the_float32_values_they_hold() -> None:
    pages, table = written_pages(300, 0)
    half = pages.bfloat16()
    query = torch.randn(KV_HEADS * REPEAT, 44, HEAD_DIM)
    assert torch.equal(
        paged(query, half, table, 256, None), paged(query, half.float(), table, 256, None)
    )


def test_a_page_that_the_lane_dropped_is_never_read() -> None:
    """An entry of -1 would silently name the arena's last page."""
    with pytest.raises(InvariantBroken, match="Page 0"):
        row_blocks(np.array([-1, 2], np.int32), range(256, 260), 300, 1)
    (block,) = row_blocks(np.array([-1, 2], np.int32), range(260, 264), 5, 1)
    assert [page.page for page in block.pages] == [2]
