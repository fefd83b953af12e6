"""Pages are promised for a stream's whole need, shared by reference and released exactly once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.cache.lane import Lane, LaneMemory, LaneState, PagesRefused
from engine.cache.pages import (
    PageCensus,
    PagePool,
    PageRun,
    Promise,
    most_live_pages,
    pages_for,
)
from engine.errors import InvariantBroken
from tests.helpers.fake_device import FakeDevice

CHUNK = 256


@pytest.fixture
def full() -> Iterator[PagePool]:
    pool = PagePool(8)
    yield pool
    assert pool.census() == PageCensus(8, 8, 0, 0)


@pytest.fixture
def sliding() -> Iterator[PagePool]:
    pool = PagePool(10, window=512)
    yield pool
    assert pool.census() == PageCensus(10, 10, 0, 0)


def memory(*pools: PagePool) -> LaneMemory:
    return FakeDevice(pools).memory


def opened(pools: list[PagePool], need_rows: int) -> Lane:
    lane = Lane.open(memory(*pools), need_rows, CHUNK)
    assert isinstance(lane, Lane)
    return lane


def pages(lane: Lane, group: int = 0) -> list[int]:
    return [int(page) for page in lane.table(group)]


def test_pages_are_counted_by_rows() -> None:
    assert [pages_for(rows) for rows in (0, 1, 255, 256, 257, 512)] == [0, 1, 1, 1, 2, 2]


def test_the_lowest_free_page_is_taken_first(full: PagePool) -> None:
    with opened([full], 1024) as first, opened([full], 512) as second:
        for _ in range(3):
            first.extend(CHUNK)
        second.extend(1)
        assert (pages(first), pages(second)) == ([0, 1, 2, -1], [3, -1])
        first.close()
        second.extend(CHUNK)
        assert pages(second) == [3, 0]


def test_the_whole_need_is_promised_when_a_lane_opens(full: PagePool) -> None:
    with opened([full], 5 * CHUNK) as lane:
        assert full.census() == PageCensus(8, 3, 0, 5)
        refused = Lane.open(memory(full), 4 * CHUNK, CHUNK)
        assert refused == PagesRefused(group=0, needed_pages=4, available_pages=3)
        lane.extend(1)
        assert full.census() == PageCensus(8, 3, 1, 4)
        with opened([full], 3 * CHUNK):
            assert not full.fits(1)


def test_a_lane_that_one_group_refuses_takes_nothing_of_the_others(full: PagePool) -> None:
    small = PagePool(2)
    assert isinstance(Lane.open(memory(full, small), 3 * CHUNK, CHUNK), PagesRefused)
    assert full.census() == PageCensus(8, 8, 0, 0)


def test_a_lane_that_fails_while_it_opens_gives_back_what_it_took(full: PagePool) -> None:
    """A run of pages that nobody holds is noticed in the second group."""
    lane = opened([full], 512)
    lane.extend(CHUNK)
    held = lane.share(256)
    assert held is not None
    second = PagePool(4)
    with pytest.raises(InvariantBroken, match="nobody holds"):
        wrong = LaneState(256, (held.runs[0], PageRun(0, (2,))))
        Lane.open(memory(full, second), 512, CHUNK, wrong)
    assert second.census() == PageCensus(4, 4, 0, 0)
    assert full.census() == PageCensus(8, 6, 1, 1)
    held.release([full], None)
    lane.close()


def test_closing_twice_releases_once(full: PagePool) -> None:
    lane = opened([full], 2 * CHUNK)
    lane.extend(CHUNK)
    lane.close()
    lane.close()
    assert full.available_pages == full.page_count


@pytest.mark.parametrize("rows", [0, -1, CHUNK + 1])
def test_a_lane_grows_by_one_chunk_at_most(full: PagePool, rows: int) -> None:
    with opened([full], 8 * CHUNK) as lane, pytest.raises(InvariantBroken):
        lane.extend(rows)


def test_a_lane_never_outgrows_its_promise(full: PagePool) -> None:
    with opened([full], 300) as lane:
        lane.extend(CHUNK)
        lane.extend(44)
        with pytest.raises(InvariantBroken, match="300 were promised"):
            lane.extend(1)


def test_the_block_table_stays_at_its_address(full: PagePool) -> None:
    with opened([full], 4 * CHUNK) as lane:
        address = lane.table(0).ctypes.data
        for _ in range(4):
            lane.extend(CHUNK)
        assert lane.table(0).ctypes.data == address
        assert lane.table(0).flags.c_contiguous


@pytest.mark.parametrize(
    ("window", "need", "live"), [(None, 5000, 20), (512, 5000, 4), (512, 300, 2), (500, 5000, 4)]
)
def test_a_sliding_group_needs_window_and_chunk_whatever_the_alignment(
    window: int | None, need: int, live: int
) -> None:
    assert most_live_pages(window, need, CHUNK) == live


@pytest.mark.parametrize("step", [1, 7, 255, 256])
def test_a_sliding_group_holds_every_row_in_reach_and_never_more_than_planned(
    sliding: PagePool, step: int
) -> None:
    with opened([sliding], 3000) as lane:
        length = 0
        while length < 3000:
            rows = min(step, 3000 - length)
            lane.extend(rows)
            live = {index for index, page in enumerate(pages(lane)) if page >= 0}
            reached = range(max(0, length - 512 + 1), length + rows)
            assert {row // 256 for row in reached} <= live
            assert len(live) <= 4
            length += rows
            assert sliding.census().held_pages + sliding.census().promised_pages <= 4


def test_a_shared_page_outlives_its_lane(full: PagePool) -> None:
    lane = opened([full], 1024)
    lane.extend(CHUNK)
    lane.extend(CHUNK)
    lane.extend(10)
    held = lane.share(512)
    assert held == LaneState(512, (PageRun(0, (0, 1)),))
    lane.close()
    assert full.census() == PageCensus(8, 6, 2, 0)
    resumed = Lane.open(memory(full), 1024, CHUNK, held)
    assert isinstance(resumed, Lane)
    assert resumed.length == 512
    assert pages(resumed) == [0, 1, -1, -1]
    held.release([full], None)
    resumed.extend(1)
    assert pages(resumed) == [0, 1, 2, -1]
    resumed.close()


def test_a_sliding_state_holds_only_the_pages_in_its_window(sliding: PagePool) -> None:
    with opened([sliding], 4096) as lane:
        for _ in range(8):
            lane.extend(CHUNK)
        held = lane.share(2048)
        assert held is not None
        assert (held.runs[0].first, len(held.runs[0].ids)) == (6, 2)
    resumed = Lane.open(memory(sliding), 4096, CHUNK, held)
    assert isinstance(resumed, Lane)
    held.release([sliding], None)
    for _ in range(8):
        resumed.extend(CHUNK)
    resumed.close()


def test_a_kept_sliding_state_never_starves_the_lane_it_was_cut_from() -> None:
    """The kept pages stay held when the lane drops them, so as many more are promised."""
    pool = PagePool(6, window=512)
    lane = opened([pool], 4096)
    for _ in range(4):
        lane.extend(CHUNK)
    held = lane.share(1024)
    assert held is not None
    assert not pool.fits(1)
    assert lane.share(1024) is not None
    for _ in range(12):
        lane.extend(CHUNK)
    lane.close()
    for _ in range(2):
        held.release([pool], None)
    assert pool.census() == PageCensus(6, 6, 0, 0)


def test_a_state_that_no_page_can_replace_is_not_kept_and_leaves_no_reference() -> None:
    groups = [PagePool(16), PagePool(5, window=512)]
    with opened(groups, 4096) as lane:
        for _ in range(4):
            lane.extend(CHUNK)
        before = [pool.census() for pool in groups]
        assert lane.share(1024) is None
        assert [pool.census() for pool in groups] == before
    assert [pool.census().free_pages for pool in groups] == [16, 5]


def test_a_state_whose_pages_were_dropped_is_not_kept(sliding: PagePool) -> None:
    with opened([sliding], 4096) as lane:
        for _ in range(8):
            lane.extend(CHUNK)
        assert lane.share(1024) is None


@pytest.mark.parametrize("at", [0, -1, 513])
def test_a_state_is_cut_from_rows_that_exist(full: PagePool, at: int) -> None:
    with opened([full], 1024) as lane:
        lane.extend(CHUNK)
        lane.extend(CHUNK)
        with pytest.raises(InvariantBroken, match="was cut"):
            lane.share(at)


def test_nobody_takes_an_unpromised_page(full: PagePool) -> None:
    promise = Promise(full)
    assert promise.resize(1)
    full.release(promise.take())
    assert promise.pages == 0
    with pytest.raises(InvariantBroken, match="not promised"):
        promise.take()


def test_pages_that_nobody_holds_are_neither_shared_nor_released(full: PagePool) -> None:
    with pytest.raises(InvariantBroken, match="shared"):
        full.retain(3)
    with pytest.raises(InvariantBroken, match="released"):
        full.release(3)


def test_a_census_sees_accounts_that_do_not_meet() -> None:
    pool = PagePool(2)
    pool.add_promised(3)
    with pytest.raises(InvariantBroken, match="do not add up"):
        pool.census()


def test_a_lane_whose_accounts_are_wrong_says_so_instead_of_starving() -> None:
    """A foreign promise slipped in behind the pool's back is noticed at the next drop."""
    pool = PagePool(4, window=512)
    lane = opened([pool], 4096)
    for _ in range(4):
        lane.extend(CHUNK)
    pool.add_promised(2)
    with pytest.raises(InvariantBroken, match="could not be promised"):
        lane.extend(CHUNK)
    pool.add_promised(-2)
    lane.close()
