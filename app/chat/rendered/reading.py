"""A growing text read as groups of blocks: only its open end is ever read again.

``Reading`` is the state of one text on the UI thread; short ends are read there, long ones on a
thread. Pure but for the thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from app.chat.markdown.parse import groups_of
from app.chat.markdown.records import Block, Group
from app.desktop.answers import Background

AT_ONCE: Final = 2_000
"""Signs that are read in less than a millisecond or two."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is new: the first ``kept`` blocks stay, ``blocks`` follow them."""

    kept: int
    blocks: tuple[Block, ...]


class Reading:
    """One text. Calls ``changed`` with a Change, at once or from the event loop."""

    def __init__(self, background: Background, changed: Callable[[Change], None]) -> None:
        self._background = background
        self._changed = changed
        self._text = ""
        self._start = 0
        self._done = 0
        self._open = 0
        self._busy = False
        self._stale = False
        self._closed = False

    def read(self, text: str) -> None:
        """Read ``text``, which begins with what was read before, or is another one."""
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
