"""A growing text read as groups of blocks: only its open end is ever read again.

``Reading`` is the state of one text on the UI thread; short ends are read there, long ones on a
thread. Owns a timer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QObject, QTimer

from app.chat.markdown.parse import groups_of
from app.chat.markdown.records import Block, Group
from app.desktop.answers import Background

PAUSE_MS: Final = 33
"""Between two readings of a growing text: what the eye sees as one."""
AT_ONCE: Final = 2_000
"""Signs that are read in less than a millisecond or two."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is new: the first ``kept`` blocks stay, ``blocks`` follow them."""

    kept: int
    blocks: tuple[Block, ...]


class Reading:
    """One text. Calls ``changed`` with a Change, at once or from the event loop."""

    def __init__(
        self, background: Background, changed: Callable[[Change], None], parent: QObject
    ) -> None:
        """Read nothing yet.

        ``parent`` owns the timer: one that Python owned could be freed by a collection that runs on
        another thread, which Qt does not survive.
        """
        self._background = background
        self._changed = changed
        self._text = ""
        self._start = 0
        self._done = 0
        self._open = 0
        self._busy = False
        self._stale = False
        self._closed = False
        self._later: str | None = None
        self._pause = QTimer(parent, singleShot=True, interval=PAUSE_MS)
        self._pause.timeout.connect(self._on_paused)

    def grow(self, text: str) -> None:
        """Read a text that grows: at once, then no oftener than the eye can follow."""
        if self._pause.isActive():
            self._later = text
        else:
            self._pause.start()
            self.read(text)

    def read(self, text: str) -> None:
        """Read ``text``, which begins with what was read before, or is another one."""
        self._later = None
        if not text.startswith(self._text[: self._start]):
            self._start = self._done = 0
        self._text = text
        if self._busy:
            self._stale = True
        else:
            self._begin()

    def close(self) -> None:
        """Tell nothing any more."""
        self._closed = True
        self._pause.stop()

    def _on_paused(self) -> None:
        if self._later is not None:
            self._pause.start()
            self.read(self._later)

    def _begin(self) -> None:
        start, end = self._start, self._text[self._start :]
        if len(end) <= AT_ONCE:
            self._take(start, groups_of(end, start))
            return
        self._busy = True
        self._background.ask(
            lambda: groups_of(end, start), lambda groups: self._on_read(start, groups)
        )

    def _on_read(self, start: int, groups: tuple[Group, ...]) -> None:
        self._busy = False
        if self._closed:
            return
        if start == self._start:
            self._take(start, groups)
        if self._stale:
            self._stale = False
            self._begin()

    def _take(self, start: int, groups: tuple[Group, ...]) -> None:
        """All groups but the last are final: what comes later never changes them."""
        blocks = tuple(block for group in groups for block in group.blocks)
        kept = self._done
        if groups:
            self._done += sum(len(group.blocks) for group in groups[:-1])
            self._start = groups[-1].start
        else:
            self._start = start
        self._changed(Change(kept, blocks))
