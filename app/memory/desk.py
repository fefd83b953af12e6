"""Asks the engine for its memory and its kept chats, and hands on what to show of them.

Asks when something has happened, and every two seconds while somebody looks; never twice at once,
and the window never waits for an answer. Owns a timer. UI thread only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, Protocol

from PySide6.QtCore import QObject, QTimer, Signal

from app.errors import AppError, EngineUnavailable, failure_sentence
from app.link.bridge import EngineBridge
from app.link.events import OnMessage
from app.memory.model import MemoryView, Told, memory_view
from app.memory.rows import KnownChat
from engine.protocol import EngineMessage, Failure, MemoryFacts, StatesKept

PERIOD_MS: Final = 2000
Ask = Callable[[], int]


class Asks(Protocol):
    """What the desk needs of ``EngineClient``; each raises EngineUnavailable without an engine."""

    @property
    def ready(self) -> bool:
        """Whether an engine is connected."""

    def memory(self, *, on_message: OnMessage) -> int:
        """Ask for MemoryFacts."""

    def states(self, *, on_message: OnMessage) -> int:
        """Ask for StatesKept."""

    def pin_states(self, conversation: str, pinned: bool, *, on_message: OnMessage) -> int:
        """Pin or unpin: StatesKept or Failure."""

    def clear_states(self, conversations: Iterable[str] | None, *, on_message: OnMessage) -> int:
        """Delete: StatesKept or Failure."""


class MemoryDesk(QObject):
    """Emits ``changed`` with each new ``MemoryView``, ``failed`` with the sentence of a refusal.

    Attributes:
        view: what was emitted last.
    """

    changed = Signal(object)
    failed = Signal(object)

    def __init__(
        self,
        client: Asks,
        bridge: EngineBridge,
        parent: QObject,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(parent)
        self._client = client
        self._bridge = bridge
        self._clock = clock
        self._told = Told(there=client.ready)
        self._waiting = 0
        self._again = False
        self.view = MemoryView()
        self._timer = QTimer(self)
        self._timer.setInterval(PERIOD_MS)
        self._timer.timeout.connect(self._on_time)
        bridge.ready.connect(self._on_ready)
        bridge.died.connect(self._on_died)
        bridge.tiers.connect(self._on_tiers)

    def look(self, looking: bool) -> None:
        """Somebody looks at the page, or no more."""
        if not looking:
            self._timer.stop()
        elif not self._timer.isActive():
            self._timer.start()
            self.refresh()

    def refresh(self) -> None:
        """Ask anew; where an answer is on its way, ask once more after it."""
        if self._waiting:
            self._again = True
            return
        self._again = False
        for ask in (self._ask_memory, self._ask_states):
            try:
                ask()
            except EngineUnavailable:
                return
            self._waiting += 1

    def show_chats(self, chats: tuple[KnownChat, ...]) -> None:
        """The chats that the app has."""
        self._tell(replace(self._told, chats=chats))

    def show_name(self, model: str, name: str) -> None:
        """What the window calls a model that has another name at the engine."""
        self._tell(replace(self._told, names={**self._told.names, model: name}))

    def show_answering(self, chats: frozenset[int]) -> None:
        """The chats that have a running reply; when one has ended, what is kept has changed."""
        ended = self._told.answering - chats
        self._tell(replace(self._told, answering=chats))
        if ended:
            self.refresh()

    def pin(self, conversation: str, pinned: bool) -> None:
        """Keep a chat's states from going, or no more."""
        self._change(
            lambda: self._client.pin_states(conversation, pinned, on_message=self._listener())
        )

    def clear(self, conversations: tuple[str, ...] | None) -> None:
        """Delete what is kept of chats, None of all."""
        self._change(lambda: self._client.clear_states(conversations, on_message=self._listener()))

    def close(self) -> None:
        """Ask no more."""
        self._timer.stop()

    def _on_time(self) -> None:
        """While an answer is on its way there is no need for another."""
        if not self._waiting:
            self.refresh()

    # Asking --------------------------------------------------------------------------------------

    def _ask_memory(self) -> None:
        self._client.memory(on_message=self._bridge.on_ui(self._on_answer))

    def _ask_states(self) -> None:
        self._client.states(on_message=self._bridge.on_ui(self._on_answer))

    def _listener(self) -> OnMessage:
        return self._bridge.on_ui(self._on_changed)

    def _change(self, ask: Ask) -> None:
        try:
            ask()
        except AppError as error:
            self.failed.emit(error.sentence)

    # Answers -------------------------------------------------------------------------------------

    def _on_answer(self, message: EngineMessage) -> None:
        self._waiting -= 1
        self._take(message)
        if self._again and not self._waiting:
            self.refresh()

    def _on_changed(self, message: EngineMessage) -> None:
        if isinstance(message, Failure):
            self.failed.emit(failure_sentence(message))
        self._take(message)
        self.refresh()

    def _take(self, message: EngineMessage) -> None:
        match message:
            case MemoryFacts():
                self._tell(replace(self._told, memory=message))
            case StatesKept():
                self._tell(replace(self._told, states=message))

    def _on_ready(self, _ready: object) -> None:
        self._tell(replace(self._told, there=True))
        self.refresh()

    def _on_died(self, _died: object) -> None:
        # What ran has had its Failure before, so nothing is on its way any more.
        self._again = False
        self._tell(replace(self._told, there=False, memory=None, states=None))

    def _on_tiers(self, _tiers: object) -> None:
        self.refresh()

    def _tell(self, told: Told) -> None:
        self._told = told
        view = memory_view(told, self._clock())
        if view != self.view:
            self.view = view
            self.changed.emit(view)
