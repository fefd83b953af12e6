"""Whatever call to the device fails, nothing is leaked, held twice or half done.

Every call of every way through a lane's life fails once, in turn. After each failure the accounts
meet with the owners that are left, and after their end every page, promise and slot is free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import numpy as np
import pytest

from engine.cache.lane import Lane, LaneMemory, LaneState, PagesRefused, SlotsRefused
from engine.cache.pages import PagePool
from engine.errors import DeviceLost
from tests.helpers.fake_device import FakeDevice, left_behind
from tests.helpers.fake_slots import FakeSlots

CHUNK = 256
MOST_CALLS = 60


def device_of(slot_count: int = 0) -> FakeDevice:
    return FakeDevice([PagePool(16), PagePool(12, 512)], slot_count)


def opened(memory: LaneMemory, need: int, stack: ExitStack, held: LaneState | None = None) -> Lane:
    lane = Lane.open(memory, need, CHUNK, held)
    assert isinstance(lane, Lane)
    return stack.enter_context(lane)


def grown(memory: LaneMemory, rows: int, stack: ExitStack, need: int = 1500) -> Lane:
    lane = opened(memory, need, stack)
    grow(lane, rows)
    return lane


def grow(lane: Lane, rows: int) -> None:
    while lane.length < rows:
        lane.extend(min(CHUNK, rows - lane.length))


def kept(memory: LaneMemory, lane: Lane, at: int, stack: ExitStack) -> LaneState:
    state = lane.share(at)
    assert state is not None
    stack.callback(state.release, memory.pools, memory.slots)
    return state


def owned(memory: LaneMemory, lanes: Sequence[Lane], states: Sequence[LaneState]) -> None:
    """Each reference has exactly one owner among these."""
    for group, pool in enumerate(memory.pools):
        holders: Counter[int] = Counter()
        for lane in lanes:
            holders.update(int(page) for page in lane.table(group) if page >= 0)
        for state in states:
            holders.update(state.runs[group].ids)
        assert [pool.references(page) for page in range(pool.page_count)] == [
            holders[page] for page in range(pool.page_count)
        ]
        pool.census()
    if memory.slots is not None:
        found = [lane.recurrent_slot for lane in lanes] + [state.slot for state in states]
        assert len(set(found)) == len(found)
        assert memory.slots.census().free_slots == memory.slots.census().slot_count - len(found)


def failures(device: FakeDevice, act: Callable[[], object], after: Callable[[], None]) -> int:
    """Do ``act`` with its first, second, ... call failing until none does: how many there were.

    ``after`` is asked after each failure.
    """
    for call in range(1, MOST_CALLS):
        device.fail_at(call)
        try:
            act()
        except DeviceLost:
            assert device.failed
            after()
        else:
            assert not device.failed, "a failure was swallowed"
            device.fail_at(None)
            return call - 1
    raise AssertionError("an act that never ends")


@pytest.mark.parametrize("slot_count", [0, 5])
@pytest.mark.parametrize("at", [64, 512, 700])
def test_a_lane_that_cannot_open_takes_nothing(slot_count: int, at: int) -> None:
    """Table upload, copy of a partly filled page and of the recurrent state, in every group."""
    device = device_of(slot_count)
    memory = device.memory
    with ExitStack() as stack:
        lane = grown(memory, at, stack, need=at)
        held = kept(memory, lane, at, stack)
        counts = [pool.census() for pool in memory.pools]

        def nothing_taken() -> None:
            assert [pool.census() for pool in memory.pools] == counts
            owned(memory, [lane], [held])

        for resumed in (None, held):
            copies = 2 if resumed is not None and at % 256 else 0

            def open_and_close(resumed: LaneState | None = resumed) -> None:
                with ExitStack() as attempt:
                    opened(memory, 900, attempt, resumed)

            seen = failures(device, open_and_close, nothing_taken)
            assert seen == 2 + copies + (slot_count > 0)
    assert left_behind(memory) == []


@pytest.mark.parametrize("slot_count", [0, 5])
@pytest.mark.parametrize("at", [64, 512, 700])
def test_a_state_that_cannot_be_cut_takes_nothing_and_the_lane_goes_on(
    slot_count: int, at: int
) -> None:
    device = device_of(slot_count)
    memory = device.memory
    with ExitStack() as stack:
        lane = grown(memory, at, stack)
        counts = [pool.census() for pool in memory.pools]

        def nothing_taken() -> None:
            assert [pool.census() for pool in memory.pools] == counts
            owned(memory, [lane], [])

        seen = failures(device, lambda: kept(memory, lane, at, stack), nothing_taken)
        assert seen == (2 if at % 256 else 0) + (slot_count > 0)
        grow(lane, 1500)
    assert left_behind(memory) == []


def test_a_table_that_cannot_be_uploaded_while_a_lane_grows_loses_no_page() -> None:
    device = device_of()
    memory = device.memory

    def live() -> None:
        with ExitStack() as stack:
            grown(memory, 1500, stack)

    def nothing_left() -> None:
        assert left_behind(memory) == []

    assert failures(device, live, nothing_left) > 10
    nothing_left()


def test_a_dropped_page_is_free_only_once_the_device_knows_and_a_second_try_succeeds() -> None:
    """The device may read what its table names until it has the new one."""
    device = device_of()
    pool = device.memory.pools[1]
    with ExitStack() as stack:
        lane = grown(device.memory, 1024, stack)
        page = int(lane.table(1)[1])
        device.fail_at(2)
        with pytest.raises(DeviceLost):
            lane.extend(CHUNK)
        assert pool.references(page) == 1
        device.fail_at(None)
        lane.extend(CHUNK)
        assert lane.length == 1280
        for group in (0, 1):
            device.seen(lane.table(group))
        assert page not in lane.table(1)[:2]
        owned(device.memory, [lane], [])
    assert left_behind(device.memory) == []


@pytest.mark.parametrize("resumed", [0, 300])
def test_a_lane_that_cannot_adopt_gives_everything_back_when_it_closes(resumed: int) -> None:
    device = device_of()
    memory = device.memory
    with ExitStack() as outer:
        held = None
        if resumed:
            held = kept(memory, grown(memory, resumed, outer, need=resumed), resumed, outer)
        before = [pool.census() for pool in memory.pools]

        def adopt() -> None:
            with ExitStack() as stack:
                lane = opened(memory, 1500, stack, held)
                for group, run in enumerate(lane.adopt(1100)):
                    content = memoryview(bytes(device.page_bytes(group)))
                    for page in run.ids:
                        device.write_page(group, page, content)

        def all_given_back() -> None:
            assert [pool.census() for pool in memory.pools] == before

        assert failures(device, adopt, all_given_back) > 4
        all_given_back()
    assert left_behind(memory) == []


@pytest.mark.parametrize("closes", [False, True])
@pytest.mark.parametrize("call", [1, 2])
def test_an_upload_that_fails_inside_a_swap_leaves_the_lane_its_own_pages(
    call: int, closes: bool
) -> None:
    device = device_of()
    memory = device.memory
    with ExitStack() as stack:
        first = grown(memory, 700, stack, need=700)
        second = grown(memory, 650, stack, need=1100)
        state = kept(memory, first, 700, stack)
        counts = [pool.census() for pool in memory.pools]
        own = [second.table(group).copy() for group in (0, 1)]
        device.fail_at(call)
        with pytest.raises(DeviceLost):
            second.swap(state)
        device.fail_at(None)
        for group in (0, 1):
            assert np.array_equal(second.table(group), own[group])
        assert [pool.census() for pool in memory.pools] == counts
        owned(memory, [first, second], [state])
        if closes:
            second.close()
            owned(memory, [first], [state])
            return
        assert second.swap(state) == 4
        assert second.table(0)[:2].tolist() == list(state.runs[0].ids[:2])
        owned(memory, [first, second], [state])
        grow(second, 1100)
    assert left_behind(memory) == []


def test_no_free_slot_and_no_free_page_are_refusals_that_call_nothing() -> None:
    device = device_of(1)
    memory = device.memory
    with ExitStack() as stack:
        opened(memory, 300, stack)
        calls = len(device.calls)
        assert Lane.open(memory, 300, CHUNK) == SlotsRefused(1)
        assert isinstance(Lane.open(memory, 20 * CHUNK, CHUNK), PagesRefused)
        assert len(device.calls) == calls
    assert left_behind(memory) == []


def whole_life(device: FakeDevice, stack: ExitStack) -> None:
    """Two chats of one beginning: computed, kept, resumed, adopted, swapped and closed."""
    memory = device.memory
    first = grown(memory, 700, stack, need=900)
    early = kept(memory, first, 700, stack)
    second = opened(memory, 900, stack, early)
    grow(second, 900)
    late = kept(memory, second, 900, stack)
    first.close()
    third = opened(memory, 1300, stack)
    for group, run in enumerate(third.adopt(900)):
        for page in run.ids:
            device.write_page(group, page, memoryview(bytes(device.page_bytes(group))))
    if third.recurrent_slot is not None:
        device.write_slot(third.recurrent_slot, memoryview(bytes(device.slot_bytes)))
    third.swap(late)
    content = memoryview(bytearray(device.page_bytes(0)))
    for page in late.runs[0].ids:
        device.read_page(0, page, content)
    if late.slot is not None:
        device.read_slot(late.slot, memoryview(bytearray(device.slot_bytes)))
    second.close()
    grow(third, 1300)


@pytest.mark.parametrize("slot_count", [0, 6])
def test_every_call_of_a_whole_life_fails_in_turn(slot_count: int) -> None:
    device = FakeDevice([PagePool(24), PagePool(20, 512)], slot_count)

    def live() -> None:
        with ExitStack() as stack:
            whole_life(device, stack)

    def nothing_left() -> None:
        assert left_behind(device.memory) == []

    assert failures(device, live, nothing_left) > 20
    nothing_left()
    assert isinstance(device.slots, FakeSlots) == (slot_count > 0)
