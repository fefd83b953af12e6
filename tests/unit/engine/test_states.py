"""Kept states on the device: found at the longest prefix, shared, and gone when room is needed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.cache.lane import Lane, PagesRefused, SlotsRefused
from engine.cache.pages import PageCensus, first_reached_page
from engine.errors import InvariantBroken
from engine.states.device.held import HeldStates
from engine.states.lookup import REMEMBERED_LOSSES
from engine.states.marks import choose_marks
from engine.states.records import Role
from tests.helpers.state_world import World, tokens

GRID = 64


@pytest.fixture
def world() -> Iterator[World]:
    """A model whose states can be cut, with 12 pages."""
    world = World([(12, None)])
    yield world
    world.close()


@pytest.fixture
def sliding() -> Iterator[World]:
    """A model with a full and a sliding group, whose states cannot be cut."""
    world = World([(30, None), (16, 512)])
    yield world
    world.close()


@pytest.fixture
def recurrent() -> Iterator[World]:
    """A model with 4 recurrent slots."""
    world = World([(30, None)], slots=4)
    yield world
    world.close()


@pytest.mark.parametrize("kind", ["world", "sliding", "recurrent"])
def test_the_longest_state_that_a_prompt_begins_with_is_found(
    kind: str, request: pytest.FixtureRequest
) -> None:
    world: World = request.getfixturevalue(kind)
    ids = tokens(1100)
    _, kept = world.turn(ids, (256, 704, 1088))
    assert kept == {256: True, 704: True, 1088: True}
    longer = np.concatenate([ids, tokens(50, 1)])
    other = longer.copy()
    other[900] += 1
    # A state that can be cut serves at its whole pages too: 768 of the first 900 rows.
    cut = 768 if kind == "world" else 704
    for wanted, at in [(longer, 1088), (other, cut), (ids[:1088], 1024 if cut == 768 else 704)]:
        found = world.find(wanted)
        assert (found.at, found.tier, found.reason) == (at, "device", None)
        with world.resumed(wanted) as (lane, resume, _):
            assert (lane.length, resume.total_bytes, resume.tier) == (at, 0, "device")


def test_a_state_is_cut_at_whole_pages_only_where_nothing_else_stands_in_it() -> None:
    for world, at in [
        (World([(12, None)]), 512),
        (World([(12, None), (12, None)]), 512),
        (World([(12, None), (12, 512)]), 0),
        (World([(12, None)], slots=3), 0),
    ]:
        ids = tokens(900)
        world.turn(ids, (832,))
        other = ids.copy()
        other[600:] += 1
        assert world.find(other).at == at
        with world.resumed(other) as (lane, _, _):
            assert lane.length == at
        world.close()


def test_a_prompt_always_has_a_row_left_to_compute(world: World) -> None:
    ids = tokens(320)
    world.turn(np.append(ids, np.int32(1)), (320,))
    assert world.find(ids).at == 256
    assert world.find(ids[:64]).reason == "short-prompt"
    assert world.find(np.append(ids, np.int32(2))).at == 320


def test_each_miss_has_its_reason(world: World) -> None:
    ids = tokens(600)
    assert world.find(ids[:64]).reason == "short-prompt"
    assert world.find(ids).reason == "nothing-kept"
    world.turn(ids, (576,))
    assert world.find(tokens(600, 9)).reason == "no-common-prefix"
    assert world.store.reclaim(PagesRefused(0, 12, 9))
    assert world.find(ids).reason == "evicted"
    world.turn(ids, (576,))
    assert world.find(ids).reason is None
    assert world.find(ids).afresh("no-room").reason == "no-room"


def test_little_of_a_history_has_a_reason_and_all_of_it_has_none(sliding: World) -> None:
    """Rows after the start of the last user message are no history, however many they are."""
    ids = tokens(900)
    sliding.turn(ids, {320: Role.REWIND, 832: Role.END}, "chat")
    edited = np.concatenate([ids[:500], tokens(400, 1)])
    assert sliding.find(edited, "chat", 330).reason is None
    assert sliding.find(edited, "chat", 320).reason is None
    assert sliding.find(edited, "chat", 500).reason == "edited"
    assert sliding.find(edited, "other", 500).reason == "no-common-prefix"
    assert sliding.find(np.concatenate([ids, ids]), "chat", 890).reason is None


def test_keeping_what_is_kept_takes_no_page(world: World) -> None:
    ids = tokens(600)
    world.turn(ids, (512,), "one")
    before = world.memory.pools[0].census()
    found = world.find(ids)
    lane = Lane.open(world.memory, 600, 256)
    assert isinstance(lane, Lane)
    with lane:
        world.compute(lane, ids[:512])
        assert world.store.keep(lane, ids[:512], Role.REWIND, "two")
        world.check(lane, ids[:512])
        # The lane gave up its own two pages for those of the state.
        assert world.memory.pools[0].census().held_pages == before.held_pages
    assert world.memory.pools[0].census() == before
    census = world.store.census()
    assert (census.states, census.kept) == (1, 1)
    assert found.state is not None
    assert found.state.conversations == {"one", "two"}


def test_a_lane_takes_the_pages_of_a_state_that_begins_alike(sliding: World) -> None:
    ids = tokens(1000)
    sliding.turn(ids, (960,))
    other = ids.copy()
    other[800:] += 1
    lane = Lane.open(sliding.memory, 1000, 256)
    assert isinstance(lane, Lane)
    with lane:
        sliding.compute(lane, other[:960])
        before = sliding.memory.pools[0].census().held_pages
        assert sliding.store.keep(lane, other[:960])
        sliding.check(lane, other[:960])
        # Three whole pages are alike; the state takes a copy of its last, partly filled one.
        assert sliding.memory.pools[0].census().held_pages == before - 3 + 1


def test_the_least_recently_used_state_goes_first(world: World) -> None:
    first, second = tokens(577, 1), tokens(577, 2)
    for ids in (first, second):
        world.turn(ids, (512,))
    with world.resumed(first):
        pass
    assert world.store.reclaim(PagesRefused(0, 10, 8))
    assert world.find(second).reason == "evicted"
    assert world.find(first).at == 512


def test_what_is_about_to_be_resumed_is_never_evicted(world: World) -> None:
    ids = tokens(577)
    world.turn(ids, (512,))
    found = world.find(ids)
    with world.store.pinned(found):
        assert world.store.census().pinned == 1
        assert not world.store.reclaim(PagesRefused(0, 11, 10))
    with world.store.pinned(world.find(tokens(577, 5))):
        assert world.store.reclaim(PagesRefused(0, 11, 10))


def test_a_newer_state_goes_while_the_oldest_is_pinned(world: World) -> None:
    first, second = tokens(577, 1), tokens(577, 2)
    for ids in (first, second):
        world.turn(ids, (512,))
    with world.store.pinned(world.find(first)):
        assert world.store.reclaim(PagesRefused(0, 10, 8))
    assert world.find(second).reason == "evicted"
    assert world.find(first).at == 512


def test_nothing_is_evicted_where_that_would_not_help(world: World) -> None:
    """A page that a running stream holds too is not freed by evicting the state."""
    ids = tokens(577)
    world.turn(ids, (512,))
    with world.resumed(ids):
        free = world.memory.pools[0].available_pages
        assert not world.store.reclaim(PagesRefused(0, free + 1, free))
        assert world.store.census().states == 1
        assert world.store.reclaim(PagesRefused(0, free, free))
        assert world.store.census().states == 1


def test_a_resumed_stream_holds_its_pages_after_the_state_is_gone(world: World) -> None:
    ids = tokens(577)
    world.turn(ids, (512,))
    with world.resumed(ids) as (lane, _, _):
        world.store.clear(None)
        world.poison_free_pages()
        world.check(lane, ids[:512])
        assert world.memory.pools[0].census() == PageCensus(12, 9, 2, 1)


def test_a_state_that_is_forgotten_while_it_is_pinned_frees_its_memory_at_the_last_pin(
    world: World,
) -> None:
    ids = tokens(577)
    world.turn(ids, (512,))
    found = world.find(ids)
    with world.store.pinned(found), world.store.pinned(found):
        world.store.clear(None)
        assert world.find(ids).at == 0
        assert world.memory.pools[0].census().held_pages == 2
        assert world.store.census().pages == 2
    assert world.memory.pools[0].census().held_pages == 0


@pytest.mark.parametrize("length", [0, 100, 300])
def test_a_state_off_the_grid_breaks_a_promise(world: World, length: int) -> None:
    lane = Lane.open(world.memory, 512, 256)
    assert isinstance(lane, Lane)
    with lane, pytest.raises(InvariantBroken, match="not on the grid"):
        world.store.keep(lane, tokens(length))


def test_a_sliding_state_displaces_old_ones_rather_than_being_refused() -> None:
    world = World([(60, None), (13, 512)])
    for seed in range(5):
        assert world.turn(tokens(1100, seed), (1088,))[1] == {1088: True}
    assert world.store.census().evicted > 0
    state = world.find(tokens(1100, 4)).state
    assert state is not None
    assert [(run.first, len(run.ids)) for run in state.hold.runs] == [(0, 5), (2, 3)]
    assert world.find(tokens(1100, 0)).reason == "evicted"
    world.close()


def test_a_state_that_cannot_be_held_is_refused_and_counted() -> None:
    world = World([(9, None), (5, 512)])
    assert world.turn(tokens(2040), (1024,))[1] == {1024: False}
    census = world.store.census()
    assert (census.refused, census.states, census.kept) == (1, 0, 0)
    world.close()


def test_slots_are_given_to_new_states_one_old_one_at_a_time(recurrent: World) -> None:
    for seed in range(6):
        assert recurrent.turn(tokens(300, seed), (256,))[1] == {256: True}
    census = recurrent.store.census()
    assert (census.states, census.slots, census.evicted) == (3, 3, 3)
    lanes = []
    for _ in range(4):
        lane = recurrent.open(recurrent.find(tokens(300, 99)), 300)
        assert isinstance(lane, Lane)
        lanes.append(lane)
    assert recurrent.store.census().slots == 0
    assert not recurrent.store.reclaim(SlotsRefused(4))
    for lane in lanes:
        lane.close()


def test_a_store_without_slots_is_never_asked_for_one(world: World) -> None:
    with pytest.raises(InvariantBroken, match="has none"):
        world.store.reclaim(SlotsRefused(0))


def test_one_key_stands_for_one_state(world: World) -> None:
    world.turn(tokens(300), (256,))
    held = HeldStates(world.memory)
    (state,) = world.store._held
    held.add(state)
    with pytest.raises(InvariantBroken, match="kept twice"):
        held.add(state)


def test_only_so_many_losses_are_remembered(world: World) -> None:
    losses = world.store._lookup.losses
    for number in range(REMEMBERED_LOSSES + 1):
        losses.add(number.to_bytes(4, "little"), "evicted")
    first, second = ((number).to_bytes(4, "little") for number in (0, 1))
    assert losses.reason([first]) is None
    assert losses.reason([first, second]) == "evicted"
    losses.add(second, "damaged")
    losses.add(first, "evicted")
    assert losses.reason([second]) == "damaged"


def test_marks_beyond_what_can_be_held_are_refused_before_the_pass(recurrent: World) -> None:
    """With room for one state the end of the history has it, not the rewind that comes first."""
    ids = tokens(600)
    lanes = [recurrent.open(recurrent.find(ids), 600) for _ in range(3)]
    marks = {128: Role.SHARED, 256: Role.REWIND, 512: Role.END}
    assert recurrent.store.reserve(ids, marks) == {512: Role.END}
    assert recurrent.store.census().refused == 2
    for lane in lanes:
        assert isinstance(lane, Lane)
        lane.close()
    assert recurrent.store.reserve(ids, marks) == marks
    recurrent.turn(ids, {256: Role.REWIND})
    lanes = [recurrent.open(recurrent.find(tokens(9, 1)), 600) for _ in range(3)]
    with recurrent.store.pinned(recurrent.find(ids)):
        # What is held already needs no room; for another one there is none.
        assert recurrent.store.reserve(ids, marks) == {256: Role.REWIND}
    for lane in lanes:
        assert isinstance(lane, Lane)
        lane.close()


def test_pages_are_reserved_for_marks_as_slots_are(sliding: World) -> None:
    ids = tokens(2000)
    lane = sliding.open(sliding.find(ids), 2560)
    assert isinstance(lane, Lane)
    with lane:
        marks = {1984: Role.END, 1024: Role.REWIND, 320: Role.SHARED}
        # 16 pages, of which the lane was promised 4 and more; each state needs up to 3.
        found = sliding.store.reserve(ids, marks)
        assert list(found) == [1024, 1984] or list(found) == [320, 1024, 1984]
    assert sliding.store.reserve(ids, marks) == dict(sorted(marks.items()))


@settings(deadline=None)
@given(
    length=st.integers(1, 3000),
    wanted=st.lists(st.integers(0, 3000), max_size=4),
    resumed=st.integers(0, 46),
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
