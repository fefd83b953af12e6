"""The parts of the disk tier by themselves: real files, formats, host memory, the worker."""

from __future__ import annotations

import os
import threading
import time
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pytest

from engine.errors import InvariantBroken
from engine.states.disk.host import HostMemory
from engine.states.disk.library import DiskLibrary
from engine.states.disk.stored.files import DiskFiles, Files, OldFile, read_exactly, write_new
from engine.states.disk.stored.folder import StateFolder
from engine.states.disk.stored.formats import (
    BLOCK_BYTES,
    HEADER_BYTES,
    IdentityFile,
    Manifest,
    extent_header,
    extent_sums,
    pack_identity,
    pack_manifest,
    unpack_identity,
    unpack_manifest,
)
from engine.states.disk.worker import Worker
from engine.states.records import ExtentName, Role
from tests.helpers.disk_states import CUTTABLE, DATA, PAGE, PROBE, keep, record, tokens
from tests.helpers.fake_files import FakeFiles

NAME = ExtentName(bytes(range(16)), 3)
OTHER = ExtentName(bytes(16), 3)


def test_the_real_files_write_read_and_delete(tmp_path: Path) -> None:
    files: Files = DiskFiles()
    folder, path = tmp_path / "a" / "b", tmp_path / "a" / "b" / "file"
    files.make_folder(folder)
    write_new(files, path, folder / "1.tmp", [memoryview(b"ab"), memoryview(b""), memoryview(b"c")])
    files.sync_folder(folder)
    assert [(e.name, e.is_folder, e.size_bytes) for e in files.entries(folder)] == [
        ("file", False, 3)
    ]
    file = files.open(path)
    into = memoryview(bytearray(2))
    assert file.size_bytes == 3 and read_exactly(file, 1, into) and bytes(into) == b"bc"
    assert not read_exactly(file, 2, into)
    file.close()
    with pytest.raises(FileExistsError):
        files.create(path)
    assert files.free_bytes(tmp_path / "not" / "there") > 0
    files.remove(path)
    files.remove(path)
    files.remove_folder(folder)
    assert files.entries(folder) == ()


def test_a_closed_new_file_takes_no_more(tmp_path: Path) -> None:
    file = DiskFiles().create(tmp_path / "file")
    file.close()
    file.close()
    with pytest.raises(OSError, match="closed"):
        file.write(memoryview(b"a"))


def test_a_rename_waits_for_who_holds_the_file_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, tries = Path.replace, []

    def held(source: Path, target: Path) -> Path:
        tries.append(source)
        if len(tries) <= refusals:
            raise PermissionError(13, "held")
        return real(source, target)

    monkeypatch.setattr(Path, "replace", held)
    monkeypatch.setattr("engine.states.disk.stored.files.RENAME_PAUSES_S", (0.001,) * 3)
    (tmp_path / "a").write_bytes(b"x")
    refusals = 2
    DiskFiles().rename(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == b"x" and len(tries) == 3
    refusals = 99
    with pytest.raises(PermissionError):
        DiskFiles().rename(tmp_path / "b", tmp_path / "c")
    assert len(tries) == 3 + 4


def test_where_folders_cannot_be_synced_nothing_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileNotFoundError):
        DiskFiles().sync_folder(tmp_path / "none")
    monkeypatch.setattr("engine.states.disk.stored.files.SYNCS_FOLDERS", False)
    DiskFiles().sync_folder(tmp_path / "none")


def test_links_and_pipes_are_never_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"x" * 50)
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "link", tmp_path / "pipe", tmp_path):
        with pytest.raises(OSError, match=path.name):
            DiskFiles().open(path)
    sizes = {e.name: e.size_bytes for e in DiskFiles().entries(tmp_path)}
    assert sizes == {"secret": 50, "link": 0, "pipe": 0}


def test_a_failed_write_leaves_no_file() -> None:
    files = FakeFiles()
    files.fail_at = lambda _step, name: name.startswith("rename")
    with pytest.raises(OSError, match="told"):
        write_new(files, DATA / "file", DATA / "1.tmp", [memoryview(b"abc")])
    assert files.paths() == {} and files.open_files == 0


@pytest.mark.parametrize("size", [1, 4095, BLOCK_BYTES, BLOCK_BYTES + 1])
def test_a_header_names_its_extent_and_sums_its_blocks(size: int) -> None:
    content = memoryview(np.random.default_rng(size).integers(0, 256, size, np.uint8).data)
    header = extent_header(NAME, content)
    assert len(header) == HEADER_BYTES
    sums = extent_sums(header, NAME, size)
    assert sums is not None and len(sums) == -(-size // BLOCK_BYTES)
    assert extent_sums(header, OTHER, size) is None
    assert extent_sums(header, ExtentName(NAME.digest, 2), size) is None
    assert extent_sums(header, NAME, size + 1) is None
    assert extent_sums(header[:-1], NAME, size) is None
    assert extent_sums(bytes(HEADER_BYTES), NAME, size) is None


def manifest(**changes: object) -> Manifest:
    facts: dict[str, object] = {
        "key": bytes(16),
        "ids": bytes(8),
        "role": Role.END,
        "extents": ((bytes(16), 0, 5),),
        "conversations": ("a",),
        "pinned_by": (),
        "used_s": 1.0,
    }
    return Manifest(**{**facts, **changes})  # type: ignore[arg-type]


def test_a_manifest_is_believed_only_where_every_number_may_be() -> None:
    sizes = {0: 5, -1: 9}

    def read_back(found: Manifest, key: bytes = bytes(16)) -> Manifest | None:
        return unpack_manifest(pack_manifest(found), key, sizes)

    assert read_back(manifest()) == manifest()
    assert read_back(manifest(role=Role.SHARED, conversations=())) is not None
    wrong: list[dict[str, object]] = [
        {"ids": b""},
        {"ids": bytes(7)},
        {"extents": ()},
        {"extents": ((bytes(16), 0, 6),)},
        {"extents": ((bytes(16), 0, 4),)},
        {"extents": ((bytes(16), 1, 1),)},
        {"extents": ((bytes(16), 0, 0),)},
        {"extents": ((bytes(15), 0, 5),)},
        {"extents": ((bytes(16), 0, -1),)},
        {"conversations": ("x" * 2000,)},
        {"conversations": ("x",) * 300},
        {"used_s": float("nan")},
        {"used_s": float("inf")},
        {"used_s": -1.0},
    ]
    for changes in wrong:
        assert read_back(manifest(**changes)) is None, changes
    assert read_back(manifest(), key=bytes(15) + b"1") is None


def test_foreign_bytes_are_no_manifest_and_no_identity() -> None:
    identity = IdentityFile(
        model="m", facts=(("a", "b"),), extent_bytes={0: 5}, can_cut=True, probe=b"p"
    )
    assert unpack_identity(pack_identity(identity)) == identity
    for content in (b"", b"HMODEL01", bytes(12), pack_manifest(manifest())):
        assert unpack_identity(content) is None
    assert unpack_manifest(pack_identity(identity), bytes(16), {0: 5}) is None
    more = msgspec.structs.replace(identity, extent_bytes={0: -5})
    assert unpack_identity(pack_identity(more)) is None


def test_a_manifest_too_large_to_be_one_is_not_read() -> None:
    files = FakeFiles()
    with DiskLibrary(DATA, files=files) as library:
        keep(library.open(CUTTABLE, PROBE, 12 * PAGE), record(tokens(64)))
    place = next(Path(path).parent for path in files.paths() if path.name == "identity.state")
    assert StateFolder(files, place).read_identity() is not None
    assert StateFolder(HugeFiles(files.root), place).read_identity() is None


class HugeFiles(FakeFiles):
    """Files that say they are a terabyte long."""

    def open(self, path: Path) -> OldFile:
        return HugeFile(super().open(path))


class HugeFile:
    size_bytes = 1 << 40

    def __init__(self, file: OldFile) -> None:
        self._file = file

    def read_at(self, offset: int, into: memoryview) -> int:
        return self._file.read_at(offset, into)

    def close(self) -> None:
        self._file.close()


def test_host_memory_reuses_what_is_free_and_trades_sizes() -> None:
    host = HostMemory(100, 10)
    buffer = host.take(40)
    assert buffer is not None and host.take(50) is None
    host.give_back(buffer)
    assert host.take(40) is buffer
    host.give_back(buffer)
    other = host.take(70)
    assert other is not None and len(other) == 70 and host.held_bytes == 70
    host.keep(NAME, other)
    assert NAME in host and host.waiting_bytes == 70
    assert host.take(20) is None
    host.wrote(NAME)
    host.wrote(OTHER)
    assert host.peek(NAME) is other and host.peek(OTHER) is None and host.borrow(OTHER) is None
    borrowed = host.borrow(NAME)
    assert borrowed is other and host.take(20) is None
    host.restore(NAME, other)
    host.restore(OTHER, other)
    assert host.take(20) is not None and NAME not in host and host.evicted == 1
    assert host.held_bytes <= 100


def test_a_borrowed_extent_that_is_forgotten_and_comes_again_keeps_its_own_readers() -> None:
    host = HostMemory(100, 10)
    first, second = host.take(10), host.take(10)
    assert first is not None and second is not None
    host.keep(NAME, first)
    host.wrote(NAME)
    assert host.borrow(NAME) is first
    host.forget(NAME)
    host.forget(NAME)
    host.keep(NAME, second)
    host.wrote(NAME)
    assert host.borrow(NAME) is second
    host.restore(NAME, first)
    assert host.take(75) is None
    host.restore(NAME, second)
    assert host.take(75) is not None


def test_reading_and_writing_leave_each_other_memory() -> None:
    host = HostMemory(40, 10)
    assert [host.take(10) is not None for _ in range(3)] == [True, True, False]
    assert [host.take(10, reading=True) is not None for _ in range(3)] == [True, True, False]
    host = HostMemory(40, 10)
    staged = [host.take(10, reading=True) for _ in range(4)]
    assert [each is not None for each in staged] == [True, True, True, False]
    assert host.take(10) is not None
    with pytest.raises(InvariantBroken):
        host.give_back(memoryview(bytearray(10)))
    with pytest.raises(InvariantBroken):
        host.keep(NAME, memoryview(bytearray(10)))


def wait(gate: threading.Event) -> None:
    assert gate.wait(5)


def test_the_worker_runs_jobs_in_order_and_those_put_first_before_them() -> None:
    done: list[int] = []
    gate = threading.Event()
    with Worker(lambda: None, 60.0) as worker:
        worker.add(partial(wait, gate))
        worker.add(lambda: done.append(2))
        worker.add_first(lambda: done.append(1))
        assert not worker.flush(0.01)
        gate.set()
        assert worker.flush(5.0) and done == [1, 2]
        assert worker.call(lambda: done.append(3), 5.0)
        assert not worker.call(lambda: time.sleep(0.05), 0.001)
    assert not worker.call(lambda: done.append(4), 5.0)
    worker.add(lambda: done.append(5))
    worker.close()
    assert done == [1, 2, 3]
    Worker(lambda: None, 60.0).close()


def test_a_flush_under_way_ends_when_it_must_hurry() -> None:
    gate = threading.Event()
    with Worker(lambda: None, 60.0) as worker:
        worker.add(partial(wait, gate))
        threading.Timer(0.03, lambda: worker.hurry(0.01)).start()
        began = time.monotonic()
        assert not worker.flush(5.0)
        assert time.monotonic() - began < 4.0
        gate.set()


def test_the_worker_does_its_idle_work_whether_idle_or_busy() -> None:
    times: list[float] = []
    with Worker(lambda: times.append(time.monotonic()), 0.02) as worker:
        worker.add(lambda: None)
        until = time.monotonic() + 5
        while len(times) < 2 and time.monotonic() < until:
            time.sleep(0.005)
        before = len(times)
        worker.add(lambda: time.sleep(0.03))
        assert worker.flush(5.0)
    assert before >= 2 and len(times) > before
