"""Which checkpoints stopped the engine, so that none is loaded by itself a third time.

Owns one small file of the data directory. A checkpoint is counted when the engine died while it was
being loaded or was loaded, and is cleared by a reply that it finished. A file that changed its size
is another checkpoint. Used from the link's thread and, for ``allows``, from any.
"""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path
from typing import Final

import msgspec

from app.files import write_atomically

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
