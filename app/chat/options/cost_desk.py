"""Tells the composer what the message costs while it is written. UI thread only.

An estimate at each key; the engine counts once the keys rest, never a text so long that counting
would keep it from a reply.
"""

from __future__ import annotations

import contextlib
from typing import Final

from PySide6.QtCore import QObject, QTimer

from app.chat.composer import Composer
from app.chat.options.cost import LETTERS_PER_TOKEN, Cost, before_of, estimate
from app.chat.session import ChatSession
from app.errors import AppError
from app.library.loaded import LoadedModel, ModelPhase
from app.link.bridge import EngineBridge
from app.link.client import EngineClient
from engine.protocol import Counted, EngineMessage

REST_MS: Final = 150
COUNTED_MOST: Final = 100_000
"""A text of more letters is only estimated."""


class CostDesk(QObject):
    """Counts for one composer."""

    def __init__(
        self,
        composer: Composer,
        client: EngineClient,
        bridge: EngineBridge,
        model: LoadedModel,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._composer = composer
        self._client = client
        self._bridge = bridge
        self._model = model
        self._session: ChatSession | None = None
        self._request = -1
        self._asked_letters = 0
        self._letters_per_token = LETTERS_PER_TOKEN
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(REST_MS)
        self._rest.timeout.connect(self._ask)
        composer.field.textChanged.connect(self.look_again)
        model.changed.connect(self._on_model_changed)

    def show_session(self, session: ChatSession) -> None:
        """Messages are for this chat from now on."""
        self._session = session
        session.ended.connect(self._on_ended)
        self.look_again()

    def look_again(self) -> None:
        """Estimate now and count soon."""
        self._request = -1
        letters = self._composer.field.document().characterCount() - 1
        if letters <= 0 or self._context() == 0:
            self._rest.stop()
            self._composer.show_cost(None)
            return
        self._show(estimate(letters, self._letters_per_token), exact=False)
        if letters <= COUNTED_MOST:
            self._rest.start()
        else:
            self._rest.stop()

    def _ask(self) -> None:
        text = self._composer.field.exact_text()
        self._asked_letters = len(text)
        with contextlib.suppress(AppError):
            self._request = self._client.count_tokens(
                text, on_message=self._bridge.on_ui(self._on_counted)
            )

    def _on_counted(self, message: EngineMessage) -> None:
        if isinstance(message, Counted) and message.request == self._request:
            if message.tokens:
                self._letters_per_token = max(0.25, self._asked_letters / message.tokens)
            if self._context():
                self._show(message.tokens, exact=True)

    def _show(self, tokens: int, *, exact: bool) -> None:
        chat = self._session.conversation if self._session is not None else None
        self._composer.show_cost(Cost(tokens, exact, before_of(chat, self._context())))

    def _context(self) -> int:
        state = self._model.state
        ready = state.phase is ModelPhase.READY and state.facts is not None
        return state.facts.context_tokens if ready and state.facts is not None else 0

    def _on_model_changed(self, _state: object) -> None:
        self.look_again()

    def _on_ended(self, _turn: object) -> None:
        self.look_again()
