"""Any order of calls against a simple account of what must be there; several threads at once."""

from __future__ import annotations

import threading
import time
from contextlib import closing

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from engine.states.border import Fetch, StateArchive
from engine.states.disk.library import DiskLibrary
from engine.states.records import StateRecord
from tests.helpers.disk_states import (
    CUTTABLE,
    DATA,
    PAGE,
    PROBE,
    content,
    drain,
    expected,
    find,
    keep,
    read,
    record,
    tokens,
)
from tests.helpers.fake_files import FakeFiles

HOST = 9 * PAGE
CHATS = 3
PLACES = st.tuples(st.integers(0, CHATS - 1), st.sampled_from((64, 256, 320, 512, 1280)))


def state_of(place: tuple[int, int]) -> StateRecord:
    """Chats share the first 256 ids."""
    chat, rows = place
    ids = tokens(rows)
    ids[256:] += chat << 22
    return record(ids, f"chat {chat}")


class Archive(RuleBasedStateMachine):
    """One library without a quota: what was kept and not let go must be there, and be right.

    ``must`` has the longest END of each chat, ``may`` whatever was kept at all.
    """

    def __init__(self) -> None:
        super().__init__()
        self.files = FakeFiles()
        self.must: dict[int, int] = {}
        self.may: set[tuple[int, int]] = set()
        self.fetches: list[tuple[Fetch, StateRecord]] = []

    @initialize()
    def begin(self) -> None:
        self.library = DiskLibrary(DATA, files=self.files)
        self.archive: StateArchive = self.library.open(CUTTABLE, PROBE, HOST)

    @rule(place=PLACES)
    def keep(self, place: tuple[int, int]) -> None:
        assert keep(self.archive, state_of(place))
        chat, rows = place
        self.must[chat] = max(rows, self.must.get(chat, 0))
        self.may.add(place)

    @rule(place=PLACES)
    def half_a_state(self, place: tuple[int, int]) -> None:
        name = state_of(place).extents[0]
        buffer = None if self.archive.has(name) else self.archive.buffer(PAGE)
        if buffer is not None:
            buffer[:] = content(name)
            self.archive.put(name, buffer)

    @rule()
    def withdraw(self) -> None:
        buffer = self.archive.buffer(PAGE)
        if buffer is not None:
            self.archive.withdraw(buffer)

    @rule(place=PLACES)
    def read(self, place: tuple[int, int]) -> None:
        state = state_of(place)
        if self.archive.tier(state) != "none":
            assert read(self.archive, state) == expected(state)

    @precondition(lambda self: self.fetches == [])
    @rule(place=PLACES)
    def begin_fetch(self, place: tuple[int, int]) -> None:
        state = state_of(place)
        if self.archive.tier(state) != "none":
            self.fetches.append((self.archive.fetch(state, state.extents), state))

    @precondition(lambda self: self.fetches != [])
    @rule(whole=st.booleans())
    def end_fetch(self, whole: bool) -> None:
        fetch, state = self.fetches.pop()
        with closing(fetch):
            if whole:
                assert drain(fetch) == expected(state)

    @rule(chat=st.integers(0, CHATS - 1))
    def clear(self, chat: int) -> None:
        self.library.clear([f"chat {chat}"])
        self.forget({chat})

    @rule(known=st.sets(st.integers(0, CHATS - 1)))
    def sweep(self, known: set[int]) -> None:
        self.library.sweep([f"chat {chat}" for chat in known])
        self.library.facts()
        self.forget(set(range(CHATS)) - known)

    @rule(chat=st.integers(0, CHATS - 1), pinned=st.booleans())
    def pin(self, chat: int, pinned: bool) -> None:
        self.library.pin(f"chat {chat}", pinned=pinned)

    @rule(lossy=st.booleans())
    def restart(self, lossy: bool) -> None:
        self.end()
        if lossy:
            self.files = self.files.after_power_loss()
        self.begin()

    @invariant()
    def what_must_be_there_is_found(self) -> None:
        if not hasattr(self, "archive"):
            return
        assert self.archive.census().damaged == self.archive.census().dropped == 0
        for chat, rows in self.must.items():
            found = find(self.archive, state_of((chat, rows)).ids)
            assert found is not None and found.at >= rows
        chats = {c.conversation: c.tokens for c in self.archive.chats()}
        assert chats == {f"chat {chat}": rows for chat, rows in self.must.items()}
        assert self.archive.census().host_bytes <= HOST

    def forget(self, chats: set[int]) -> None:
        for chat in chats:
            self.must.pop(chat, None)

    def end(self) -> None:
        for fetch, _ in self.fetches:
            fetch.close()
        self.fetches.clear()
        self.library.close()
        assert self.files.open_files == 0

    def teardown(self) -> None:
        if hasattr(self, "library"):
            self.end()


def test_any_order_of_calls_gives_what_was_kept() -> None:
    run_state_machine_as_test(
        Archive,
        settings=settings(
            max_examples=15,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_reading_and_writing_at_once_and_in_turn_with_deleting_stay_right() -> None:
    files = FakeFiles()
    files.before = lambda _name: time.sleep(0.0002)
    with DiskLibrary(DATA, 150_000, files=files) as library:
        archive = library.open(CUTTABLE, PROBE, HOST)
        read_back = 0
        for turn in range(60):
            state = state_of((turn % CHATS, (turn % 5 + 1) * 256))
            keep(archive, state)
            known = find(archive, state.ids)
            if known is None:
                continue
            with closing(archive.fetch(known, known.extents)) as fetch:
                keep(archive, state_of(((turn + 1) % CHATS, 512)))
                if turn % 9 == 0:
                    library.clear([f"chat {turn % CHATS}"])
                found = drain(fetch)
                assert found in (None, expected(known))
                read_back += found is not None
        assert read_back > 30
        assert archive.census().damaged == 0
    assert threading.active_count() < 10


def test_every_state_kept_between_two_chats_of_one_beginning_is_read_right() -> None:
    files = FakeFiles()
    with DiskLibrary(DATA, files=files) as library:
        archive = library.open(CUTTABLE, PROBE, HOST)
        first, second = state_of((0, 1280)), state_of((1, 1280))
        keep(archive, first)
        keep(archive, second)
        assert len(set(first.extents) & set(second.extents)) == 1
        library.clear(["chat 0"])
        assert read(archive, second) == expected(second)
