"""Which checkpoints stopped the engine, so that none is loaded by itself a third time.

``CrashGuard`` owns one small file of the data directory. A checkpoint is counted when the engine
died while it was being loaded or was loaded, and is cleared by a reply that it finished. A file
that changed its size is another checkpoint. ``LoadTrack`` knows what is in the engine now.
"""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path
from typing import Final

import msgspec

from app.files import write_atomically
from app.link.events import LoadChoice
from app.link.outcome import ProcessOutcome

LIMIT: Final = 2
log = logging.getLogger(__name__)


class Crash(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often one checkpoint was there when the engine died, in a row."""

    path: str
    size_bytes: int
    count: int


class CrashGuard:
    """Counts the deaths of the engine by checkpoint."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._crashes = {(c.path, c.size_bytes): c for c in _read(file)}

    def allows(self, path: str) -> bool:
        """Whether the checkpoint may be loaded without a person asking for it."""
        with self._lock:
            crash = self._crashes.get((path, _size(path)))
            return crash is None or crash.count < LIMIT

    def count(self, path: str) -> None:
        """The engine died with this checkpoint."""
        size = _size(path)
        with self._lock:
            before = self._crashes.get((path, size))
            times = before.count + 1 if before else 1
            self._crashes[path, size] = Crash(path=path, size_bytes=size, count=times)
            self._write()

    def clear(self, path: str) -> None:
        """The checkpoint finished a reply."""
        with self._lock:
            if self._crashes.pop((path, _size(path)), None) is not None:
                self._write()

    def _write(self) -> None:
        content = msgspec.json.encode(tuple(self._crashes.values()))
        try:
            write_atomically(self._file, content)
        except OSError as error:
            log.warning("crash file not written path=%s reason=%s", self._file, error)


class LoadTrack:
    """Which checkpoint is in the engine, and whether it goes back there after a death.

    Told by the link of what was asked and answered; tells the guard. Used from any thread.
    """

    def __init__(self, guard: CrashGuard) -> None:
        self._guard = guard
        self._lock = threading.Lock()
        self._asked: dict[int, LoadChoice] = {}
        self._loaded: LoadChoice | None = None
        self._wanted: LoadChoice | None = None

    @property
    def loaded_path(self) -> str | None:
        """The path of the loaded checkpoint, None when none is."""
        with self._lock:
            return None if self._loaded is None else self._loaded.path

    def allows(self, path: str) -> bool:
        """Whether the checkpoint may be loaded without a person asking for it."""
        return self._guard.allows(path)

    def asked(self, request: int, choice: LoadChoice) -> None:
        """A load was sent."""
        with self._lock:
            self._asked[request] = choice

    def withdrawn(self, request: int) -> None:
        """A load was not sent after all."""
        with self._lock:
            self._asked.pop(request, None)

    def refused(self, request: int) -> None:
        """A request failed; if it was a load, the engine had unloaded what was there before."""
        with self._lock:
            if self._asked.pop(request, None) is not None:
                self._loaded = None

    def arrived(self, request: int) -> None:
        """A load was done."""
        with self._lock:
            self._loaded = self._asked.pop(request, self._loaded)

    def unloaded(self) -> None:
        """Nothing is loaded any more."""
        with self._lock:
            self._loaded = None

    def finished(self) -> None:
        """The loaded checkpoint finished a reply."""
        path = self.loaded_path
        if path is not None:
            self._guard.clear(path)

    def ended(self, outcome: ProcessOutcome) -> None:
        """The engine ended; what was in it is counted and wanted back."""
        with self._lock:
            there = [*self._asked.values(), self._loaded]
            found = next((choice for choice in there if choice is not None), None)
            self._asked.clear()
            self._loaded = None
            # A life that ended before its handshake keeps the wish of the one before.
            self._wanted = found if outcome.ready else self._wanted
        if found is not None and not outcome.asked:
            self._guard.count(found.path)

    def take_back(self) -> tuple[LoadChoice | None, LoadChoice | None]:
        """What to load again after a restart, and what to hold back; at most one is there."""
        with self._lock:
            wanted, self._wanted = self._wanted, None
        if wanted is None or self._guard.allows(wanted.path):
            return wanted, None
        return None, wanted


def _read(file: Path) -> tuple[Crash, ...]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=tuple[Crash, ...])
    except FileNotFoundError:
        return ()
    except (OSError, msgspec.DecodeError) as error:
        log.warning("crash file ignored path=%s reason=%s", file, error)
        return ()


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - the path is text of the wire
    except OSError:
        return -1
