"""States end anywhere: a partly filled page is copied, never shared; what is adopted is the lane's.

Contents are tokens in a fake device's pages, so that a page that was shared, lost or copied too
early shows as a wrong number.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from engine.cache.lane import Lane, LaneState, PagesRefused
from engine.cache.pages import (
    PagePool,
    PageRun,
    first_reached_page,
    most_state_pages,
    pages_for,
    state_pages,
    tail_pages,
)
from engine.errors import InvariantBroken
from tests.helpers.fake_device import POISON, FakeDevice, left_behind

CHUNK = 256


@pytest.fixture
def device() -> Iterator[FakeDevice]:
    """A full group of 12 pages and a sliding one of 10."""
    device = FakeDevice([PagePool(12), PagePool(10, 512)])
    yield device
    assert left_behind(device.memory) == []


@pytest.fixture
def wide() -> Iterator[FakeDevice]:
    """Room for two lanes and what is kept of them."""
    device = FakeDevice([PagePool(20), PagePool(16, 512)])
    yield device
    assert left_behind(device.memory) == []


@pytest.fixture
def full() -> Iterator[FakeDevice]:
    device = FakeDevice([PagePool(12), PagePool(12)])
    yield device
    assert left_behind(device.memory) == []


def opened(device: FakeDevice, need_rows: int, resumed: LaneState | None = None) -> Lane:
    lane = Lane.open(device.memory, need_rows, CHUNK, resumed)
    assert isinstance(lane, Lane)
    return lane


def compute(device: FakeDevice, lane: Lane, rows: int, first: int = 0) -> None:
    """Extend to ``rows`` rows whose tokens are their positions plus ``first``."""
    while lane.length < rows:
        start = lane.length
        lane.extend(min(CHUNK - start % CHUNK, rows - start))
        write(device, lane, range(start, lane.length), first)


def write(device: FakeDevice, lane: Lane, positions: range, first: int = 0) -> None:
    at = np.arange(positions.start, positions.stop)
    for group, rows in enumerate(device.rows):
        pages = device.seen(lane.table(group))[at // 256]
        assert all(device.memory.pools[group].references(int(page)) == 1 for page in pages)
        rows[pages, at % 256] = at + first


def tokens(device: FakeDevice, group: int, pages: dict[int, int], rows: int) -> list[int]:
    """The tokens of the rows that row ``rows`` reaches."""
    window = device.memory.pools[group].window
    at = np.arange(0 if window is None else max(0, rows - window + 1), rows)
    ids = [pages[int(index)] for index in at // 256]
    return [int(token) for token in device.rows[group][ids, at % 256]]


def of_lane(device: FakeDevice, lane: Lane) -> list[list[int]]:
    tables = [dict(enumerate(device.seen(lane.table(g)).tolist())) for g in (0, 1)]
    return [tokens(device, group, table, lane.length) for group, table in enumerate(tables)]


def of_state(device: FakeDevice, state: LaneState) -> list[list[int]]:
    runs = [dict(enumerate(run.ids, run.first)) for run in state.runs]
    return [tokens(device, group, run, state.rows) for group, run in enumerate(runs)]


def expected(rows: int) -> list[list[int]]:
    return [list(range(rows)), list(range(max(0, rows - 511), rows))]


def close(device: FakeDevice, state: LaneState | None) -> None:
    assert state is not None
    state.release(device.memory.pools, device.memory.slots)


@pytest.mark.parametrize("at", [1, 64, 255, 256, 300, 511, 513, 1000])
def test_a_state_keeps_its_rows_whatever_the_lane_writes_afterwards(
    device: FakeDevice, at: int
) -> None:
    lane = opened(device, 1500)
    compute(device, lane, at)
    state = lane.share(at)
    assert state is not None
    compute(device, lane, 1500, first=5000)
    lane.close()
    assert of_state(device, state) == expected(at)
    for group, run in enumerate(state.runs):
        window = device.memory.pools[group].window
        assert run.first == first_reached_page(window, at)
        assert len(run.ids) == state_pages(window, at)
    close(device, state)


@pytest.mark.parametrize("at", [1, 64, 300, 511, 513, 1000])
def test_lanes_that_resume_inside_a_page_write_pages_of_their_own(
    device: FakeDevice, at: int
) -> None:
    with opened(device, 1000) as lane:
        compute(device, lane, at)
        state = lane.share(at)
    with opened(device, 1000, state) as first, opened(device, 1000, state) as second:
        assert first.length == second.length == at
        assert of_lane(device, first) == of_lane(device, second) == expected(at)
        compute(device, first, min(at + 50, 1000), first=5000)
        assert of_lane(device, second) == expected(at)
        assert state is not None and of_state(device, state) == expected(at)
    close(device, state)


def test_a_state_may_end_before_the_lane_does(device: FakeDevice) -> None:
    """The copy has the page's later rows, too; nobody reads them."""
    with opened(device, 700) as lane:
        compute(device, lane, 700)
        states = [lane.share(at) for at in (600, 576, 256)]
    for state, at in zip(states, (600, 576, 256), strict=True):
        assert state is not None
        assert of_state(device, state) == expected(at)
        close(device, state)


def test_a_copy_takes_no_page_that_is_promised(device: FakeDevice) -> None:
    with opened(device, 11 * CHUNK) as lane:
        compute(device, lane, 300)
        first = lane.share(300)
        assert first is not None
        before = [pool.census() for pool in device.memory.pools]
        assert lane.share(300) is None, "the full group has no page left beyond the promise"
        assert [pool.census() for pool in device.memory.pools] == before
        compute(device, lane, 11 * CHUNK)
    close(device, first)


def test_a_promise_covers_the_copy_that_a_resume_makes(device: FakeDevice) -> None:
    with opened(device, 600) as lane:
        compute(device, lane, 300)
        state = lane.share(300)
    pool = device.memory.pools[0]
    refused = Lane.open(device.memory, 13 * CHUNK, CHUNK, state)
    assert refused == PagesRefused(group=0, needed_pages=12, available_pages=10)
    assert pool.available_pages == 10
    with opened(device, 11 * CHUNK, state) as lane:
        assert pool.available_pages == 0
        compute(device, lane, 11 * CHUNK)
    close(device, state)


@pytest.mark.parametrize("rows", [1, 255, 256, 511, 512, 513, 1000, 1500])
@pytest.mark.parametrize("resumed", [0, 64, 256, 300, 512])
def test_what_is_adopted_is_the_lane_s_alone_and_reaches_what_later_rows_need(
    device: FakeDevice, rows: int, resumed: int
) -> None:
    if rows <= resumed:
        with opened(device, 1600) as lane:
            compute(device, lane, resumed)
            with pytest.raises(InvariantBroken, match="adopted"):
                lane.adopt(rows)
        return
    state = None
    if resumed:
        with opened(device, resumed) as lane:
            compute(device, lane, resumed)
            state = lane.share(resumed)
    with opened(device, 1600, state) as lane:
        runs = lane.adopt(rows)
        assert lane.length == rows
        for group, run in enumerate(runs):
            window = device.memory.pools[group].window
            first = max(first_reached_page(window, rows), resumed // 256)
            assert run == PageRun(first, tuple(lane.table(group)[first : pages_for(rows)].tolist()))
            for index, page in enumerate(run.ids, run.first):
                assert device.memory.pools[group].references(page) == 1
                content = np.arange(index * 256, index * 256 + 256, dtype=np.int64)
                content[content >= rows] = POISON
                device.write_page(group, page, memoryview(content.tobytes()))
        assert of_lane(device, lane) == expected(rows)
        compute(device, lane, 1600)
        assert of_lane(device, lane) == expected(1600)
    if state is not None:
        assert of_state(device, state) == expected(resumed)
        close(device, state)


def test_no_more_is_adopted_than_was_promised(device: FakeDevice) -> None:
    with opened(device, 500) as lane:
        with pytest.raises(InvariantBroken, match="500 were promised"):
            lane.adopt(501)
        lane.adopt(500)


def test_a_state_s_first_pages_are_a_state(full: FakeDevice) -> None:
    with opened(full, 700) as lane:
        compute(full, lane, 700)
        state = lane.share(700)
    assert state is not None
    part = state.cut(512)
    assert part == LaneState(512, tuple(PageRun(0, run.ids[:2]) for run in state.runs))
    with opened(full, 700, part) as lane:
        assert lane.length == 512
        close(full, state)
        compute(full, lane, 700, first=3000)
        assert [int(token) for token in of_lane(full, lane)[0][510:514]] == [510, 511, 3512, 3513]


@pytest.mark.parametrize("rows", [0, 100, 768])
def test_a_state_is_cut_at_whole_pages_only(full: FakeDevice, rows: int) -> None:
    with opened(full, 700) as lane:
        compute(full, lane, 700)
        state = lane.share(700)
        assert state is not None
        with pytest.raises(InvariantBroken, match="was cut at"):
            state.cut(rows)
    close(full, state)


def test_a_state_without_its_beginning_or_with_a_recurrent_part_cannot_be_cut() -> None:
    for state in (LaneState(1024, (PageRun(2, (5, 6)),)), LaneState(256, (PageRun(0, (1,)),), 0)):
        with pytest.raises(InvariantBroken, match="not whole from row 0"):
            state.cut(256)


def test_a_lane_gives_up_pages_that_a_state_has_already(wide: FakeDevice) -> None:
    with opened(wide, 1500) as first, opened(wide, 1500) as second:
        compute(wide, first, 700)
        compute(wide, second, 650)
        state = first.share(700)
        assert state is not None
        held = [pool.census().held_pages for pool in wide.memory.pools]
        assert second.swap(state) == 4, "two whole pages in each of two groups"
        assert [pool.census().held_pages for pool in wide.memory.pools] == [h - 2 for h in held]
        assert second.table(0)[:2].tolist() == list(state.runs[0].ids[:2])
        assert second.table(0)[2] not in state.runs[0].ids, "a page that is written is not shared"
        assert second.swap(state) == 0
        assert of_lane(wide, second) == expected(650)
        first.close()
        close(wide, state)
        compute(wide, second, 1500)
        assert of_lane(wide, second) == expected(1500)


def test_a_swap_with_a_state_of_other_rows_of_the_window_changes_what_both_hold(
    wide: FakeDevice,
) -> None:
    """The state has dropped what the lane still holds, and the other way round."""
    with opened(wide, 1500) as first, opened(wide, 1500) as second:
        compute(wide, first, 1100)
        compute(wide, second, 500)
        late = first.share(1100)
        assert late is not None and late.runs[1].first == 2
        assert second.swap(late) == 1, "the one whole page of the full group"
        early = second.share(256)
        compute(wide, first, 1500)
        assert early is not None
        assert first.swap(early) == 0, "the full group's page is the same; the other is dropped"
        close(wide, early)
        close(wide, late)


@pytest.mark.parametrize("window", [None, 1, 2, 64, 65, 100, 256, 257, 512, 513, 1024])
@pytest.mark.parametrize("grid", [1, 16, 64, 192, 256, 512])
def test_the_planner_s_count_of_a_state_s_pages_is_the_most_that_any_takes(
    window: int | None, grid: int
) -> None:
    need = 256 * grid
    most = max(state_pages(window, at) for at in range(grid, need + 1, grid))
    assert most_state_pages(window, need, grid) == most
    assert tail_pages(grid) == (0 if grid % 256 == 0 else 1)
