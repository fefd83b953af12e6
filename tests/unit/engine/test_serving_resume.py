"""States that lie below the device come between rounds: nobody waits for them but their prompt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.cache.formats import PAGE_ROWS
from engine.cache.pages import PagePool
from engine.errors import DeviceLost
from engine.protocol import ChatTier, ChatTiers, Finished, Progress, Settled, Tier
from engine.sampling.keyed import DrawRule
from engine.serving.admission import Served
from engine.serving.idle.upkeep import LOOK_PAUSE_S
from engine.serving.rounds import READING_PAUSE_S, Serving
from engine.states.border import ArchiveCensus, Hit, Piece
from engine.states.lookup import LowerTiers
from engine.states.records import ExtentName, StateRecord
from engine.states.store import StateStore
from tests.helpers.fake_device import FakeDevice, left_behind
from tests.helpers.fake_runner import Bench, FakeRunner, bench, prompt_ids, request

WARM = DrawRule(temperature=1.0, top_k=40, top_p=0.95, min_p=0.05, seed=5)
IDS = prompt_ids(700, 1)
LONGER = [*IDS, *prompt_ids(90, 2)]


@dataclass
class Shelf:
    """Implements ``engine.states.border.StateArchive`` in memory; a test says what can be read.

    Attributes:
        gives: extents that each call of ``ready`` brings at most; 0 is a disk that hangs.
        damaged: a fetch that was begun turns out damaged after its first extent.
    """

    extents: dict[ExtentName, bytes] = field(default_factory=dict)
    records: dict[bytes, StateRecord] = field(default_factory=dict)
    gives: int = 1
    damaged: bool = False
    open_fetches: int = 0
    full: bool = False
    revision: int = 0

    def find(self, prefixes: Sequence[tuple[int, bytes]], ids: NDArray[np.int32]) -> Hit | None:
        for at, digest in reversed(prefixes):
            record = self.records.get(digest)
            if record is not None and np.array_equal(record.ids, ids[:at]):
                return Hit(record, at)
        return None

    def tier(self, record: StateRecord) -> Tier:
        return "disk" if record.key in self.records else "none"

    def chats(self) -> tuple[ChatTier, ...]:
        return tuple(
            ChatTier(conversation=record.conversation, tier="disk", tokens=record.at)
            for record in self.records.values()
            if record.conversation is not None
        )

    def has(self, name: ExtentName) -> bool:
        return name in self.extents

    def buffer(self, size_bytes: int) -> memoryview | None:
        return None if self.full else memoryview(bytearray(size_bytes))

    def put(self, name: ExtentName, buffer: memoryview) -> None:
        self.extents[name] = bytes(buffer)

    def withdraw(self, buffer: memoryview) -> None:
        """Nothing to give back."""

    def commit(self, record: StateRecord) -> None:
        self.records[record.key] = record
        self.revision += 1

    def fetch(self, record: StateRecord, names: Sequence[ExtentName]) -> Reading:
        assert record.key in self.records
        self.open_fetches += 1
        return Reading(self, list(names))

    def drop(self, key: bytes) -> None:
        del self.records[key]
        self.revision += 1

    def touch(self, record: StateRecord, conversation: str | None) -> None:
        """Order is no matter here."""

    def census(self) -> ArchiveCensus:
        size = sum(map(len, self.extents.values()))
        return ArchiveCensus(len(self.records), 0, size, int(self.full), 0, 0)

    def close(self) -> None:
        assert self.open_fetches == 0


@dataclass
class Reading:
    """Implements ``engine.states.border.Fetch``."""

    shelf: Shelf
    names: list[ExtentName]
    read_bytes: int = 0
    closed: bool = False

    @property
    def status(self) -> Literal["reading", "read", "damaged"]:
        if self.shelf.damaged and self.read_bytes:
            return "damaged"
        return "reading" if self.names else "read"

    def ready(self) -> Sequence[Piece]:
        given, self.names = self.names[: self.shelf.gives], self.names[self.shelf.gives :]
        pieces = [Piece(n, memoryview(self.shelf.extents[n]), "disk") for n in given]
        self.read_bytes += sum(len(piece.content) for piece in pieces)
        return pieces

    def done(self, name: ExtentName) -> None:
        """Its bytes stand for as long as the shelf does."""

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.shelf.open_fetches -= 1


@contextmanager
def life(
    shelf: Shelf, *, slot_count: int = 0, streams: int = 4, pages: tuple[int, int] = (24, 16)
) -> Iterator[Bench]:
    """One process life over a shelf that outlives it; at its end nothing is held."""
    pools = (PagePool(pages[0]), PagePool(pages[1], 512))
    device = FakeDevice(pools, slot_count)
    runner = FakeRunner(device)
    states = StateStore(device.memory, PAGE_ROWS, LowerTiers(shelf, "fake"))
    served = Served(runner, device.memory, states, 2048, streams)
    made = Bench(device, runner, states, None, [])  # type: ignore[arg-type]
    made.serving = Serving(served, made.sent.append, lambda: made.now_ns[0])
    yield made
    made.serving.close()
    states.close()
    shelf.close()
    assert left_behind(device.memory) == []


def ask(made: Bench, number: int, ids: list[int], name: str = "a chat") -> None:
    made.ask(replace(request(number, ids, rule=WARM), conversation=name))


def written(slot_count: int = 0) -> Shelf:
    """A shelf with the state that a first life left."""
    shelf = Shelf()
    with life(shelf, slot_count=slot_count) as made:
        ask(made, 1, IDS)
        made.run()
    assert shelf.records
    return shelf


def alone(ids: list[int], slot_count: int = 0) -> tuple[int, ...]:
    with bench(slot_count=slot_count) as made:
        made.ask(request(1, ids, rule=WARM))
        made.run()
        return made.finished(1).ids


@pytest.mark.parametrize("slot_count", [0, 3])
def test_a_state_comes_from_below_in_steps_and_gives_a_fresh_reply(slot_count: int) -> None:
    """The control is a prompt that differs in its first token, which finds nothing."""
    shelf = written(slot_count)
    size, count = sum(map(len, shelf.extents.values())), len(shelf.extents)
    with life(shelf, slot_count=slot_count) as made:
        ask(made, 1, LONGER)
        made.run()
        found = made.finished(1)
        assert (found.resumed_tokens, found.resumed_from, found.reason) == (512, "disk", None)
        assert found.resumed_bytes == size
        steps = [m for m in made.sent if isinstance(m, Progress) and m.phase == "resume"]
        assert [step.done for step in steps] == sorted({step.done for step in steps})
        assert len(steps) == count
        assert (steps[-1].done, steps[-1].total) == (found.resumed_bytes, found.resumed_bytes)
        assert [at for kind, at in made.runner.calls if kind == "prompt"] == [512, 768]
        assert found.ids == alone(LONGER, slot_count)
        other = [(LONGER[0] + 1) % 90, *LONGER[1:]]
        ask(made, 2, other)
        made.run()
        assert (made.finished(2).resumed_from, made.finished(2).reason) == ("none", "edited")
        assert made.finished(2).ids == alone(other, slot_count) != found.ids


def test_replies_go_on_while_a_state_is_read_and_the_loop_does_not_spin() -> None:
    shelf = written()
    with life(shelf) as made:
        shelf.gives = 0
        ask(made, 1, LONGER)
        made.serving.round()
        made.serving.round()
        assert made.serving.pause_s == READING_PAUSE_S
        ask(made, 2, prompt_ids(30, 3), "another chat")
        while not any(isinstance(m, Finished) for m in made.sent):
            made.serving.round()
            assert made.serving.pause_s in (0.0, READING_PAUSE_S)
        assert made.finished(2).ids == alone(prompt_ids(30, 3))
        shelf.gives = 9
        made.run()
        assert made.finished(1).ids == alone(LONGER)


def test_a_damaged_state_costs_a_new_start_at_the_head_of_the_queue() -> None:
    """It is found no more; who waited behind goes on waiting."""
    shelf = written()
    with life(shelf, streams=1) as made:
        shelf.damaged = True
        ask(made, 1, LONGER)
        ask(made, 2, prompt_ids(30, 3), "another chat")
        made.run()
        found = made.finished(1)
        assert (found.resumed_tokens, found.resumed_from) == (0, "none")
        assert (found.resumed_bytes, found.reason) == (0, "damaged")
        assert found.ids == alone(LONGER)
        order = [m.request for m in made.sent if isinstance(m, Finished)]
        assert order == [1, 2]
        assert shelf.open_fetches == 0


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_a_request_that_is_cancelled_while_its_state_is_read_leaves_nothing(rounds: int) -> None:
    shelf = written()
    with life(shelf) as made:
        ask(made, 1, LONGER)
        for _ in range(rounds):
            made.serving.round()
        assert shelf.open_fetches == 1
        made.serving.cancel(1)
        made.run()
        assert made.finished(1).stop_reason == "stopped"
        assert shelf.open_fetches == 0
        assert made.runner.calls == []
        ask(made, 2, LONGER)
        made.run()
        assert made.finished(2).ids == alone(LONGER)


@pytest.mark.usefixtures("caplog")
def test_every_device_call_of_a_resume_may_fail_and_the_next_request_is_right() -> None:
    """Each call in turn: that request fails or is right, nothing is left, others go on."""
    call, failed = 0, True
    while failed:
        call += 1
        shelf = written()
        with life(shelf) as made:
            made.device.fail_at(call)
            ask(made, 1, LONGER)
            made.run()
            failed = made.device.failed
            ended = [m for m in made.sent if getattr(m, "request", 0) == 1]
            if isinstance(ended[-1], Finished):
                assert ended[-1].ids == alone(LONGER)
            else:
                assert getattr(ended[-1], "code", "") == DeviceLost.code
            made.device.fail_at(None)
            ask(made, 2, LONGER)
            made.run()
            assert made.finished(2).ids == alone(LONGER)
    assert call > 8


def test_states_are_written_while_idle_and_settling_waits_for_it() -> None:
    shelf = Shelf()
    with life(shelf) as made:
        ask(made, 1, IDS)
        while not any(isinstance(m, Finished) for m in made.sent):
            made.serving.round()
        assert shelf.records == {}
        made.serving.settle(7, 1e9)
        assert not any(isinstance(m, Settled) for m in made.sent)
        made.run()
        assert [m.at for m in shelf.records.values()] == [512]
        assert Settled(request=7, waiting_bytes=0) in made.sent
        assert made.serving.pause_s == LOOK_PAUSE_S


def test_a_disk_that_takes_nothing_is_waited_for_without_haste_and_settling_says_so() -> None:
    shelf = Shelf(full=True)
    with life(shelf) as made:
        ask(made, 1, IDS)
        made.serving.settle(7, 5.0)
        for _ in range(20):
            made.serving.round()
            made.now_ns[0] += 1_000_000
        settled = [m for m in made.sent if isinstance(m, Settled)]
        assert len(settled) == 1
        assert settled[0].waiting_bytes > 0
        assert 0.0 < made.serving.pause_s <= LOOK_PAUSE_S
        shelf.full = False
        made.run()
        assert shelf.records


def test_tiers_are_told_when_they_change_and_not_else() -> None:
    shelf = written()
    with life(shelf) as made:
        made.serving.round()
        ask(made, 1, LONGER)
        made.run()
        ask(made, 2, [3, 4], "another chat")
        made.run()
        told = [m.chats for m in made.sent if isinstance(m, ChatTiers)]
        assert told[0] == (ChatTier(conversation="a chat", tier="disk", tokens=512),)
        assert told[-1] == (ChatTier(conversation="a chat", tier="device", tokens=768),)
        assert len(told) == len(set(told))


def test_running_replies_leave_the_copying_of_states_a_small_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A step takes 1 ms, a copy 1 ms: of 900 steps 5 or so are followed by one."""
    shelf = Shelf()
    with life(shelf) as made:
        made.runner.before = lambda _kind: made.now_ns.__setitem__(0, made.now_ns[0] + 1_000_000)
        ask(made, 1, IDS)
        while not any(isinstance(m, Finished) for m in made.sent):
            made.serving.round()
        wishes = replace(request(2, [1, 2], rule=WARM, max_tokens=900), conversation="other")
        made.ask(wishes)
        copies: list[int] = []

        def copy(_most_bytes: int = 0) -> bool:
            made.now_ns[0] += 1_000_000
            copies.append(made.now_ns[0])
            return True

        monkeypatch.setattr(made.states, "write_step", copy)
        while len(made.sent) == 0 or not any(
            isinstance(m, Finished) and m.request == 2 for m in made.sent
        ):
            made.serving.round()
        assert 3 <= len(copies) <= 7
        monkeypatch.undo()
        made.run()


@pytest.mark.parametrize("damaged", [False, True])
def test_a_pass_begins_at_a_state_from_below_or_is_given_up(damaged: bool) -> None:
    shelf = written()
    with life(shelf) as made:
        shelf.damaged = damaged
        job = replace(request(1, [*LONGER, *prompt_ids(300, 7)], rule=WARM), conversation="a chat")
        made.serving._upkeep.background.add("a chat", lambda: job)
        made.run()
        places = [at for kind, at in made.runner.calls if kind == "prompt"]
        assert places == ([] if damaged else [512, 768])
        shelf.damaged = False
        ask(made, 2, [*LONGER, *prompt_ids(310, 7)])
        made.run()
        assert made.finished(2).resumed_tokens == (0 if damaged else 1024)
        assert made.finished(2).ids == alone([*LONGER, *prompt_ids(310, 7)])


def test_a_pass_that_waits_for_the_disk_gives_way_and_does_not_spin() -> None:
    shelf = written()
    with life(shelf) as made:
        shelf.gives = 0
        job = replace(request(1, LONGER, rule=WARM), conversation="a chat")
        made.serving._upkeep.background.add("a chat", lambda: job)
        assert made.serving.pause_s == 0.0
        made.serving.round()
        made.serving.round()
        assert 0.0 < made.serving.pause_s < LOOK_PAUSE_S
        assert shelf.open_fetches == 1
        ask(made, 2, [5, 6], "another chat")
        made.serving.round()
        assert shelf.open_fetches == 0
        shelf.gives = 9
        made.run()
        assert [at for kind, at in made.runner.calls if kind == "prompt"] == [0, 512]


def test_side_work_begins_afresh_rather_than_read_a_state_from_below() -> None:
    shelf = written()
    with life(shelf) as made:
        made.ask(replace(request(1, LONGER, rule=WARM), is_side=True))
        made.run()
        assert made.finished(1).resumed_tokens == 0
        assert made.finished(1).ids == alone(LONGER)
        assert made.states.census().hits == ()


@pytest.mark.parametrize("full", [False, True])
def test_side_work_takes_the_room_of_states_that_lie_below_as_well(full: bool) -> None:
    """Nothing is lost: the chat resumes from below. The control's disk took nothing."""
    shelf = Shelf(full=full, gives=9)
    ids = prompt_ids(1100, 1)
    with life(shelf, pages=(5, 16)) as made:
        ask(made, 1, ids)
        while not any(isinstance(m, Finished) for m in made.sent):
            made.serving.round()
        made.serving.round()
        made.ask(replace(request(2, prompt_ids(900, 2), rule=WARM), is_side=True))
        while len(made.sent) == 0 or not any(getattr(m, "request", 0) == 2 for m in made.sent):
            made.serving.round()
        for _ in range(20):
            made.serving.round()
        if full:
            assert made.failure(2).code == "memory-refused"
        else:
            assert made.finished(2).ids == alone(prompt_ids(900, 2))
        shelf.full = False
        ask(made, 3, [*ids, 5])
        made.run()
        found = made.finished(3)
        assert (found.resumed_tokens, found.resumed_from) == (1024, "device" if full else "disk")
