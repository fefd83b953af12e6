"""A recurrent slot has one owner, begins cleared or as a copy, and is given back exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from engine.cache.lane import Lane, LaneMemory, LaneState, PagesRefused, SlotsRefused
from engine.cache.pages import PageCensus, PagePool, PageRun
from engine.cache.recurrent import RecurrentArena
from engine.cache.slots import SlotCensus, SlotPool
from engine.errors import InvariantBroken, MemoryRefused
from engine.memory.ledger import Ledger
from engine.memory.pools import RAM
from engine.models.spec import RecurrentSpec
from engine.states.store import StateStore
from tests.helpers.fake_device import FakeDevice
from tests.helpers.fake_slots import POISON, START, FakeSlots, chain_of

CHUNK = 256
SPEC = RecurrentSpec(layer_count=3, state_shape=(5, 7, 6), tail_shape=(3, 11))


@pytest.fixture
def pool() -> Iterator[PagePool]:
    pool = PagePool(24)
    yield pool
    assert pool.census() == PageCensus(24, 24, 0, 0)


@pytest.fixture
def content() -> FakeSlots:
    return FakeSlots(3)


@pytest.fixture
def slots(content: FakeSlots) -> Iterator[SlotPool]:
    slots = SlotPool(content)
    yield slots
    assert slots.census() == SlotCensus(3, 3)


def memory(pool: PagePool, slots: SlotPool) -> LaneMemory:
    return replace(FakeDevice([pool]).memory, slots=slots)


def opened(pool: PagePool, slots: SlotPool, held: LaneState | None = None) -> Lane:
    lane = Lane.open(memory(pool, slots), 1024, CHUNK, held)
    assert isinstance(lane, Lane)
    return lane


def slot_of(lane: Lane) -> int:
    assert lane.recurrent_slot is not None
    return lane.recurrent_slot


def test_a_fresh_lane_s_slot_is_cleared_whatever_it_held(
    pool: PagePool, slots: SlotPool, content: FakeSlots
) -> None:
    assert content.chains[0] == POISON
    with opened(pool, slots) as lane:
        assert content.chains[slot_of(lane)] == START
        content.extend(slot_of(lane), [1, 2])
    with opened(pool, slots) as lane:
        assert content.chains[slot_of(lane)] == START


def test_a_lane_without_slots_has_none(pool: PagePool) -> None:
    lane = Lane.open(FakeDevice([pool]).memory, 1024, CHUNK)
    assert isinstance(lane, Lane)
    assert lane.recurrent_slot is None
    lane.close()


def test_a_resumed_lane_goes_on_from_a_copy(
    pool: PagePool, slots: SlotPool, content: FakeSlots
) -> None:
    with opened(pool, slots) as lane:
        lane.extend(CHUNK)
        content.extend(slot_of(lane), [5])
        held = lane.share(CHUNK)
        assert held is not None and held.slot is not None
        lane.extend(1)
        content.extend(slot_of(lane), [6])
    with opened(pool, slots, held) as resumed:
        content.extend(slot_of(resumed), [7])
        assert content.chains[slot_of(resumed)] == chain_of([5, 7])
        assert content.chains[held.slot] == chain_of([5])
    held.release([pool], slots)


def test_no_slot_is_a_refusal_that_takes_nothing(pool: PagePool, slots: SlotPool) -> None:
    lanes = [opened(pool, slots) for _ in range(3)]
    before = pool.census()
    assert Lane.open(memory(pool, slots), 1024, CHUNK) == SlotsRefused(slot_count=3)
    assert pool.census() == before
    for lane in lanes:
        lane.close()
        lane.close()


def test_too_few_pages_take_no_slot(pool: PagePool, slots: SlotPool) -> None:
    assert isinstance(Lane.open(memory(pool, slots), 25 * CHUNK, CHUNK), PagesRefused)
    assert slots.free_slots == 3


@pytest.mark.parametrize("resumes", [False, True])
def test_a_lane_whose_slot_cannot_be_filled_takes_nothing(
    pool: PagePool, slots: SlotPool, content: FakeSlots, resumes: bool
) -> None:
    with opened(pool, slots) as lane:
        lane.extend(CHUNK)
        held = lane.share(CHUNK)
    assert held is not None
    before = pool.census(), slots.census()
    content.fault = RuntimeError("injected")
    with pytest.raises(RuntimeError, match="injected"):
        Lane.open(memory(pool, slots), 1024, CHUNK, held if resumes else None)
    assert (pool.census(), slots.census()) == before
    held.release([pool], slots)


def test_a_lane_that_fails_in_its_pages_gives_the_slot_back(
    pool: PagePool, slots: SlotPool
) -> None:
    with opened(pool, slots) as lane:
        lane.extend(CHUNK)
        held = lane.share(CHUNK)
    assert held is not None
    wrong = LaneState(CHUNK, (PageRun(0, (20,)),), held.slot)
    with pytest.raises(InvariantBroken, match="nobody holds"):
        Lane.open(memory(pool, slots), 1024, CHUNK, wrong)
    assert slots.free_slots == 2
    held.release([pool], slots)


def test_a_state_that_cannot_be_copied_leaves_no_reference(
    pool: PagePool, slots: SlotPool, content: FakeSlots
) -> None:
    with opened(pool, slots) as lane:
        lane.extend(CHUNK)
        before = pool.census(), slots.census()
        content.fault = RuntimeError("injected")
        with pytest.raises(RuntimeError, match="injected"):
            lane.share(CHUNK)
        assert (pool.census(), slots.census()) == before
        others = [opened(pool, slots) for _ in range(2)]
        before = pool.census(), slots.census()
        assert lane.share(CHUNK) is None
        assert (pool.census(), slots.census()) == before
        for other in others:
            other.close()


def test_a_recurrent_state_is_only_cut_where_it_stands(pool: PagePool, slots: SlotPool) -> None:
    with opened(pool, slots) as lane:
        lane.extend(CHUNK)
        lane.extend(1)
        with pytest.raises(InvariantBroken, match="after 257 rows is not of 256"):
            lane.share(CHUNK)


def test_a_state_without_its_recurrent_part_is_not_resumed(pool: PagePool, slots: SlotPool) -> None:
    with opened(pool, slots) as lane, pytest.raises(InvariantBroken, match="recurrent part"):
        Lane.open(memory(pool, slots), 1024, CHUNK, LaneState(0, (PageRun(0, ()),)))
    assert lane.recurrent_slot is None


@pytest.mark.parametrize("slot", [0, -1, 3])
def test_a_slot_that_nobody_owns_is_neither_released_nor_copied(slots: SlotPool, slot: int) -> None:
    with pytest.raises(InvariantBroken, match="although nobody owns it"):
        slots.release(slot)
    with pytest.raises(InvariantBroken, match="although nobody owns it"):
        slots.take_copy(0)


def test_a_census_sees_a_slot_that_is_free_twice(content: FakeSlots) -> None:
    broken = SlotPool(content)
    broken._free.append(2)
    with pytest.raises(InvariantBroken, match="do not add up"):
        broken.census()


def test_the_arena_holds_what_the_plan_counts_and_copies_one_slot() -> None:
    """Memory of a slot begins as anything; clearing and copying touch no other slot."""
    size = 4 * 3 * (5 * 7 * 6 + 3 * 11)
    ledger = Ledger({RAM: 4 * size})
    with RecurrentArena(SPEC, 4, ledger, RAM) as arena:
        assert (SPEC.stream_bytes, ledger.pool(RAM).held_bytes) == (size, 4 * size)
        assert (arena.states.nbytes + arena.tails.nbytes) == 4 * size
        for tensor in (arena.states, arena.tails):
            tensor.fill_(float("nan"))
        pool = SlotPool(arena)
        first = pool.take_cleared()
        assert first == 0
        arena.states[first] += 2
        arena.tails[first] += 3
        second = pool.take_copy(first)
        assert second == 1
        arena.states[first] += 5
        assert torch.equal(arena.states[second], torch.full((3, 5, 7, 6), 2.0))
        assert torch.equal(arena.tails[second], torch.full((3, 3, 11), 3.0))
        assert all(bool(tensor[2:].isnan().all()) for tensor in (arena.states, arena.tails))
        with pytest.raises(MemoryRefused):
            RecurrentArena(SPEC, 1, ledger, RAM)
    arena.close()
    ledger.close()


def test_an_arena_that_the_system_refuses_gives_its_bytes_back() -> None:
    ledger = Ledger({RAM: 1 << 62})
    with pytest.raises(RuntimeError):
        RecurrentArena(SPEC, 1 << 48, ledger, RAM)
    assert ledger.pool(RAM).held_bytes == 0
    ledger.close()


def prompt(length: int, seed: int) -> NDArray[np.int32]:
    return np.random.default_rng(seed).integers(0, 1000, length).astype(np.int32)


def kept(store: StateStore, pool: PagePool, slots: SlotPool, seed: int) -> bool:
    """Compute a prompt of a seed and keep its state after 256 rows."""
    with opened(pool, slots) as lane:
        lane.extend(CHUNK)
        return store.keep(lane, prompt(CHUNK, seed))


def test_a_store_evicts_for_slots_as_for_pages(pool: PagePool, slots: SlotPool) -> None:
    store = StateStore(memory(pool, slots), CHUNK)
    assert [kept(store, pool, slots, seed) for seed in range(4)] == [True] * 4
    census = store.census()
    assert (census.states, census.slots, census.evicted, census.refused) == (2, 2, 2, 0)
    assert store.find(prompt(300, 3)).state is not None
    assert store.find(prompt(300, 0)).reason == "evicted"
    with opened(pool, slots):
        assert Lane.open(memory(pool, slots), 512, CHUNK) == SlotsRefused(3)
        assert store.reclaim(SlotsRefused(3))
        assert store.census().slots == 1
        assert store.reclaim(SlotsRefused(3))
        assert store.census().slots == 1
    store.close()
    assert store.census().slots == 0


def test_pinned_states_keep_their_slots_and_a_state_without_room_is_refused(
    pool: PagePool, slots: SlotPool
) -> None:
    store = StateStore(memory(pool, slots), CHUNK)
    for seed in (0, 1):
        kept(store, pool, slots, seed)
    first = store.find(np.append(prompt(CHUNK, 0), np.int32(1)))
    second = store.find(np.append(prompt(CHUNK, 1), np.int32(1)))
    assert first.state is not None and second.state is not None
    with store.pinned(first), store.pinned(second):
        assert not kept(store, pool, slots, 2)
        assert store.census().refused == 1
    with store.pinned(first):
        assert kept(store, pool, slots, 2)
    assert store.find(np.append(prompt(CHUNK, 1), np.int32(1))).reason == "evicted"
    store.close()


def test_a_store_without_slots_is_never_asked_for_one(pool: PagePool) -> None:
    with pytest.raises(InvariantBroken, match="has none"):
        StateStore(FakeDevice([pool]).memory, CHUNK).reclaim(SlotsRefused(0))
