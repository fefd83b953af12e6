"""States on disk: kept, found, read back, shared, damaged, read slowly and given up."""

from __future__ import annotations

import stat
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from engine.errors import InvariantBroken
from engine.states.disk.archive import DiskArchive, least_host_bytes
from engine.states.disk.library import DiskLibrary
from engine.states.disk.stored.formats import HEADER_BYTES
from engine.states.records import Role, StateRecord
from tests.helpers.disk_states import (
    CUTTABLE,
    DATA,
    GRID,
    HYBRID,
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

HOST = 12 * PAGE


@pytest.fixture
def files() -> Iterator[FakeFiles]:
    made = FakeFiles()
    yield made
    assert made.open_files == 0


def opened(library: DiskLibrary, host_bytes: int = HOST, probe: bytes = PROBE) -> DiskArchive:
    archive = library.open(CUTTABLE, probe, host_bytes)
    assert isinstance(archive, DiskArchive)
    return archive


def library_on(files: FakeFiles, quota: int | None = None) -> DiskLibrary:
    return DiskLibrary(DATA, quota, files=files, flush_s=5.0)


@pytest.mark.parametrize("rows", [1, 255, 256, 257, 1300])
@pytest.mark.parametrize("identity", [CUTTABLE, HYBRID], ids=lambda identity: identity.model)
def test_a_state_reads_back_equal_after_a_restart(
    tmp_path: Path, rows: int, identity: object
) -> None:
    assert identity in (CUTTABLE, HYBRID)
    chosen = CUTTABLE if identity is CUTTABLE else HYBRID
    state = record(tokens(rows), identity=chosen)
    with DiskLibrary(tmp_path) as library:
        archive = library.open(chosen, PROBE, 100_000)
        assert keep(archive, state, chosen)
        assert read(archive, state) == expected(state, chosen)
    with DiskLibrary(tmp_path) as library:
        archive = library.open(chosen, PROBE, 100_000)
        hit = archive.find([(rows, state.key)], state.ids)
        assert hit is not None and hit.at == rows
        assert hit.record.extents == state.extents and hit.record.role is Role.END
        assert np.array_equal(hit.record.ids, state.ids) and hit.record.conversation == "chat"
        assert archive.tier(hit.record) == "disk"
        assert read(archive, hit.record) == expected(state, chosen)
        assert archive.census().damaged == archive.census().dropped == 0


def test_everything_is_the_users_alone(tmp_path: Path) -> None:
    with DiskLibrary(tmp_path) as library:
        keep(opened(library), record(tokens(600)))
    found = list((tmp_path / "states").rglob("*"))
    assert {stat.S_IMODE(p.stat().st_mode) for p in found if p.is_dir()} == {0o700}
    assert {stat.S_IMODE(p.stat().st_mode) for p in found if p.is_file()} == {0o600}
    assert len([p for p in found if p.is_file()]) == 1 + 3 + 1


def test_what_states_begin_with_alike_is_written_once(files: FakeFiles) -> None:
    with library_on(files) as library:
        archive = opened(library)
        first, second = record(tokens(512)), record(tokens(768), "other")
        keep(archive, first)
        keep(archive, second)
        archive.close()
        names = [path for path in files.paths() if "extents" in path.parts]
        assert len(names) == 3
        assert library.usage().shared_bytes == 2 * (PAGE + HEADER_BYTES)
        assert library.usage().disk_bytes == sum(
            len(inode.content) for path, inode in files.paths().items() if path.stem != "identity"
        )


def test_an_equal_state_only_gains_the_conversation(files: FakeFiles) -> None:
    with library_on(files) as library:
        archive = opened(library)
        keep(archive, record(tokens(512), "a"))
        keep(archive, record(tokens(512), "b"))
        assert archive.census().states == 1
        assert {row.conversation for row in library.facts()} == {"a", "b"}
    with library_on(files) as library:
        opened(library)
        assert {row.conversation for row in library.facts()} == {"a", "b"}
        assert {row.own_bytes for row in library.facts()} == {0}


def test_the_longest_state_is_found_and_a_cut_one_where_that_may_be(files: FakeFiles) -> None:
    with library_on(files) as library:
        archive = opened(library)
        short, long = record(tokens(256)), record(tokens(1024), "other")
        keep(archive, short)
        keep(archive, long)
        prompt = tokens(1200, branch_at=800)
        prefixes = [(at, record(prompt[:at]).key) for at in range(GRID, 1200, GRID)]
        hit = archive.find(prefixes, prompt)
        assert hit is not None and (hit.at, hit.record.key) == (768, long.key)
        assert find(archive, tokens(300)) is not None
        assert find(archive, tokens(300, seed=1)) is None
        assert archive.find([], prompt) is None


def test_a_state_that_cannot_be_cut_is_found_only_where_it_ends(files: FakeFiles) -> None:
    with library_on(files) as library:
        archive = library.open(HYBRID, PROBE, 100_000)
        keep(archive, record(tokens(1024), identity=HYBRID), HYBRID)
        assert find(archive, tokens(1000)) is None
        assert find(archive, tokens(1100)) is not None


def test_ids_are_compared_whole_and_not_by_digest_alone(files: FakeFiles) -> None:
    with library_on(files) as library:
        archive = opened(library)
        state = record(tokens(512))
        keep(archive, state)
        other = tokens(512)
        other[3] += 1
        assert archive.find([(512, state.key)], state.ids) is not None
        assert archive.find([(512, state.key)], other) is None


def test_another_probe_deletes_what_was_kept(files: FakeFiles) -> None:
    with library_on(files) as library:
        keep(opened(library), record(tokens(512)))
    with library_on(files) as library:
        assert find(opened(library), tokens(512)) is not None
    with library_on(files) as library:
        assert find(opened(library, probe=b"another"), tokens(512)) is None
        assert library.usage().disk_bytes == 0
    assert len(files.paths()) == 1


def test_what_was_read_before_a_model_is_opened_is_not_believed_before_its_probe(
    files: FakeFiles,
) -> None:
    with library_on(files) as library:
        keep(opened(library), record(tokens(512)))
    with library_on(files) as library:
        assert len(library.facts()) == 1
        archive = opened(library, probe=b"another")
        assert find(archive, tokens(512)) is None and library.facts() == ()
        keep(archive, record(tokens(512)))
        archive.close()
        again = opened(library, probe=b"another")
        state = record(tokens(512))
        assert again.tier(state) == "disk" and read(again, state) == expected(state)
        again.close()
        assert opened(library, probe=b"a third").tier(state) == "none"


def test_one_archive_is_open_at_a_time_and_needs_memory(files: FakeFiles) -> None:
    with library_on(files) as library:
        with pytest.raises(InvariantBroken):
            opened(library, host_bytes=2 * PAGE - 1)
        archive = opened(library, least_host_bytes(CUTTABLE))
        with pytest.raises(InvariantBroken):
            opened(library)
        archive.close()
        archive.close()
        assert find(archive, tokens(512)) is None and not archive.has(record(tokens(1)).extents[0])
        assert archive.buffer(PAGE) is None and archive.chats() == ()
        opened(library).close()


@pytest.mark.parametrize("size", [PAGE - 1, PAGE + 1])
def test_a_part_of_another_size_than_the_models_is_refused(files: FakeFiles, size: int) -> None:
    with library_on(files) as library:
        archive = opened(library)
        buffer = archive.buffer(size)
        assert buffer is not None
        with pytest.raises(InvariantBroken):
            archive.put(record(tokens(9)).extents[0], buffer)
        archive.withdraw(buffer)
        with pytest.raises(InvariantBroken):
            archive.withdraw(buffer)
        with pytest.raises(InvariantBroken):
            archive.put(record(tokens(9)).extents[0], memoryview(bytearray(PAGE)))


def test_a_state_of_which_an_extent_is_missing_is_not_kept(files: FakeFiles) -> None:
    with library_on(files) as library:
        archive = opened(library)
        archive.commit(record(tokens(512)))
        assert archive.census().states == 0 and archive.census().dropped == 1
        assert archive.tier(record(tokens(512))) == "none"
        archive.touch(record(tokens(512)), "chat")
        with archive_fetch(archive, record(tokens(512))) as status:
            assert status == "damaged"


class archive_fetch:  # noqa: N801 - reads as a sentence
    def __init__(self, archive: DiskArchive, state: StateRecord) -> None:
        self._fetch = archive.fetch(state, state.extents)

    def __enter__(self) -> str:
        assert self._fetch.ready() == []
        return self._fetch.status

    def __exit__(self, *_: object) -> None:
        self._fetch.close()
        self._fetch.close()


def test_extents_that_no_state_names_go_at_the_end(files: FakeFiles) -> None:
    with library_on(files) as library:
        archive = opened(library)
        state = record(tokens(256))
        buffer = archive.buffer(PAGE)
        assert buffer is not None
        buffer[:] = content(state.extents[0])
        archive.put(state.extents[0], buffer)
        assert archive.has(state.extents[0])
    assert [path.name for path in files.paths()] == ["identity.state"]


def test_an_extent_put_twice_is_kept_once(files: FakeFiles) -> None:
    with library_on(files) as library:
        archive = opened(library)
        name = record(tokens(256)).extents[0]
        for _ in range(2):
            buffer = archive.buffer(PAGE)
            assert buffer is not None
            archive.put(name, buffer)
        assert archive.census().host_bytes <= 2 * PAGE


def test_a_slow_disk_makes_buffers_scarce_and_nobody_wait(files: FakeFiles) -> None:
    gate = threading.Event()
    with library_on(files) as library:
        archive = opened(library)
        assert find(archive, tokens(64)) is None

        def slow(name: str) -> None:
            if name.startswith("write"):
                gate.wait(10)

        files.before = slow
        began, given = time.monotonic(), 0
        for name in record(tokens(20 * 256)).extents:
            buffer = archive.buffer(PAGE)
            if buffer is None:
                break
            archive.put(name, buffer)
            given += 1
        assert time.monotonic() - began < 4.0
        assert given == HOST // PAGE - 2
        assert archive.census().waiting_bytes == given * PAGE
        assert archive.census().host_bytes <= HOST
        gate.set()


def test_host_memory_is_read_first_and_never_passes_its_limit(files: FakeFiles) -> None:
    with library_on(files) as library:
        archive = opened(library)
        states = [record(tokens(512, seed), str(seed)) for seed in range(9)]
        for state in states:
            assert keep(archive, state)
            assert archive.census().host_bytes <= HOST
        assert {archive.tier(state) for state in states} == {"host", "disk"}
        assert archive.tier(states[-1]) == "host"
        before = archive.revision
        assert read(archive, states[-1]) == expected(states[-1])
        assert {chat.conversation: chat.tokens for chat in archive.chats()} == {
            str(seed): 512 for seed in range(9)
        }
        for state in states:
            assert read(archive, state) == expected(state)
            assert archive.census().host_bytes <= HOST
        assert archive.revision >= before


def test_two_fetches_and_a_write_share_little_memory(files: FakeFiles) -> None:
    first, second = record(tokens(2000)), record(tokens(1700, 1), "b")
    with library_on(files) as library:
        archive = opened(library)
        keep(archive, first)
        keep(archive, second)
    with library_on(files) as library:
        archive = opened(library, least_host_bytes(CUTTABLE))
        with (
            closing(archive.fetch(first, first.extents)) as one,
            closing(archive.fetch(second, second.extents)) as two,
        ):
            buffer = archive.buffer(PAGE)
            assert buffer is not None
            archive.withdraw(buffer)
            assert drain(one) == expected(first)
            assert drain(two) == expected(second)
            assert one.read_bytes == len(first.extents) * PAGE
        assert archive.census().host_bytes <= least_host_bytes(CUTTABLE)


def test_a_cancelled_fetch_waits_for_its_read_and_publishes_nothing(files: FakeFiles) -> None:
    state = record(tokens(2000))
    with library_on(files) as library:
        keep(opened(library), state)
    gate, reading = threading.Event(), threading.Event()

    def slow(name: str) -> None:
        if name == "read":
            reading.set()
            gate.wait(10)

    with library_on(files) as library:
        archive = opened(library)
        assert find(archive, state.ids) is not None
        files.before = slow
        fetch = archive.fetch(state, state.extents)
        assert reading.wait(5)
        closer = threading.Thread(target=fetch.close)
        closer.start()
        time.sleep(0.02)
        assert closer.is_alive(), "close must wait for the read under way"
        gate.set()
        closer.join(5)
        assert fetch.ready() == [] and fetch.read_bytes == 0 and fetch.status == "reading"
        files.before = lambda _name: None
        assert read(archive, state) == expected(state)


def test_an_archive_that_closes_ends_what_reads_it(files: FakeFiles) -> None:
    state = record(tokens(1000))
    with library_on(files) as library:
        archive = opened(library)
        keep(archive, state)
        fetch = archive.fetch(state, state.extents)
    assert fetch.ready() == [] and fetch.status == "reading"


def test_waiting_for_a_fetch_ends_when_something_came_or_the_time_is_over(
    files: FakeFiles,
) -> None:
    state = record(tokens(1000))
    with library_on(files) as library:
        keep(opened(library), state)
    gate = threading.Event()

    def slow(name: str) -> None:
        if name == "read":
            gate.wait(10)

    with library_on(files) as library:
        archive = opened(library)
        assert find(archive, state.ids) is not None
        files.before = slow
        with closing(archive.fetch(state, state.extents)) as fetch:
            began = time.monotonic()
            fetch.wait(0.02)
            assert 0.02 <= time.monotonic() - began < 4.0 and fetch.ready() == []
            gate.set()
            found = 0
            while fetch.status == "reading":
                fetch.wait(5.0)
                for piece in fetch.ready():
                    found += 1
                    fetch.done(piece.name)
            fetch.wait(5.0)
            assert found == len(state.extents) and time.monotonic() - began < 4.5


def test_a_read_that_the_system_refuses_is_damage(files: FakeFiles) -> None:
    state = record(tokens(1000))
    with library_on(files) as library:
        keep(opened(library), state)
    with library_on(files) as library:
        archive = opened(library)
        assert find(archive, state.ids) is not None
        files.fail_at = lambda _step, name: name == "open"
        assert read(archive, state) is None
        assert archive.census().damaged == 1 and find(archive, state.ids) is None


def test_what_is_being_read_is_deleted_when_it_was_read(files: FakeFiles) -> None:
    state = record(tokens(1000))
    with library_on(files) as library:
        archive = opened(library)
        keep(archive, state)
        with closing(archive.fetch(state, state.extents)) as fetch:
            library.clear(["chat"])
            assert archive.tier(state) == "none" and find(archive, state.ids) is None
            assert library.facts() == ()
            assert drain(fetch) == expected(state)
        assert archive.census().states == 0
    assert [path.name for path in files.paths()] == ["identity.state"]


def test_a_dropped_state_leaves_what_others_need(files: FakeFiles) -> None:
    with library_on(files) as library:
        archive = opened(library)
        first, second = record(tokens(512)), record(tokens(768), "other")
        keep(archive, first)
        keep(archive, second)
        archive.drop(first.key)
        archive.drop(first.key)
        assert archive.tier(first) == "none"
        assert read(archive, second) == expected(second)


def test_a_read_only_folder_keeps_nothing_and_says_so_once(
    files: FakeFiles, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    files.fail_at = lambda _step, name: name in ("make_folder", "create")
    with library_on(files) as library:
        archive = opened(library)
        assert archive.buffer(PAGE) is None
        assert find(archive, tokens(512)) is None
        assert library.facts() == ()
    assert [r.levelname for r in caplog.records if "kept on disk" in r.message] == ["INFO"]


def test_a_full_disk_costs_the_state_and_is_told_once(
    files: FakeFiles, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    with library_on(files) as library:
        archive = opened(library)
        kept = record(tokens(512))
        keep(archive, kept)
        settle(archive)
        files.fail_at = lambda _step, name: name.startswith("write")
        for seed in range(1, 6):
            keep(archive, record(tokens(512, seed), str(seed)))
            settle(archive)
        assert archive.census().states == 1 and archive.census().waiting_bytes == 0
        files.fail_at = lambda _step, _name: False
        keep(archive, record(tokens(512, 9), "later"))
        settle(archive)
        assert archive.census().states == 2
        assert read(archive, kept) == expected(kept)
    assert len([r for r in caplog.records if "not written" in r.message]) == 1


def settle(archive: DiskArchive) -> None:
    until = time.monotonic() + 5
    while archive.census().waiting_bytes and time.monotonic() < until:
        time.sleep(0.001)
