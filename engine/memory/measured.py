"""What the engine's process really holds, as the system tells: to be set beside the plan.

Counted are anonymous bytes, the ones that neither a file nor another program stands behind:
weights are mapped from their file or laid out anew, pages and scratch are all anonymous. Nothing
runs in the background: the peak is the largest of the moments at which somebody looked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil

from engine.protocol import MeasuredMemory

ROLLUP: Final = Path("/proc/self/smaps_rollup")
FIELD: Final = "Anonymous:"


def anonymous_bytes(rollup: Path = ROLLUP, platform: str = sys.platform) -> int | None:
    """Anonymous bytes of this process now; None where the system does not tell.

    Linux sums them over the process's mappings; Windows calls them private.
    """
    if platform == "win32":
        return private_bytes(psutil.Process().memory_info())
    try:
        return _kilobytes(rollup.read_text()) * 1024
    except (OSError, ValueError):
        return None


def private_bytes(facts: object) -> int | None:
    """The private bytes among psutil's facts of a process, which only Windows has."""
    found = getattr(facts, "private", None)
    return found if isinstance(found, int) else None


def _kilobytes(text: str) -> int:
    for line in text.splitlines():
        if line.startswith(FIELD):
            return int(line.split()[1])
    raise ValueError(f"no line {FIELD}")


class ProcessMemory:
    """Anonymous bytes beyond those at the last ``mark``, and the most that was seen since.

    Owns two numbers. Marked before a model is loaded, looked at after each reply and whenever
    somebody asks; used from the engine thread.
    """

    def __init__(self, read: Callable[[], int | None] = anonymous_bytes) -> None:
        self._read = read
        self._before = read()
        self._peak = 0

    def mark(self) -> None:
        """Count from now on: what is there already is not the model's."""
        self._before, self._peak = self._read(), 0

    def look(self) -> int | None:
        """Bytes now, 0 or more; None where the system does not tell."""
        now = self._read()
        if now is None or self._before is None:
            return None
        beyond = max(0, now - self._before)
        self._peak = max(self._peak, beyond)
        return beyond

    def measured(self, planned_bytes: int) -> MeasuredMemory:
        """Look, and tell it beside the plan."""
        now = self.look()
        return MeasuredMemory(
            anonymous_bytes=now,
            peak_bytes=None if now is None else self._peak,
            planned_bytes=planned_bytes,
        )
