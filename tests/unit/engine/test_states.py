"""Kept states resume at their own position only, share pages, and go when pages are needed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine.cache.lane import Lane, LaneMemory, PagesRefused
from engine.cache.pages import PageCensus, PagePool, first_reached_page
from engine.errors import InvariantBroken
from engine.states.marks import choose_marks
from engine.states.store import REMEMBERED_EVICTIONS, StateStore
from tests.helpers.fake_device import FakeDevice

GRID = 256


@pytest.fixture
def pool() -> Iterator[PagePool]:
    pool = PagePool(8)
    yield pool
    assert pool.census() == PageCensus(8, 8, 0, 0)


@pytest.fixture
def store(pool: PagePool) -> Iterator[StateStore]:
    store = StateStore([pool], GRID)
    yield store
    store.close()
    assert (store.census().states, store.census().pages, store.census().pinned) == (0, 0, 0)


def memory(pools: list[PagePool]) -> LaneMemory:
    return FakeDevice(pools).memory


def prompt(length: int, seed: int = 0) -> NDArray[np.int32]:
    return np.random.default_rng(seed).integers(0, 1000, length).astype(np.int32)


def keep(
    store: StateStore, pools: list[PagePool], ids: NDArray[np.int32], at: tuple[int, ...]
) -> list[bool]:
    """Compute ``ids`` in a lane of its own as a prompt pass does, keeping states on the way."""
    lane = Lane.open(memory(pools), len(ids), GRID)
    assert isinstance(lane, Lane), lane
    with lane:
        kept = []
        while lane.length < len(ids):
            lane.extend(min(GRID, len(ids) - lane.length))
            if lane.length in at:
                kept.append(store.keep(lane, ids[: lane.length]))
        return kept


def test_the_longest_prefix_on_the_grid_is_found(store: StateStore, pool: PagePool) -> None:
    ids = prompt(1100)
    assert keep(store, [pool], ids, (256, 768, 1024)) == [True, True, True]
    assert pool.census().held_pages == 4
    longer = np.concatenate([ids, prompt(50, 1)])
    other = longer.copy()
    other[900] += 1
    for wanted, at in [(longer, 1024), (other, 768), (ids[:1024], 768), (ids[:300], 256)]:
        found = store.find(wanted)
        assert found.state is not None
        assert (found.state.at, found.reason) == (at, None)


def test_a_prompt_always_has_a_row_left_to_compute(store: StateStore, pool: PagePool) -> None:
    ids = prompt(256)
    keep(store, [pool], np.append(ids, np.int32(1)), (256,))
    assert store.find(ids).reason == "short-prompt"
    found = store.find(np.append(ids, np.int32(2)))
    assert found.state is not None
    assert found.state.at == 256


def test_each_miss_has_its_reason(store: StateStore, pool: PagePool) -> None:
    ids = prompt(600)
    assert store.find(ids[:256]).reason == "short-prompt"
    assert store.find(ids).reason == "nothing-kept"
    keep(store, [pool], ids, (512,))
    assert store.find(prompt(600, 9)).reason == "no-common-prefix"
    assert store.reclaim(PagesRefused(0, 8, 6))
    assert store.find(ids).reason == "evicted"
    keep(store, [pool], ids, (512,))
    assert store.find(ids).reason is None


def test_keeping_what_is_kept_takes_no_page(store: StateStore, pool: PagePool) -> None:
    ids = prompt(600)
    assert keep(store, [pool], ids, (512,)) == [True]
    before = pool.census()
    assert keep(store, [pool], ids, (512,)) == [True]
    assert pool.census() == before
    assert (store.census().states, store.census().kept) == (1, 1)


def test_the_least_recently_used_state_goes_first(store: StateStore, pool: PagePool) -> None:
    first, second, third = prompt(513, 1), prompt(513, 2), prompt(513, 3)
    for ids in (first, second):
        keep(store, [pool], ids, (512,))
    assert store.find(first).state is not None
    assert store.reclaim(PagesRefused(0, 5, 4))
    assert store.find(second).reason == "evicted"
    assert store.find(first).state is not None
    assert store.find(third).reason == "no-common-prefix"


def test_a_pinned_state_is_never_evicted(store: StateStore, pool: PagePool) -> None:
    ids = prompt(513)
    keep(store, [pool], ids, (512,))
    found = store.find(ids)
    with store.pinned(found.state):
        assert store.census().pinned == 1
        assert not store.reclaim(PagesRefused(0, 7, 6))
    with store.pinned(None):
        assert store.reclaim(PagesRefused(0, 7, 6))


def test_a_newer_state_goes_while_the_oldest_is_pinned(store: StateStore, pool: PagePool) -> None:
    first, second = prompt(513, 1), prompt(513, 2)
    for ids in (first, second):
        keep(store, [pool], ids, (512,))
    pinned = store.find(first).state
    store.find(second)
    with store.pinned(pinned):
        assert store.reclaim(PagesRefused(0, 6, 4))
    assert store.find(second).reason == "evicted"
    assert store.find(first).state is pinned


def test_nothing_is_evicted_where_that_would_not_help(store: StateStore, pool: PagePool) -> None:
    """A page that a running stream holds too is not freed by evicting the state."""
    ids = prompt(513)
    keep(store, [pool], ids, (512,))
    state = store.find(ids).state
    assert state is not None
    lane = Lane.open(memory([pool]), 600, GRID, state.held)
    assert isinstance(lane, Lane)
    with lane:
        assert not store.reclaim(PagesRefused(0, 6, 5))
        assert store.census().states == 1
        assert store.reclaim(PagesRefused(0, 5, 5))
        assert store.census().states == 1


def test_a_resumed_stream_holds_its_pages_after_the_state_is_gone(
    store: StateStore, pool: PagePool
) -> None:
    ids = prompt(513)
    keep(store, [pool], ids, (512,))
    state = store.find(ids).state
    assert state is not None
    lane = Lane.open(memory([pool]), 513, GRID, state.held)
    assert isinstance(lane, Lane)
    with lane:
        store.close()
        assert pool.census() == PageCensus(8, 5, 2, 1)


@pytest.mark.parametrize("length", [0, 100, 300])
def test_a_state_off_the_grid_breaks_a_promise(
    store: StateStore, pool: PagePool, length: int
) -> None:
    lane = Lane.open(memory([pool]), 512, GRID)
    assert isinstance(lane, Lane)
    with lane, pytest.raises(InvariantBroken, match="not on the grid"):
        store.keep(lane, prompt(length))


def test_a_sliding_state_displaces_old_ones_rather_than_being_refused() -> None:
    pools = [PagePool(40), PagePool(8, window=512)]
    store = StateStore(pools, GRID)
    for seed in range(5):
        assert keep(store, pools, prompt(1030, seed), (1024,)) == [True]
    assert store.census().evicted == 3
    state = store.find(prompt(1030, 4)).state
    assert state is not None
    assert [(run.first, len(run.ids)) for run in state.held.runs] == [(0, 4), (2, 2)]
    assert store.find(prompt(1030, 0)).reason == "evicted"
    store.close()
    assert [pool.census().free_pages for pool in pools] == [40, 8]


def test_a_sliding_state_that_cannot_be_held_is_refused_and_counted() -> None:
    pools = [PagePool(8), PagePool(5, window=512)]
    store = StateStore(pools, GRID)
    lane = Lane.open(memory(pools), 2048, GRID)
    assert isinstance(lane, Lane)
    with lane:
        for _ in range(4):
            lane.extend(GRID)
        assert not store.keep(lane, prompt(1024))
    assert (store.census().refused, store.census().states) == (1, 0)
    assert [pool.census().free_pages for pool in pools] == [8, 5]


def test_only_so_many_evictions_are_remembered(store: StateStore, pool: PagePool) -> None:
    first = prompt(257, 10_000)
    keep(store, [pool], first, (256,))
    store.close()
    assert store.find(first).reason == "evicted"
    for seed in range(REMEMBERED_EVICTIONS):
        keep(store, [pool], prompt(257, seed), (256,))
        store.close()
    assert store.find(first).reason == "nothing-kept"


@settings(deadline=None)
@given(
    length=st.integers(1, 3000),
    wanted=st.lists(st.integers(0, 3000), max_size=4),
    resumed=st.integers(0, 11),
)
def test_marks_lie_on_the_grid_between_what_is_resumed_and_the_last_token(
    length: int, wanted: list[int], resumed: int
) -> None:
    marks = choose_marks(length, wanted, GRID, resumed * GRID)
    assert list(marks) == sorted(set(marks))
    assert all(at % GRID == 0 and resumed * GRID < at < length for at in marks)
    last = (length - 1) // GRID * GRID
    assert (last in marks) == (last > resumed * GRID)
    for place in wanted:
        at = place // GRID * GRID
        assert (at in marks) == (resumed * GRID < at < length)


@pytest.mark.parametrize(
    ("window", "at", "page"),
    [(None, 5000, 0), (512, 512, 0), (512, 768, 1), (512, 767, 1), (1, 256, 1)],
)
def test_the_first_reached_page_holds_row_at_minus_window_plus_one(
    window: int | None, at: int, page: int
) -> None:
    assert first_reached_page(window, at) == page
