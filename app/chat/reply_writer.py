"""A reply on its way to the disk: begun, written as it comes, ended. UI thread only.

Owns a timer; the writing itself is done by the store's thread, in order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from app.chat.conversation import ReplyContent, ReplyFacts, Turn, TurnState
from app.chat.store import Store
from app.chat.store_bridge import StoreBridge
from app.desktop.answers import OnError
from engine.protocol import Tokens

WRITE_MS: Final = 400
"""A reply is on disk at most this long after it came, well within half a second."""


class ReplyWriter(QObject):
    """One running reply: what has come of it, and its row in the store.

    Emits ``failed`` with the AppError when it cannot be written while it runs.
    """

    failed = Signal(object)

    def __init__(
        self, conversation: int, parent_turn: int, facts: ReplyFacts, store: StoreBridge
    ) -> None:
        super().__init__()
        self._store = store
        self._turn: int | None = None
        self._ids: list[int] = []
        self.text = ""
        self.thinking_text = ""
        self.facts = facts
        self._timer = QTimer(self)
        self._timer.setInterval(WRITE_MS)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._write)
        self._conversation = conversation
        self._parent_turn = parent_turn

    def begin(self, then: Callable[[Turn], None]) -> None:
        """Make the reply's row; ``then`` takes the empty turn."""

        def begin(store: Store) -> Turn:
            turn = store.turns.begin_reply(self._conversation, self._parent_turn, self.facts)
            self._turn = turn.id
            return turn

        self._store.ask(begin, then, self._on_error)

    def add(self, tokens: Tokens) -> None:
        """Take newly generated text; it is written within ``WRITE_MS``."""
        if tokens.region == "answer":
            self.text += tokens.text
        else:
            self.thinking_text += tokens.text
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
