"""States below the device: read back in steps, written once, never half there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from engine.cache.lane import Lane, PagesRefused
from engine.errors import InvariantBroken
from engine.protocol import StateFacts
from engine.states.border import Piece
from engine.states.records import SLOT, ExtentName, Role, StateRecord
from engine.states.resume import ResumeStatus
from engine.states.write_back import PATIENCE_NS
from tests.helpers.fake_archive import FakeArchive, is_slot
from tests.helpers.fake_device import ROW_BYTES
from tests.helpers.state_world import World, tokens

PAGE = 256 * ROW_BYTES


@pytest.fixture
def world() -> Iterator[World]:
    """A model whose states can be cut."""
    world = World([(40, None)], archive=FakeArchive(can_cut=True))
    yield world
    world.close()


@pytest.fixture
def hybrid() -> Iterator[World]:
    """A full group, a sliding one and recurrent states."""
    world = World([(40, None), (30, 512)], slots=6, archive=FakeArchive())
    yield world
    world.close()


def archive_of(world: World) -> FakeArchive:
    assert world.archive is not None
    return world.archive


@pytest.mark.parametrize("at", [64, 256, 320, 1024, 1216])
@pytest.mark.parametrize("tier", ["host", "disk"])
def test_a_state_comes_back_from_below_as_it_was(hybrid: World, at: int, tier: str) -> None:
    ids = tokens(1300)
    hybrid.turn(ids, (at,), "chat")
    hybrid.write_all()
    archive = archive_of(hybrid)
    hybrid.forget_device()
    if tier == "disk":
        archive.to_disk()
    found = hybrid.find(ids, "chat")
    assert (found.at, found.tier, found.state) == (at, tier, None)
    with hybrid.resumed(ids, "chat") as (_, resume, _):
        assert (resume.at, resume.tier) == (at, tier)
        assert resume.read_bytes == resume.done_bytes == resume.total_bytes > 0
        assert resume.ms > 0
    # It is on the device again, without having been written again.
    assert hybrid.find(ids, "chat").tier == "device"
    puts = archive.calls["put"]
    hybrid.write_all()
    assert archive.calls["put"] == puts
    assert hybrid.store.census().hits == ((tier, 1),)


def test_a_resume_copies_no_more_than_it_may_in_a_step(hybrid: World) -> None:
    ids = tokens(1100)
    hybrid.turn(ids, (1088,), "chat")
    hybrid.write_all()
    hybrid.forget_device()
    archive_of(hybrid).pace = 100
    found = hybrid.find(ids)
    lane = hybrid.open(found, 1100)
    assert isinstance(lane, Lane)
    with lane, hybrid.store.begin_resume(found, lane) as resume:
        seen = []
        while resume.status is ResumeStatus.READING:
            before = resume.done_bytes
            assert resume.step(2 * PAGE)
            seen.append(resume.done_bytes - before)
        assert max(seen) <= 2 * PAGE
        assert sum(seen) == resume.total_bytes
        assert not resume.step()


def test_a_disk_that_stands_still_holds_nothing_up(hybrid: World) -> None:
    ids = tokens(700)
    hybrid.turn(ids, (640,), "chat")
    hybrid.write_all()
    hybrid.forget_device()
    archive_of(hybrid).pace = 0
    found = hybrid.find(ids)
    lane = hybrid.open(found, 700)
    assert isinstance(lane, Lane)
    with lane:
        resume = hybrid.store.begin_resume(found, lane)
        assert not resume.step()
        assert resume.status is ResumeStatus.READING
        resume.close()
        resume.close()
        assert not resume.step()
    assert str(resume.status) == str(ResumeStatus.CLOSED)
    assert archive_of(hybrid).left_open() == []
    assert hybrid.find(ids).tier == "host"


def test_the_longer_state_wins_and_the_device_among_equal_ones(hybrid: World) -> None:
    ids = tokens(1300)
    hybrid.turn(ids[:700], (640,), "chat")
    hybrid.turn(ids, (1280,), "chat")
    hybrid.write_all()
    assert hybrid.find(ids).tier == "device"
    hybrid.forget_device()
    hybrid.turn(ids[:700], (640,), "chat")
    found = hybrid.find(ids)
    assert (found.at, found.tier) == (1280, "host")
    assert hybrid.find(ids[:700]).tier == "device"


@pytest.mark.parametrize("shared_rows", [640, 768])
def test_pages_that_the_device_has_are_not_read_again(hybrid: World, shared_rows: int) -> None:
    """In a model with recurrent layers the pages are copied, the rest is read."""
    ids = tokens(1300)
    hybrid.turn(ids, (1280,), "chat")
    hybrid.write_all()
    hybrid.forget_device()
    hybrid.turn(ids[: shared_rows + 1], (shared_rows,), "chat")
    with hybrid.resumed(ids, "chat") as (_, resume, found):
        assert (found.at, resume.tier) == (1280, "host")
        copied = resume.done_bytes - resume.read_bytes
        # Of the sliding group row 1280 reaches pages from 3 on.
        assert copied == (shared_rows // 256) * PAGE
        assert resume.done_bytes == resume.total_bytes


def test_where_states_can_be_cut_the_device_pages_are_shared_and_the_rest_is_read(
    world: World,
) -> None:
    ids = tokens(1300)
    world.turn(ids, (1280,), "chat")
    world.write_all()
    world.forget_device()
    other = ids.copy()
    other[600:] += 1
    world.turn(other, (1280,), "other")
    held = world.memory.pools[0].census().held_pages
    with world.resumed(ids, "chat") as (_, resume, found):
        assert (found.at, found.state is not None, resume.tier) == (1280, True, "host")
        assert resume.read_bytes == resume.total_bytes == 3 * PAGE
        assert world.memory.pools[0].census().held_pages == held + 3


@pytest.mark.parametrize(("changed_at", "at"), [(1290, 1280), (1100, 1024), (600, 512), (300, 256)])
def test_an_edit_in_the_middle_resumes_at_the_last_common_page(
    world: World, changed_at: int, at: int
) -> None:
    ids = tokens(1300)
    world.turn(ids, (1280,), "chat")
    world.write_all()
    world.forget_device()
    edited = ids.copy()
    edited[changed_at:] += 1
    with world.resumed(edited, "chat", changed_at) as (_, resume, found):
        assert (found.at, resume.read_bytes) == (at, -(-at // 256) * PAGE)
        # Only a whole state is held on the device again, not what was cut from one.
        assert world.store.census().states == (1 if at == 1280 else 0)


def test_a_device_state_that_ends_before_its_first_page_helps_nobody(world: World) -> None:
    ids = tokens(700)
    world.turn(ids, (640,), "chat")
    world.write_all()
    world.forget_device()
    world.turn(ids[:200], (192,), "chat")
    with world.resumed(ids, "chat") as (_, resume, found):
        assert (found.at, found.state) == (640, None)
        assert resume.read_bytes == 3 * PAGE


@pytest.mark.parametrize("lost", ["slot", "page", "all"])
def test_a_state_with_a_lost_extent_is_dropped_and_the_prompt_is_read(
    hybrid: World, lost: str
) -> None:
    ids = tokens(1300)
    hybrid.turn(ids, (1280,), "chat")
    hybrid.write_all()
    hybrid.forget_device()
    archive = archive_of(hybrid)
    archive.lose(lambda name: lost == "all" or is_slot(name) == (lost == "slot"))
    found = hybrid.find(ids, "chat", 1290)
    lane = hybrid.open(found, 1300)
    assert isinstance(lane, Lane)
    with lane, hybrid.store.begin_resume(found, lane) as resume:
        while resume.status is ResumeStatus.READING:
            resume.step(1)
        assert resume.status is ResumeStatus.DAMAGED
        assert archive.left_open() == []
    assert archive.states == {}
    census = hybrid.store.census()
    assert (census.damaged, census.states, census.hits) == (1, 0, ())
    again = hybrid.find(ids, "chat", 1290)
    assert (again.at, again.reason) == (0, "damaged")
    assert hybrid.turn(ids, (1280,), "chat")[1] == {1280: True}
    assert hybrid.find(ids, "chat", 1290).reason is None


def test_a_piece_that_was_not_asked_for_breaks_a_promise(
    hybrid: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = tokens(300)
    hybrid.turn(ids, (256,), "chat")
    hybrid.write_all()
    hybrid.forget_device()
    found = hybrid.find(ids)
    lane = hybrid.open(found, 300)
    assert isinstance(lane, Lane)
    with lane, hybrid.store.begin_resume(found, lane) as resume:
        stray = Piece(ExtentName(b"stray", 0), memoryview(bytes(PAGE)), "disk")
        monkeypatch.setattr(archive_of(hybrid).fetches[0], "ready", lambda: [stray])
        with pytest.raises(InvariantBroken, match="no resume asked for"):
            resume.step()


def test_of_each_conversation_the_newest_end_is_written_and_pages_once(world: World) -> None:
    archive = archive_of(world)
    ids = tokens(1300)
    world.turn(ids[:700], {256: Role.SHARED, 320: Role.REWIND, 640: Role.END}, "chat")
    world.turn(ids, {704: Role.REWIND, 1280: Role.END}, "chat")
    world.turn(ids, (1216,))
    world.write_all()
    kept = {(record.at, record.role) for record in archive.states.values()}
    # Neither the older end, nor the older rewind, nor what belongs to no conversation.
    assert kept == {(256, Role.SHARED), (704, Role.REWIND), (1280, Role.END)}
    # 5 whole pages, and one tail at row 704.
    assert archive.calls["put"] == len(archive.extents) == 5 + 1
    assert not world.store.write_step()


def test_the_end_of_a_history_is_written_before_anything_else(world: World) -> None:
    ids = tokens(700)
    world.turn(ids, {256: Role.SHARED, 320: Role.REWIND, 640: Role.END}, "chat")
    order = []
    while world.store.write_step(1):
        order.append(sorted(record.role.value for record in archive_of(world).states.values()))
    assert next(one for one in order if len(one) == 1) == ["end"]
    assert order[-1] == ["end", "rewind", "shared"]


@pytest.mark.parametrize("cheap", [True, False])
def test_a_rewind_is_written_only_where_it_costs_little(
    world: World, cheap: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It adds the tail at row 320 to the pages of the end."""
    monkeypatch.setattr("engine.states.write_back.CHEAP_REWIND_BYTES", PAGE - (not cheap))
    world.turn(tokens(700), {320: Role.REWIND, 640: Role.END}, "chat")
    world.write_all()
    assert len(archive_of(world).states) == 1 + cheap


def test_the_newest_end_is_written_wherever_it_stands_in_the_store(world: World) -> None:
    """An end that is kept once more, as after a branch was left again, is the newest."""
    first, second = tokens(700), tokens(700, 1)
    world.turn(first, (640,), "chat")
    world.turn(second, (640,), "chat")
    lane = Lane.open(world.memory, 700, 256)
    assert isinstance(lane, Lane)
    with lane:
        world.compute(lane, first[:640])
        assert world.store.keep(lane, first[:640], Role.END, "chat")
    world.write_all()
    (record,) = archive_of(world).states.values()
    assert np.array_equal(record.ids, first[:640])


def test_a_rewind_without_an_end_is_not_written(world: World) -> None:
    world.turn(tokens(700), {320: Role.REWIND}, "chat")
    assert not world.store.write_step()


def test_a_running_conversation_is_not_written_until_it_rests(world: World) -> None:
    world.turn(tokens(700), (640,), "chat")
    world.store.set_running({"chat"})
    assert not world.store.write_step()
    assert world.store.census().waiting_bytes == 3 * PAGE
    world.store.set_running(())
    world.write_all()
    assert world.store.census().waiting_bytes == 0
    assert len(archive_of(world).states) == 1


def test_a_write_step_copies_no_more_than_it_may(world: World) -> None:
    world.turn(tokens(1300), (1280,), "chat")
    steps = 0
    while world.store.write_step(2 * PAGE):
        steps += 1
    # 2, 2 and 1 pages.
    assert steps == 3
    world.turn(tokens(1300, 1), (1280,), "other")
    assert world.store.write_step(100 * PAGE)
    assert not world.store.write_step()


def test_a_full_queue_makes_a_write_wait_and_nothing_is_lost(world: World) -> None:
    archive = archive_of(world)
    archive.buffer_limit, archive.writes = 2, False
    world.turn(tokens(1300), (1280,), "chat")
    assert world.store.write_step()
    assert not world.store.write_step()
    assert archive.states == {}
    assert world.store.census().waiting_bytes == 5 * PAGE
    for _ in range(3):
        archive.write_out()
        world.store.write_step()
    assert len(archive.states) == 1


def test_a_buffer_that_never_comes_is_not_waited_for_for_ever(world: World) -> None:
    archive_of(world).buffer_limit = 0
    world.turn(tokens(700), (640,), "chat")
    assert not world.store.write_step()
    assert not world.store.write_step()
    assert world.store.census().waiting_bytes == 3 * PAGE
    world.now_ns += PATIENCE_NS
    world.store.write_step()
    census = world.store.census()
    assert (census.waiting_bytes, census.failed, census.states) == (0, 1, 1)
    assert not world.store.write_step()


@pytest.mark.parametrize("losses", [1, 5])
def test_a_state_whose_extent_goes_before_it_is_whole_is_written_once_more(
    world: World, losses: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where another state that had it is deleted just then; not again and again."""
    archive = archive_of(world)
    commit, times = archive.commit, iter(range(losses))

    def losing(record: StateRecord) -> None:
        if next(times, None) is not None:
            del archive.extents[record.extents[0]]
        commit(record)

    monkeypatch.setattr(archive, "commit", losing)
    world.turn(tokens(700), (640,), "chat")
    world.write_all()
    census = world.store.census()
    assert (len(archive.states), census.failed, census.waiting_bytes) == (
        (1, 0, 0) if losses == 1 else (0, 1, 0)
    )


def test_what_is_evicted_is_moved_down_first(hybrid: World) -> None:
    ids = tokens(1300)
    hybrid.turn(ids, {640: Role.END, 1280: Role.END}, "chat")
    archive = archive_of(hybrid)
    for seed in range(1, 9):
        hybrid.turn(tokens(1300, seed), (1280,))
    assert hybrid.store.census().evicted > 2
    assert [record.at for record in archive.states.values()] == [1280]
    with hybrid.resumed(ids, "chat") as (_, resume, _):
        assert resume.tier == "host"


def test_work_at_nobodys_cost_evicts_only_what_lies_below_as_well(world: World) -> None:
    pool = world.memory.pools[0]
    world.turn(tokens(700), (640,), "written")
    world.write_all()
    world.turn(tokens(700, 1), (640,), "not written")
    wanted = PagesRefused(0, pool.available_pages + 1, pool.available_pages)
    assert world.store.reclaim(wanted, only_spare=True)
    assert [chat.tier for chat in world.store.tiers() or ()] == ["device", "host"]
    wanted = PagesRefused(0, pool.available_pages + 1, pool.available_pages)
    assert not world.store.reclaim(wanted, only_spare=True)
    assert world.store.reclaim(wanted)
    alone = World()
    alone.turn(tokens(700), (640,), "chat")
    assert not alone.store.reclaim(PagesRefused(0, 60, 57), only_spare=True)
    alone.close()


def test_what_is_evicted_without_a_buffer_is_lost(hybrid: World) -> None:
    archive_of(hybrid).buffer_limit = 1
    archive_of(hybrid).writes = False
    ids = tokens(1300)
    hybrid.turn(ids, (1280,), "chat")
    for seed in range(1, 9):
        hybrid.turn(tokens(1300, seed), (1280,))
    assert archive_of(hybrid).states == {}
    assert hybrid.find(ids, "chat", 1290).reason == "evicted"


def test_closing_writes_what_waits(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = archive_of(world)
    world.turn(tokens(1300), (1280,), "chat")
    archive.buffer_limit, archive.writes = 1, False
    monkeypatch.setattr("engine.states.write_back.PAUSE_S", 0)
    monkeypatch.setattr("time.sleep", lambda _seconds: archive.write_out())
    world.store.close()
    assert len(archive.states) == 1


def test_closing_does_not_wait_for_ever(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = archive_of(world)
    world.turn(tokens(1300), (1280,), "chat")
    archive.buffer_limit, archive.writes = 1, False
    times = iter((0.0, 1.9, 2.0))
    monkeypatch.setattr("engine.states.write_back.PAUSE_S", 0)
    monkeypatch.setattr("time.monotonic", lambda: next(times))
    world.store.close()
    assert (archive.states, list(times)) == ({}, [])
    archive.write_out()


def test_a_state_that_another_conversation_begins_with_is_of_both(hybrid: World) -> None:
    ids = tokens(700)
    hybrid.turn(ids, (640,), "one")
    hybrid.write_all()
    hybrid.turn(ids, (), "two")
    archive = archive_of(hybrid)
    assert list(archive.conversations.values()) == [{"one", "two"}]
    hybrid.forget_device()
    hybrid.turn(ids, (), "three")
    assert list(archive.conversations.values()) == [{"one", "two", "three"}]


def test_a_chat_that_begins_with_a_part_of_a_state_does_not_own_it(world: World) -> None:
    """Neither on the device nor below it: the state tells nothing of how far that chat is."""
    ids = tokens(700)
    world.turn(ids, (640,), "one")
    other = ids.copy()
    other[400:] += 1
    world.turn(other, (), "two")
    assert [chat.conversation for chat in world.store.tiers() or ()] == ["one"]
    world.write_all()
    world.forget_device()
    world.turn(other, (), "two")
    assert list(archive_of(world).conversations.values()) == [{"one"}]
    assert [chat.conversation for chat in world.store.tiers() or ()] == ["one"]


def test_a_shared_beginning_belongs_to_no_conversation(hybrid: World) -> None:
    ids = tokens(700)
    hybrid.turn(ids, {640: Role.SHARED}, "one")
    hybrid.write_all()
    hybrid.turn(ids, {640: Role.END}, "two")
    hybrid.forget_device()
    hybrid.turn(ids, (), "three")
    archive = archive_of(hybrid)
    assert [record.role for record in archive.states.values()] == [Role.SHARED]
    assert hybrid.find(ids).tier == "device"
    assert list(archive.conversations.values()) in ([set()], [{"two"}])


def facts_of(conversation: str, model: str = "another") -> StateFacts:
    return StateFacts(
        conversation=conversation, model=model, tokens=640, bytes=9, own_bytes=9, tier="disk"
    )


def test_states_of_another_model_are_named_as_the_reason() -> None:
    world = World(archive=FakeArchive(can_cut=True), facts=(facts_of("chat"),))
    ids = tokens(700)
    assert world.find(ids, "chat", 650).reason == "model-changed"
    assert world.find(ids, "fresh", 650).reason == "nothing-kept"
    assert world.find(ids, None, 650).reason == "nothing-kept"
    world.turn(ids, (640,), "chat")
    world.write_all()
    world.forget_device()
    changed = ids + 1
    assert world.find(changed, "chat", 650).reason == "edited"
    assert world.find(changed, "fresh", 650).reason == "no-common-prefix"
    world.close()


def test_a_page_is_read_as_often_as_it_must_and_slots_once(hybrid: World) -> None:
    ids = tokens(1300)
    hybrid.turn(ids, (1280,), "chat")
    hybrid.device.calls.clear()
    hybrid.write_all()
    # 5 pages of the full group, of the sliding one those that row 1280 reaches.
    assert hybrid.device.calls == ["read_page"] * (5 + 2) + ["read_slot"]
    assert sum(name.part == SLOT for name in archive_of(hybrid).extents) == 1


def test_without_lower_tiers_nothing_is_written() -> None:
    world = World()
    world.turn(tokens(700), (640,), "chat")
    assert not world.store.write_step()
    assert world.store.census().waiting_bytes == 0
    world.close()


def test_a_prompt_of_one_token_finds_nothing(world: World) -> None:
    found = world.find(np.array([1], np.int32))
    assert (found.at, found.reason) == (0, "short-prompt")
