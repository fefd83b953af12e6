"""Counts what a test must not leave behind: Python threads, child processes, bytes in a ledger."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from engine.memory.ledger import Ledger

GRACE_S = 2.0
PAUSE_S = 0.02


@dataclass(frozen=True, slots=True)
class Census:
    """The threads (by identity) and the child processes (by pid) of one moment."""

    threads: frozenset[threading.Thread]
    children: frozenset[int]

    def left_behind(self, earlier: Census) -> list[str]:
        """What is here and was not in ``earlier``, in words."""
        threads = [f"thread {each.name!r}" for each in self.threads - earlier.threads]
        children = [f"child {describe(pid)}" for pid in self.children - earlier.children]
        return sorted(threads + children)


def take() -> Census:
    """Count now. Threads that Python did not start and progress bars' watchers are not ours."""
    threads = frozenset(
        each
        for each in threading.enumerate()
        if not isinstance(each, threading._DummyThread)
        and not type(each).__module__.startswith("tqdm")
    )
    return Census(threads, children())


def children() -> frozenset[int]:
    """The pids of this process's children that are alive (a zombie counts: it was not reaped)."""
    if sys.platform != "linux":
        return frozenset(child.pid for child in psutil.Process().children())
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        try:
            found.update(map(int, (task / "children").read_text().split()))
        except OSError:
            continue
    return frozenset(found)


def settle(
    earlier: Census, now: Callable[[], Census] = take, grace_s: float = GRACE_S
) -> list[str]:
    """What is still left behind once things have had ``grace_s`` to end."""
    deadline = time.monotonic() + grace_s
    left = now().left_behind(earlier)
    while left and time.monotonic() < deadline:
        time.sleep(PAUSE_S)
        left = now().left_behind(earlier)
    return left


def describe(pid: int) -> str:
    """A child's pid and command line, as far as they can still be read."""
    try:
        child = psutil.Process(pid)
        return f"{pid} ({child.status()}: {' '.join(child.cmdline())[:120]})"
    except psutil.Error:
        return str(pid)


@contextmanager
def lent(
    capacities: Mapping[str, int],
    *,
    ceilings: Mapping[str, int] | None = None,
    behind: Mapping[str, str] | None = None,
) -> Iterator[Ledger]:
    """A ledger that must be empty at the end, with nobody in quarantine either."""
    ledger = Ledger(capacities, ceilings=ceilings or {}, behind=behind or {})
    yield ledger
    assert [(pool.name, pool.holders) for pool in ledger.census() if pool.held_bytes] == []
    ledger.close()
