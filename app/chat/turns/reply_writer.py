"""A reply on its way to the disk: begun, written as it comes, ended. UI thread only.

Owns a timer; the writing itself is done by the store's thread, in order.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from app.chat.conversation import ReplyContent, ReplyFacts, Turn, TurnState
from app.chat.store import Store
from app.chat.store_bridge import StoreBridge
from app.chat.turns.asking import Asking
from app.desktop.answers import OnError
from engine.protocol import Tokens

WRITE_MS: Final = 400
"""A reply is on disk at most this long after it came, well within half a second."""


class ReplyWriter(QObject):
    """One running reply: what has come of it, and its row in the store.

    Emits ``failed`` with the AppError when it cannot be written while it runs.
    """

    failed = Signal(object)

    def __init__(self, asking: Asking, store: StoreBridge, parent: QObject) -> None:
        super().__init__(parent)
        begun = asking.begun
        self._asking = asking
        self._store = store
        self._turn: int | None = None
        self._ids: list[int] = list(begun.ids)
        self.text = begun.text
        self.thinking_text = begun.thinking_text
        self.facts = _with_thinking_of(asking)
        self._thinks_since: float | None = None
        self._timer = QTimer(self)
        self._timer.setInterval(WRITE_MS)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._write)

    def begin(self, then: Callable[[Turn], None]) -> None:
        """Make the reply's row, or open it again; ``then`` takes the turn."""
        asking = self._asking
        before = asking.goes_on

        def begin(store: Store) -> Turn:
            if before is None:
                turn = store.turns.begin_reply(asking.conversation, asking.parent, self.facts)
            else:
                store.turns.write_reply(before.id, asking.begun)
                turn = store.turns.read(before.id)
            self._turn = turn.id
            return turn

        self._store.ask(begin, then, self._on_error)

    def add(self, tokens: Tokens) -> None:
        """Take newly generated text; it is written within ``WRITE_MS``."""
        if tokens.region == "answer":
            self.text += tokens.text
        else:
            self.thinking_text += tokens.text
            self._measure(len(tokens.ids))
        self._ids.extend(tokens.ids)
        if not self._timer.isActive():
            self._timer.start()

    def content(self) -> ReplyContent:
        """What has come so far."""
        return ReplyContent(text=self.text, thinking_text=self.thinking_text, ids=tuple(self._ids))

    def end(
        self,
        state: TurnState,
        content: ReplyContent,
        facts: ReplyFacts,
        then: Callable[[Turn | None], None],
        otherwise: OnError,
    ) -> None:
        """Write the end; ``then`` takes the turn, None where it never got a row."""
        self._timer.stop()

        def end(store: Store) -> Turn | None:
            if self._turn is None:
                return None
            return store.turns.end_reply(self._turn, state, content, facts)

        self._store.ask(end, then, otherwise)

    def _measure(self, tokens: int) -> None:
        """Count what is thought, unless a part of it was never counted."""
        now, facts = time.monotonic(), self.facts
        spent = 0.0 if self._thinks_since is None else 1000 * (now - self._thinks_since)
        self._thinks_since = now
        if facts.thinking_ms is not None and facts.thinking_tokens is not None:
            ms, count = facts.thinking_ms + spent, facts.thinking_tokens + tokens
            self.facts = replace(facts, thinking_ms=ms, thinking_tokens=count)

    def _write(self) -> None:
        content = self.content()

        def write(store: Store) -> None:
            if self._turn is not None:
                store.turns.write_reply(self._turn, content)

        self._store.ask(write, _nobody, self._on_error)

    def _on_error(self, error: Exception) -> None:
        self.failed.emit(error)


def _nobody(_result: object) -> None:
    """Nobody waits for this result."""


def _with_thinking_of(asking: Asking) -> ReplyFacts:
    """The facts of a reply before it begins, with what was thought before where it goes on."""
    before = asking.goes_on
    if before is None or not before.thinking_text:
        return replace(asking.facts, thinking_ms=0.0, thinking_tokens=0)
    found = before.reply or ReplyFacts()
    return replace(
        asking.facts, thinking_ms=found.thinking_ms, thinking_tokens=found.thinking_tokens
    )
