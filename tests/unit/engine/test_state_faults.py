"""Faults: whatever fails while states are kept, moved and resumed, nothing is left behind.

Each scenario runs once to count the device's calls, then once for every call with that one failing.
After each: no lease, no promise, no page held twice, no lane open; the store goes on, and what it
then finds is right. At the end all pages and slots are free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest

from engine.cache.lane import Lane, PagesRefused
from engine.errors import DeviceLost
from engine.states.records import Role
from engine.states.resume import ResumeStatus
from tests.helpers.fake_archive import FakeArchive
from tests.helpers.fake_device import left_behind
from tests.helpers.state_world import World, tokens

IDS = tokens(720)
LONGER = np.concatenate([IDS, tokens(300, 1)])
OTHER = np.concatenate([IDS[:600], tokens(200, 2)])
END, LATER_END, OTHER_END = 704, 960, 768

Make = Callable[[], World]


def cuttable() -> World:
    return World([(60, None)], archive=FakeArchive(can_cut=True))


def sliding() -> World:
    return World([(60, None), (40, 300)], archive=FakeArchive())


def hybrid() -> World:
    return World([(60, None), (40, 300)], slots=5, archive=FakeArchive())


def tight() -> World:
    """Room for one stream and hardly a state."""
    return World([(8, None), (9, 300)], slots=3, archive=FakeArchive())


MAKES: tuple[Make, ...] = (cuttable, sliding, hybrid)


def keep_and_resume(world: World) -> None:
    world.turn(IDS, {192: Role.REWIND, END: Role.END}, "chat")
    world.turn(LONGER, (LATER_END,), "chat")


def write_and_bring_back(world: World) -> None:
    world.turn(IDS, {192: Role.REWIND, END: Role.END}, "chat")
    world.write_all()
    world.store.clear(None)
    world.turn(LONGER, (LATER_END,), "chat")


def bring_back_beside_others(world: World) -> None:
    world.turn(IDS, (END,), "chat")
    world.write_all()
    world.store.clear(None)
    world.turn(OTHER, (OTHER_END,), "other")
    world.turn(LONGER, (LATER_END,), "chat")


def evict_by_turns(world: World) -> None:
    for seed in range(3):
        world.turn(tokens(720, seed), (END,), f"chat {seed}")
    world.turn(tokens(720, 0), (), "chat 0")


def two_streams_with_the_same_prompt(world: World) -> None:
    """The second one computed its own pages and takes those that the first one left."""
    lane = Lane.open(world.memory, 720, 256)
    if not isinstance(lane, Lane):
        return
    with lane:
        world.turn(IDS, (END,), "chat")
        world.compute(lane, IDS[:END])
        world.store.keep(lane, IDS[:END], Role.END, "chat")
        world.check(lane, IDS[:END])


SCENARIOS = (
    keep_and_resume,
    write_and_bring_back,
    bring_back_beside_others,
    two_streams_with_the_same_prompt,
)
CASES = [*product(MAKES, SCENARIOS), (tight, evict_by_turns), (tight, write_and_bring_back)]


@pytest.mark.parametrize(("make", "scenario"), CASES, ids=lambda part: part.__name__)
def test_every_call_to_the_device_fails_in_turn(
    make: Make, scenario: Callable[[World], None]
) -> None:
    count = attempted(make, scenario, None)
    assert count > 4
    for call in range(1, count + 1):
        attempted(make, scenario, call)


def attempted(make: Make, scenario: Callable[[World], None], call: int | None) -> int:
    """Run a scenario with one call failing; the store must go on and leave nothing behind.

    Returns:
        The calls that the scenario made.
    """
    world = make()
    world.device.fail_at(call)
    try:
        scenario(world)
    except DeviceLost:
        assert call is not None
    count = len(world.device.calls)
    if call is not None:
        assert world.device.failed
        world.device.fail_at(None)
        no_lane_is_open(world)
        if world.store.census().states:
            # Contents are compared with the prompts by ``resumed``.
            with world.resumed(LONGER):
                pass
        world.turn(IDS, (END,), "chat")
    world.close()
    return count


def no_lane_is_open(world: World) -> None:
    """Only states hold pages, none is promised, and every reference is one of a state's."""
    archive = world.archive
    assert archive is not None
    assert archive.left_open() == []
    census = world.store.census()
    assert census.pinned == 0
    held = sum(pool.census().held_pages for pool in world.memory.pools)
    assert held == census.pages
    assert all(pool.census().promised_pages == 0 for pool in world.memory.pools)
    if world.memory.slots is not None:
        slots = world.memory.slots.census()
        assert slots.slot_count - slots.free_slots == census.slots
    assert census.pages > 0 or left_behind(world.memory) == []


@pytest.fixture
def world() -> Iterator[World]:
    world = hybrid()
    yield world
    world.close()


def test_a_save_that_fails_keeps_nothing_and_the_pass_goes_on(world: World) -> None:
    """Copying the tail or the recurrent state is what a save asks of the device."""
    with world.resumed(IDS, "chat") as (lane, _, _):
        world.compute(lane, IDS[:320])
        before = [pool.census() for pool in world.memory.pools]
        for call in (1, 2, 3):
            world.device.fail_at(call)
            assert not world.store.keep(lane, IDS[:320], Role.END, "chat")
            assert [pool.census() for pool in world.memory.pools] == before
        world.device.fail_at(None)
        census = world.store.census()
        assert (census.failed, census.kept, census.states) == (3, 0, 0)
        assert world.store.keep(lane, IDS[:320], Role.END, "chat")
        world.compute(lane, IDS)


def test_a_table_that_cannot_be_uploaded_inside_a_swap_leaves_the_stream_its_pages(
    world: World,
) -> None:
    world.turn(IDS, (END,), "chat")
    lane = Lane.open(world.memory, 720, 256)
    assert isinstance(lane, Lane)
    with lane:
        world.compute(lane, IDS[:END])
        before = [pool.census() for pool in world.memory.pools]
        world.device.fail_at(1)
        with pytest.raises(DeviceLost, match="upload_table"):
            world.store.keep(lane, IDS[:END], Role.END, "chat")
        world.device.fail_at(None)
        assert [pool.census() for pool in world.memory.pools] == before


def test_a_write_that_fails_gives_the_buffer_back_and_is_not_tried_again(world: World) -> None:
    world.turn(IDS, (END,), "chat")
    archive = world.archive
    assert archive is not None
    world.device.fail_at(3)
    world.write_all()
    world.device.fail_at(None)
    assert (archive.calls["withdraw"], archive.states) == (1, {})
    census = world.store.census()
    assert (census.failed, census.states, census.waiting_bytes) == (1, 1, 0)
    assert not world.store.write_step()
    assert world.find(IDS).at == END


def test_a_restore_that_fails_leaves_the_state_below_for_the_next_one(world: World) -> None:
    world.turn(IDS, (END,), "chat")
    world.write_all()
    world.forget_device()
    found = world.find(IDS, "chat")
    lane = world.open(found, 730)
    assert isinstance(lane, Lane)
    with lane:
        resume = world.store.begin_resume(found, lane)
        world.device.fail_at(2)
        with pytest.raises(DeviceLost):
            while resume.step(1):
                pass
        assert resume.status is ResumeStatus.FAILED
        world.device.fail_at(None)
    no_lane_is_open(world)
    assert world.store.census().failed == 1
    assert world.find(IDS, "chat").at == END


def test_what_a_resume_copies_from_is_never_evicted(world: World) -> None:
    """A later request's eviction may take everything but what an earlier one still restores."""
    world.turn(IDS, (END,), "chat")
    world.write_all()
    world.store.clear(None)
    world.turn(OTHER[:600], (576,), "other")
    found = world.find(IDS, "chat")
    lane = world.open(found, 730)
    assert isinstance(lane, Lane)
    with lane, world.store.begin_resume(found, lane) as resume:
        pool = world.memory.pools[0]
        assert not world.store.reclaim(PagesRefused(0, pool.page_count, pool.available_pages))
        free = pool.available_pages
        assert not world.store.reclaim(PagesRefused(0, free + 1, free))
        world.store.clear(["other"])
        world.poison_free_pages()
        while resume.status is ResumeStatus.READING:
            resume.step(1)
        world.check(lane, IDS[:END])


def test_a_promise_that_fails_after_reclaiming_leaves_what_was_found(world: World) -> None:
    """The whole pool is promised to others: nothing can be made room with, nothing is lost."""
    world.turn(IDS, (END,), "chat")
    found = world.find(LONGER, "chat")
    rest = world.memory.pools[0].available_pages
    lane = Lane.open(world.memory, rest * 256, 256)
    assert isinstance(lane, Lane)
    with lane:
        before = [pool.census() for pool in world.memory.pools]
        assert isinstance(world.open(found, 1030), PagesRefused)
        assert [pool.census() for pool in world.memory.pools] == before
        assert world.find(LONGER, "chat").at == END


def test_two_that_looked_up_before_either_began_both_resume(world: World) -> None:
    world.turn(IDS, (END,), "one")
    world.turn(OTHER, (OTHER_END,), "two")
    first, second = world.find(IDS, "one"), world.find(OTHER, "two")
    with world.store.pinned(first), world.store.pinned(second):
        pool = world.memory.pools[1]
        assert not world.store.reclaim(PagesRefused(1, pool.page_count, pool.available_pages))
        for found, ids in ((first, IDS), (second, OTHER)):
            lane = world.open(found, 810)
            assert isinstance(lane, Lane)
            with lane, world.store.begin_resume(found, lane):
                world.check(lane, ids[: found.at])


def test_a_store_that_is_closed_under_a_pin_frees_everything(world: World) -> None:
    world.turn(IDS, (END,), "chat")
    found = world.find(IDS)
    with world.store.pinned(found):
        world.store.close()
        assert left_behind(world.memory) == []
    assert left_behind(world.memory) == []


def test_a_request_that_gives_up_while_it_resumes_takes_nothing_with_it(world: World) -> None:
    world.turn(IDS, (END,), "chat")
    world.write_all()
    world.store.clear(None)
    world.turn(OTHER[:600], (576,), "other")
    for steps in range(12):
        found = world.find(IDS, "chat")
        assert found.hit is not None
        lane = world.open(found, 730)
        assert isinstance(lane, Lane)
        with lane, world.store.begin_resume(found, lane) as resume:
            for _ in range(steps):
                if resume.status is ResumeStatus.READING:
                    resume.step(1)
            done = resume.status is ResumeStatus.DONE
        no_lane_is_open(world)
        if done:
            break
    else:
        raise AssertionError("the resume never ended")
