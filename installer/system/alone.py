"""One set-up of a checkout at a time."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from installer.problems import SetupProblem
from installer.report import Report

if sys.platform != "win32":
    import fcntl


WAIT_S = 120.0
PAUSE_S = 0.25


@contextlib.contextmanager
def alone(root: Path, report: Report, wait_s: float = WAIT_S) -> Iterator[None]:
    """Hold the checkout while it is being set up; a second set-up waits, it is not mixed in.

    The children of set-up hold it too: after a kill of set-up alone, its pip may still be at work.

    Raises:
        SetupProblem: another set-up of this checkout still runs after ``wait_s``.
    """
    if sys.platform == "win32":
        yield
        return
    held = os.open(root, os.O_RDONLY)
    os.set_inheritable(held, True)
    try:
        if not _taken(held):
            report.say(f"Waiting for another set-up of {root} to end.")
            _wait(held, root, time.monotonic() + wait_s)
        yield
    finally:
        os.close(held)


def _wait(held: int, root: Path, until: float) -> None:
    while not _taken(held):
        if time.monotonic() > until:
            raise SetupProblem(f"{root} is still being set up by another process.")
        time.sleep(PAUSE_S)


def _taken(held: int) -> bool:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
