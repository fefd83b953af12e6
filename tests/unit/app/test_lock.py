"""The lock of a data directory: one owner, named to the others, freed by any end."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from app.errors import DirectoryInUse, DirectoryUnusable
from app.lock import DirectoryLock, Owner, is_alive, read_owner, start_time

HOLD = (
    "import sys, time; from pathlib import Path; from app.lock import DirectoryLock\n"
    "lock = DirectoryLock(Path(sys.argv[1]), 'the window')\n"
    "print('held', flush=True); time.sleep(60)\n"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "hearth.lock"


def holder(file: Path) -> subprocess.Popen[bytes]:
    child = subprocess.Popen([sys.executable, "-c", HOLD, str(file)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"held\n"
    return child


def test_the_second_owner_is_refused_with_the_first_ones_name(file: Path) -> None:
    with DirectoryLock(file, "hearth ask"):
        with pytest.raises(DirectoryInUse) as caught:
            DirectoryLock(file, "the window")
        assert f"hearth ask (process {os.getpid()})" in caught.value.sentence
        assert str(file.parent) in caught.value.sentence
    DirectoryLock(file, "the window").close()


def test_a_killed_owner_frees_the_lock(file: Path) -> None:
    with holder(file) as child:
        with pytest.raises(DirectoryInUse, match=f"the window .process {child.pid}"):
            DirectoryLock(file, "hearth ask")
        child.kill()
        child.wait()
        DirectoryLock(file, "hearth ask").close()


def test_a_child_of_the_owner_does_not_keep_the_lock(file: Path) -> None:
    lock = DirectoryLock(file, "the window")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        lock.close()
        with DirectoryLock(file, "hearth ask"):
            owner = read_owner(file)
        child.kill()
    assert owner is not None and owner.what == "hearth ask"


def test_the_owner_is_forgotten_at_close_and_close_may_be_repeated(file: Path) -> None:
    lock = DirectoryLock(file, "the window")
    here = Owner(pid=os.getpid(), started=start_time(os.getpid()), what="the window")
    assert read_owner(file) == here
    lock.close()
    lock.close()
    assert read_owner(file) is None


def test_a_reused_pid_is_not_taken_for_the_owner() -> None:
    began = start_time(os.getpid())
    assert began is not None
    assert is_alive(Owner(pid=os.getpid(), started=began, what="x"))
    assert not is_alive(Owner(pid=os.getpid(), started=began - 100, what="x"))
    assert not is_alive(Owner(pid=2**22 + 1, started=None, what="x"))


@pytest.mark.parametrize("alive", [True, False])
def test_without_locks_in_the_file_system_the_text_decides(
    file: Path, monkeypatch: pytest.MonkeyPatch, alive: bool
) -> None:
    def no_locks(_number: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("app.lock._lock", no_locks)
    began = start_time(os.getpid())
    assert began is not None
    started = began if alive else began - 100
    file.write_bytes(msgspec.json.encode(Owner(pid=os.getpid(), started=started, what="a ghost")))
    if alive:
        with pytest.raises(DirectoryInUse, match="a ghost"):
            DirectoryLock(file, "the window")
    else:
        DirectoryLock(file, "the window").close()


@pytest.mark.parametrize("content", [b"", b"garbage", b"{}", b'{"pid": "x"}'])
def test_a_lock_file_that_says_nothing_is_no_obstacle(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with DirectoryLock(file, "the window"):
        owner = read_owner(file)
    assert owner is not None and owner.pid == os.getpid()


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DirectoryUnusable, match="cannot be used"):
        DirectoryLock(tmp_path / "missing" / "lock", "x")


def test_an_ended_process_has_no_start_time() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
        assert start_time(child.pid) is None
