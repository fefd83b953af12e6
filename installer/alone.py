"""One set-up of a checkout at a time."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from installer.problems import SetupProblem

if sys.platform != "win32":
    import fcntl


@contextlib.contextmanager
def alone(root: Path) -> Iterator[None]:
    """Hold the checkout while it is being set up; a second set-up is refused, not mixed in.

    The children of set-up hold it too: after a kill of set-up alone, its pip may still be at work.

    Raises:
        SetupProblem: another set-up of this checkout runs.
    """
    if sys.platform == "win32":
        yield
        return
    held = os.open(root, os.O_RDONLY)
    os.set_inheritable(held, True)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(held)
        raise SetupProblem(f"{root} is being set up by another process just now.") from error
    try:
        yield
    finally:
        os.close(held)
