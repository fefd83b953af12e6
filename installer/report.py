"""What set-up tells while it works: one line a step, details in place on a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import TextIO

QUIET_S = 5.0


class Report:
    """Writes progress to one stream. Keeps the step that runs and when it last said something."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream.isatty()
        self._title = ""
        self._spoke = 0.0

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Announce a step, and its duration once it is done; a failure is the caller's to tell."""
        self._title, began = title, time.monotonic()
        self._spoke = began
        self._stream.write(f"{title} ..." + ("" if self._terminal else "\n"))
        self._stream.flush()
        try:
            yield
        except BaseException:
            self._line("stopped")
            self._stream.write("\n" if self._terminal else "")
            raise
        self._line(f"done in {time.monotonic() - began:.1f} s")
        self._stream.write("\n" if self._terminal else "")
        self._stream.flush()

    def detail(self, text: str) -> None:
        """What the step does just now: always on a terminal, every few seconds in a log."""
        now = time.monotonic()
        if self._terminal or now - self._spoke >= QUIET_S:
            self._spoke = now
            self._line(text)

    def say(self, text: str) -> None:
        """One line for a person, whatever runs."""
        self._stream.write(f"{text}\n")
        self._stream.flush()

    def _line(self, text: str) -> None:
        start, end = ("\r\033[K", "") if self._terminal else ("  ", "\n")
        self._stream.write(f"{start}{self._title}: {text[:100]}{end}")
        self._stream.flush()
