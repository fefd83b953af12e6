"""The engine's standard error as a log: a rotating file and its last lines in memory.

Owns one file and the older parts beside it (``engine.log.1`` is the newest of them). Written by the
thread that reads the pipe, read by any thread. A log that cannot be written costs only the file;
the last lines stay readable.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

LINE_BYTES = 4096


class EngineLog:
    """One log over every life of the engine in this process.

    Attributes:
        path: the newest file.
        failure: why the file is not written any more, None while it is.
    """

    def __init__(
        self,
        path: Path,
        *,
        limit_bytes: int = 1_000_000,
        kept_files: int = 3,
        kept_lines: int = 500,
    ) -> None:
        self.path = path
        self.failure: str | None = None
        self._limit_bytes = limit_bytes
        self._kept_files = kept_files
        self._lines: deque[str] = deque(maxlen=kept_lines)
        self._file: BinaryIO | None = None
        self._file_bytes = 0
        self._lock = threading.Lock()

    def write(self, line: bytes) -> None:
        """Take one line as it came, with its line end or without."""
        text = line[:LINE_BYTES].decode("utf-8", "replace").rstrip("\r\n")
        with self._lock:
            self._lines.append(text)
            if self.failure is None:
                try:
                    self._append(text.encode("utf-8") + b"\n")
                except OSError as error:
                    self.failure = f"{self.path}: {error.strerror or error}"

    def tail(self, count: int = 40) -> tuple[str, ...]:
        """The last ``count`` lines, oldest first."""
        with self._lock:
            return tuple(self._lines)[-count:]

    def close(self) -> None:
        """Close the file; a later write opens it again."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def _append(self, content: bytes) -> None:
        if self._file is not None and self._file_bytes + len(content) > self._limit_bytes:
            self._file.close()
            self._file = None
            self._rotate()
        if self._file is None:
            self._file = self._open()
        self._file.write(content)
        self._file.flush()
        self._file_bytes += len(content)

    def _open(self) -> BinaryIO:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.path.exists() and self.path.stat().st_size >= self._limit_bytes:
            self._rotate()
        number = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        opened = os.fdopen(number, "ab")
        self._file_bytes = os.fstat(number).st_size
        return opened

    def _rotate(self) -> None:
        names = [self.path.name, *(f"{self.path.name}.{n}" for n in range(1, self._kept_files))]
        for newer, older in reversed(tuple(pairwise(names))):
            if self.path.with_name(newer).exists():
                self.path.with_name(newer).replace(self.path.with_name(older))
