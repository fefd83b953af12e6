"""A limited child can do nothing but answer, and whatever it does, the engine goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.errors import TemplateFailed
from engine.helpers.limited import LimitedChild
from engine.helpers.pipe import FRAME_LIMIT

PROBE = "tests.helpers.probe_child"
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def child() -> Iterator[LimitedChild]:
    with LimitedChild(PROBE, subject="The probe", failure=TemplateFailed) as probe:
        probe.ask(b"echo")
        yield probe


@pytest.mark.parametrize("trick", ["read", "write", "socket"])
def test_it_opens_no_file_and_no_socket(child: LimitedChild, trick: str) -> None:
    assert child.ask(trick.encode()) == b"refused OSError"


def test_it_starts_no_program(child: LimitedChild) -> None:
    assert child.ask(b"start").startswith(b"refused")


def test_it_forks_nothing_unless_it_is_root(child: LimitedChild) -> None:
    """The kernel does not count root's processes; a root engine's child has no file to run."""
    assert child.ask(b"fork") == (
        b"did forked" if os.geteuid() == 0 else b"refused BlockingIOError"
    )


def test_it_gets_only_so_much_memory(child: LimitedChild) -> None:
    assert child.ask(b"grow") == b"refused MemoryError"


def test_it_inherits_no_descriptor_and_no_environment() -> None:
    read, write = os.pipe()
    os.set_inheritable(write, True)
    try:
        with LimitedChild(PROBE, subject="The probe", failure=TemplateFailed) as fresh:
            assert fresh.ask(b"descriptors") == b"did 0 1 2"
            assert set(fresh.ask(b"environment").split()) <= {b"did", b"LC_CTYPE"}
    finally:
        os.close(read)
        os.close(write)


def test_it_never_loads_torch(child: LimitedChild) -> None:
    assert b" torch" not in child.ask(b"modules")


def test_one_that_sleeps_is_ended_by_the_clock_and_the_next_answers() -> None:
    with LimitedChild(PROBE, subject="The probe", failure=TemplateFailed, wall_seconds=0.3) as slow:
        assert slow.ask(b"echo") == b"did echo"
        begun = time.monotonic()
        with pytest.raises(TemplateFailed, match=r"took longer than 0\.3 s"):
            slow.ask(b"sleep")
        assert time.monotonic() - begun < 3
    with LimitedChild(PROBE, subject="The probe", failure=TemplateFailed) as again:
        assert again.ask(b"echo") == b"did echo"


@pytest.mark.parametrize("trick", ["die", "cut"])
def test_one_that_dies_is_told_and_replaced(trick: str) -> None:
    with LimitedChild(PROBE, subject="The probe", failure=TemplateFailed) as child:
        with pytest.raises(TemplateFailed, match="was stopped"):
            child.ask(trick.encode())
        assert child.ask(b"echo") == b"did echo"


def test_one_that_died_between_requests_is_replaced_without_a_word() -> None:
    with LimitedChild(PROBE, subject="The probe", failure=TemplateFailed) as child:
        assert child.ask(b"echo") == b"did echo"
        process = child._process
        assert process is not None
        process.kill()
        process.wait()
        assert child.ask(b"echo") == b"did echo"


def test_too_much_at_once_is_refused_before_it_is_sent(child: LimitedChild) -> None:
    with pytest.raises(TemplateFailed, match="too many"):
        child.ask(bytes(FRAME_LIMIT + 1))
    assert child.ask(b"echo") == b"did echo"


def test_closing_leaves_no_process_and_no_thread() -> None:
    threads = threading.active_count()
    child = LimitedChild(PROBE, subject="The probe", failure=TemplateFailed)
    child.close()
    child.ask(b"echo")
    process = child._process
    assert process is not None
    child.close()
    child.close()
    assert process.returncode is not None
    assert threading.active_count() == threads


def test_it_ends_with_the_process_that_started_it() -> None:
    """The parent is killed while the child is in an endless loop, where no pipe is read."""
    script = (
        "import os, sys; from engine.errors import TemplateFailed;"
        "from engine.helpers.limited import LimitedChild;"
        f"child = LimitedChild({PROBE!r}, subject='x', failure=TemplateFailed);"
        "child.ask(b'echo'); print(child._process.pid, flush=True);"
        "child._process.stdin.write(bytes([4, 0, 0, 0]) + b'spin');"
        "child._process.stdin.flush(); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, check=False
    )
    pid = int(done.stdout)
    deadline = time.monotonic() + 5
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"
