"""What goes first where the disk tier is full, and what a person deletes, pins and sees."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from engine.states.border import ModelIdentity, StateArchive
from engine.states.disk.catalogue import Kept
from engine.states.disk.eviction import (
    DEFAULT_QUOTA_BYTES,
    KEPT_OVERTAKEN,
    SPARED_BYTES,
    overtaken,
    quota_bytes,
)
from engine.states.disk.library import DiskLibrary, identity_name
from engine.states.disk.stored.formats import HEADER_BYTES
from engine.states.records import Role, StateRecord
from tests.helpers.disk_states import (
    CUTTABLE,
    DATA,
    HYBRID,
    PAGE,
    PROBE,
    expected,
    keep,
    read,
    record,
    tokens,
)
from tests.helpers.fake_files import FakeFiles

STATE_BYTES = 2 * (PAGE + HEADER_BYTES)
"""Of the extents of a state of 512 tokens."""
ROOM = STATE_BYTES + 2400
"""With its manifest, which holds 2,048 bytes of ids."""
OTHER = ModelIdentity("another", (("kv", "fp8"),), {0: PAGE}, can_cut=True)


class Clock:
    """Seconds that pass by one at each look."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


@contextmanager
def opened(
    files: FakeFiles, quota: int | None = None, identity: ModelIdentity = CUTTABLE
) -> Iterator[tuple[DiskLibrary, StateArchive]]:
    clock = CLOCKS.setdefault(id(files), Clock())
    with DiskLibrary(DATA, quota, files=files, clock=clock) as library:
        archive = library.open(identity, PROBE, 200_000)
        yield library, archive


CLOCKS: dict[int, Clock] = {}


def chat(seed: int, rows: int = 512, role: Role = Role.END) -> StateRecord:
    return record(tokens(rows, seed), f"chat {seed}", role)


def put(archive: StateArchive, *states: StateRecord, identity: ModelIdentity = CUTTABLE) -> None:
    for state in states:
        keep(archive, state, identity)
    settle(archive)


def settle(archive: StateArchive) -> None:
    until = time.monotonic() + 5
    while archive.census().waiting_bytes and time.monotonic() < until:
        time.sleep(0.0005)


def kept(archive: StateArchive, states: list[StateRecord]) -> list[int]:
    return [place for place, state in enumerate(states) if archive.tier(state) != "none"]


def test_the_quota_is_a_share_of_what_is_free_and_shrinks_with_it() -> None:
    plenty = 10**15
    assert quota_bytes(None, plenty, 0) == DEFAULT_QUOTA_BYTES
    assert quota_bytes(None, 70 * 10**9, 30 * 10**9) == 10 * 10**9
    assert quota_bytes(None, 0, 10**9) == 10**8
    assert quota_bytes(5 * 10**9, plenty, 0) == 5 * 10**9
    assert quota_bytes(0, plenty, 0) == 0
    assert quota_bytes(5 * 10**9, SPARED_BYTES, 10**9) == 10**9
    assert quota_bytes(5 * 10**9, 0, 10**8) == 0


def test_the_least_recently_used_goes_first_and_the_quota_holds() -> None:
    files = FakeFiles()
    states = [chat(seed) for seed in range(8)]
    with opened(files, 3 * ROOM) as (library, archive):
        put(archive, *states[:3])
        archive.touch(states[0], "chat 0")
        for place, state in enumerate(states[3:], 3):
            put(archive, state)
            assert library.usage().disk_bytes <= 3 * ROOM
            assert place in kept(archive, states)
        assert 1 not in kept(archive, states) and 2 not in kept(archive, states)
        assert len(kept(archive, states)) == 3
        for place in kept(archive, states):
            assert read(archive, states[place]) == expected(states[place])
    assert len([p for p in files.paths() if p.suffix == ".state"]) == 1 + 3


def test_last_use_survives_a_restart() -> None:
    files = FakeFiles()
    states = [chat(seed) for seed in range(4)]
    with opened(files, 3 * ROOM) as (_, archive):
        put(archive, *states[:3])
        archive.touch(states[0], "chat 0")
    with opened(files, 3 * ROOM) as (library, archive):
        assert [row.conversation for row in library.facts()] == ["chat 0", "chat 2", "chat 1"]
        put(archive, states[3])
        assert kept(archive, states) == [0, 2, 3]


def test_open_conversations_go_only_where_no_other_can() -> None:
    files = FakeFiles()
    states = [chat(seed) for seed in range(5)]
    with opened(files, 3 * ROOM) as (library, archive):
        library.set_open(["chat 0", "chat 1"])
        put(archive, *states)
        assert kept(archive, states) == [0, 1, 4]
        library.set_open([f"chat {seed}" for seed in range(5)])
        put(archive, chat(9))
        assert kept(archive, states) == [1, 4]


def test_shared_beginnings_go_after_every_conversation_that_is_not_open() -> None:
    files = FakeFiles()
    shared = replace(chat(7, role=Role.SHARED), conversation=None)
    states = [shared, *(chat(seed) for seed in range(4))]
    with opened(files, 3 * ROOM) as (library, archive):
        put(archive, *states)
        assert kept(archive, states) == [0, 3, 4]
        library.set_open(["chat 2", "chat 3", "chat 9"])
        put(archive, chat(9))
        assert kept(archive, states) == [3, 4]


def test_pinned_states_stay_even_if_nothing_else_can_be_kept() -> None:
    files = FakeFiles()
    states = [chat(seed) for seed in range(4)]
    with opened(files, 2 * ROOM) as (library, archive):
        put(archive, *states[:2])
        library.pin("chat 0", pinned=True)
        library.pin("chat 1", pinned=True)
        library.pin("nobody", pinned=True)
    with opened(files, 2 * ROOM) as (library, archive):
        assert [row.pinned for row in library.facts()] == [True, True]
        put(archive, states[2])
        assert kept(archive, states) == [0, 1]
        library.pin("chat 0", pinned=False)
        put(archive, states[3])
        assert kept(archive, states) == [1, 3]


def test_a_pinned_conversations_next_state_is_pinned_too() -> None:
    files = FakeFiles()
    with opened(files) as (library, archive):
        put(archive, chat(1))
        library.pin("chat 1", pinned=True)
        longer = record(tokens(1024, 1), "chat 1")
        put(archive, longer)
        (row,) = library.facts()
        assert row.pinned and row.tokens == 1024
        archive.touch(longer, "chat 2")
        assert {r.conversation: r.pinned for r in library.facts()} == {
            "chat 1": True,
            "chat 2": False,
        }
        archive.touch(longer, "chat 1")


def test_overtaken_states_go_before_older_ones_that_are_not() -> None:
    files = FakeFiles()
    old = record(tokens(512, 5), "old", identity=HYBRID)
    turns = [record(tokens(rows, 1), "chat", identity=HYBRID) for rows in (64, 128, 192)]
    with opened(files, identity=HYBRID) as (_, archive):
        put(archive, old, *turns, identity=HYBRID)
        size = archive.census().disk_bytes
    with opened(files, size, HYBRID) as (_, archive):
        put(archive, record(tokens(64, 8), "new", identity=HYBRID), identity=HYBRID)
        states = [old, *turns]
        assert 0 in kept(archive, states) and 3 in kept(archive, states)
        assert kept(archive, states) in ([0, 2, 3], [0, 3])


def test_a_conversation_keeps_few_states_that_a_longer_one_overtook() -> None:
    files = FakeFiles()
    ends = [record(tokens(64 * n, 1), "chat", identity=HYBRID) for n in range(1, 9)]
    with opened(files, identity=HYBRID) as (_, archive):
        put(archive, *ends, identity=HYBRID)
    with opened(files, identity=HYBRID) as (_, archive):
        assert kept(archive, ends) == list(range(len(ends) - 1 - KEPT_OVERTAKEN, len(ends)))


def test_a_state_that_can_be_cut_makes_shorter_ones_of_its_conversation_needless() -> None:
    files = FakeFiles()
    states = [
        chat(1, 256),
        chat(1, 512),
        replace(chat(1, 512), conversation="other"),
        chat(1, 768),
        chat(1, 300, Role.REWIND),
    ]
    with opened(files) as (_, archive):
        put(archive, *states)
    with opened(files) as (_, archive):
        assert kept(archive, states) == [1, 2, 3, 4]
        assert {c.conversation: c.tokens for c in archive.chats()} == {"chat 1": 768, "other": 512}


def test_the_last_end_before_the_newest_stays_for_another_reply() -> None:
    """Regenerating after a restart must not read a page of old rows again."""
    files = FakeFiles()
    ends = [chat(1, rows) for rows in (256, 528, 600, 700)]
    with opened(files) as (_, archive):
        put(archive, *ends)
    with opened(files) as (_, archive):
        assert kept(archive, ends)[-2:] == [2, 3]
        assert 1 not in kept(archive, ends)


def test_only_what_is_written_overtakes() -> None:
    """A longer state that a kill would lose must not have cost the shorter one."""
    states = [
        Kept(chat(1, rows), {"chat 1"}, set(), rows, manifest_bytes=1) for rows in (256, 512, 768)
    ]
    assert overtaken(states) == states[:2]
    states[2].manifest_bytes = 0
    assert overtaken(states) == states[:1]
    states[2].manifest_bytes, states[2].doomed = 1, True
    assert overtaken(states) == states[:1]


def test_nothing_is_evicted_for_what_would_not_fit_anyway() -> None:
    files = FakeFiles()
    states = [chat(0), chat(1)]
    with opened(files, 2 * ROOM) as (library, archive):
        put(archive, *states)
        library.pin("chat 0", pinned=True)
        put(archive, record(tokens(5 * 512, 3), "long"))
        assert 0 in kept(archive, states)
        assert library.usage().disk_bytes <= 2 * ROOM


def test_a_state_larger_than_the_quota_leaves_no_file_behind() -> None:
    for pages in range(2, 7):
        files = FakeFiles()
        files.before = lambda _name: time.sleep(0.0005)
        with opened(files, 2 * ROOM) as (library, archive):
            put(archive, record(tokens(pages * 256, 3), "long"))
            library.facts()
            left = archive.census()
            assert left.states == int(pages < 5)
        extents = [path for path in files.paths() if "extents" in path.parts]
        assert len(extents) == (pages if pages < 5 else 0)


def test_extents_whose_state_never_came_make_room_after_a_while() -> None:
    files = FakeFiles()
    with opened(files, 2 * ROOM) as (_, archive):
        lone = chat(5).extents[0]
        buffer = archive.buffer(PAGE)
        assert buffer is not None
        archive.put(lone, buffer)
        settle(archive)
        CLOCKS[id(files)].now += 100
        put(archive, chat(1), chat(2))
        assert not archive.has(lone)
        assert kept(archive, [chat(1), chat(2)]) == [0, 1]


def test_a_quota_of_nothing_keeps_nothing_and_lets_go_of_what_was_there() -> None:
    files = FakeFiles()
    with opened(files) as (_, archive):
        put(archive, chat(1))
    with opened(files, 0) as (library, archive):
        put(archive, chat(2))
        library.facts()
        settle(archive)
        assert archive.census().disk_bytes == 0 and library.usage().quota_bytes == 0
    assert {path.name for path in files.paths()} == {"identity.state"}


def test_a_disk_that_filled_up_shrinks_the_tier() -> None:
    files = FakeFiles()
    files.room = 40 * ROOM
    with opened(files) as (library, archive):
        put(archive, chat(0), chat(1), chat(2))
        assert kept(archive, [chat(n) for n in range(3)]) == [0, 1, 2]
        files.room = 13 * ROOM
        put(archive, chat(3))
        assert kept(archive, [chat(n) for n in range(4)]) == [3]
        assert library.usage().disk_bytes <= library.usage().quota_bytes


def test_a_disk_that_does_not_tell_what_is_free_gets_nothing() -> None:
    files = FakeFiles()
    with opened(files) as (library, archive):
        put(archive, chat(0))
        files.fail_at = lambda _step, name: name == "free_bytes"
        put(archive, chat(1))
        assert archive.census().waiting_bytes == 0
        assert library.usage().quota_bytes == library.usage().free_bytes == 0


def test_deleting_is_by_conversation_and_over_all_models() -> None:
    files = FakeFiles()
    with opened(files, identity=OTHER) as (_, archive):
        put(archive, chat(1), chat(2), replace(chat(1), conversation="chat 3"), identity=OTHER)
    with opened(files) as (library, archive):
        put(archive, chat(1), chat(4), replace(chat(8, role=Role.SHARED), conversation=None))
        rows = {(row.conversation, row.model) for row in library.facts()}
        assert ("chat 1", "another") in rows and (None, "plain") in rows
        library.clear(["chat 1"])
        rows = {(row.conversation, row.model) for row in library.facts()}
        assert rows == {
            ("chat 2", "another"),
            ("chat 3", "another"),
            ("chat 4", "plain"),
            (None, "plain"),
        }
        assert archive.tier(chat(1)) == "none"
        library.clear(None)
        assert library.facts() == () and library.usage().disk_bytes == 0
        put(archive, chat(4))
        assert read(archive, chat(4)) == expected(chat(4))
    assert identity_name(OTHER) not in {path.parts[3] for path in files.paths()}


def test_what_was_cleared_does_not_come_back_after_a_restart() -> None:
    files = FakeFiles()
    with opened(files) as (library, archive):
        put(archive, chat(1), chat(2), replace(chat(2), conversation="chat 9"))
        with closing(archive.fetch(chat(1), chat(1).extents)):
            library.clear(["chat 1", "chat 2"])
            lost = files.after_power_loss()
    for left in (lost, files.after_power_loss()):
        with opened(left) as (library, archive):
            assert [row.conversation for row in library.facts()] == ["chat 9"]
            hit = archive.find([(512, chat(2).key)], chat(2).ids)
            assert hit is not None and hit.record.conversation == "chat 9"


def test_what_is_deleted_while_the_disk_hangs_goes_when_it_works_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = FakeFiles()
    with opened(files) as (_, archive):
        put(archive, chat(1), chat(2))
    gate = threading.Event()
    files.before = lambda _name: wait(gate)
    monkeypatch.setattr("engine.states.disk.library.ANSWER_S", 0.01)
    with opened(files) as (library, archive):
        library.clear(["chat 1"])
        assert library.facts() == ()
        gate.set()
        assert archive.tier(chat(2)) == "disk"
    with opened(files) as (library, archive):
        assert kept(archive, [chat(1), chat(2)]) == [1]


def wait(gate: threading.Event) -> None:
    assert gate.wait(5)


def test_a_sweep_leaves_shared_beginnings_and_known_conversations() -> None:
    files = FakeFiles()
    shared = replace(chat(8, role=Role.SHARED), conversation=None)
    with opened(files) as (library, archive):
        put(archive, chat(1), chat(2), shared)
        library.sweep(["chat 2", "never had a state"])
        assert {row.conversation for row in library.facts()} == {"chat 2", None}
        archive.touch(shared, "chat 2")
        library.sweep([])
        assert {row.conversation for row in library.facts()} == {None}


def test_what_is_kept_is_known_before_strays_are_deleted() -> None:
    """A disk that is slow to delete does not hide a chat's state."""
    files = FakeFiles()
    with opened(files) as (_, archive):
        put(archive, chat(1))
    folder = next(path.parent for path in files.paths() if path.name == "identity.state")
    with closing(files.create(Path(folder / "cut short"))) as file:
        file.write(memoryview(b"stray"))
    gate = threading.Event()
    files.before = lambda name: wait(gate) if name == "remove" else None
    with opened(files) as (_, archive):
        assert archive.find([(512, chat(1).key)], chat(1).ids) is not None
        assert any(path.name == "cut short" for path in files.paths()), "the control"
        gate.set()
    assert not any(path.name == "cut short" for path in files.paths())


def test_what_is_kept_again_while_the_deleted_one_is_read_stays() -> None:
    files = FakeFiles()
    with opened(files) as (library, archive):
        put(archive, chat(1))
        with closing(archive.fetch(chat(1), chat(1).extents)):
            library.clear(["chat 1"])
            assert archive.tier(chat(1)) == "none"
            put(archive, chat(1))
            assert archive.tier(chat(1)) != "none"
    with opened(files) as (library, archive):
        assert kept(archive, [chat(1)]) == [0]
        assert [row.conversation for row in library.facts()] == ["chat 1"]


def test_a_library_answers_with_no_model_open() -> None:
    files = FakeFiles()
    with opened(files) as (_, archive):
        put(archive, chat(1))
    with DiskLibrary(DATA, files=files) as library:
        library.set_open(["chat 1"])
        (row,) = library.facts()
        assert (row.tokens, row.tier, row.model) == (512, "disk", "plain")
        assert row.bytes == 2 * PAGE and row.own_bytes == library.usage().disk_bytes
        library.pin("chat 1", pinned=True)
        assert library.facts()[0].pinned
        library.sweep([])
        assert library.facts() == ()
    assert not files.paths()
    with DiskLibrary(DATA, files=files) as library:
        assert library.facts() == () and library.usage().disk_bytes == 0
    assert library.facts() == ()


def test_a_folder_that_cannot_be_listed_is_empty_for_now() -> None:
    files = FakeFiles()
    with opened(files) as (_, archive):
        put(archive, chat(1))
    files.fail_at = lambda _step, name: name == "entries"
    with DiskLibrary(DATA, files=files) as library:
        assert library.facts() == ()
        library.open(CUTTABLE, PROBE, 200_000)
        assert library.facts() == ()
    files.fail_at = lambda _step, _name: False
    with DiskLibrary(DATA, files=files) as library:
        assert len(library.facts()) == 1


def test_what_the_app_leaves_behind_does_not_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("engine.states.disk.library.HURRY_S", 0.2)
    files = FakeFiles()
    with opened(files) as (library, archive):
        keep(archive, chat(1))
        settle(archive)
        files.before = lambda _name: time.sleep(0.01)
        for seed in range(2, 30):
            keep(archive, chat(seed))
        library.hurry()
        began = time.monotonic()
        archive.close()
        assert time.monotonic() - began < 4.0
        assert archive.census().waiting_bytes == 0
    files.before = lambda _name: None
    with opened(files) as (_, archive):
        assert archive.tier(chat(1)) == "disk"


@pytest.mark.parametrize("change", ["facts", "sizes", "cut"])
def test_every_fact_makes_another_folder(change: str) -> None:
    changed = {
        "facts": replace(CUTTABLE, facts=(("kv", "bf16"),)),
        "sizes": replace(CUTTABLE, extent_bytes={0: PAGE + 1}),
        "cut": replace(CUTTABLE, can_cut=False),
    }[change]
    assert identity_name(changed) != identity_name(CUTTABLE)
    assert identity_name(replace(CUTTABLE, model="renamed")) == identity_name(CUTTABLE)
