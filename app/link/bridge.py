"""The link's callbacks as Qt signals: everything arrives on the UI thread, one typed record each.

The client calls back on its own thread; the bridge hands each record to the thread it lives in
through Qt's event queue, in order. After ``close`` nothing arrives any more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QObject, Qt, Signal

from app.link.events import (
    EngineDied,
    EngineEvent,
    EngineFault,
    EngineReady,
    OnMessage,
    TiersChanged,
)
from engine.protocol import EngineMessage

Listener = Callable[[EngineMessage], None]


@dataclass(frozen=True, slots=True)
class Post:
    """A message on its way to its listener, or an event of the engine itself."""

    listener: Listener | None
    content: EngineMessage | EngineEvent


class EngineBridge(QObject):
    """Emits ``ready``, ``died``, ``fault`` and ``tiers`` with the record of that name."""

    ready = Signal(object)
    died = Signal(object)
    fault = Signal(object)
    tiers = Signal(object)
    _posted = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._open = True
        self._posted.connect(self._on_posted, Qt.ConnectionType.QueuedConnection)

    def on_event(self, event: EngineEvent) -> None:
        """The client's ``on_event``; may be called on any thread."""
        self._post(Post(None, event))

    def on_ui(self, listener: Listener) -> OnMessage:
        """A callback for the client that calls ``listener`` on the UI thread."""

        def forward(message: EngineMessage) -> None:
            self._post(Post(listener, message))

        return forward

    def close(self) -> None:
        """Drop what is still on its way."""
        self._open = False

    def _post(self, post: Post) -> None:
        if self._open:
            self._posted.emit(post)

    def _on_posted(self, post: Post) -> None:
        if not self._open:
            return
        match post.content:
            case EngineReady():
                self.ready.emit(post.content)
            case EngineDied():
                self.died.emit(post.content)
            case EngineFault():
                self.fault.emit(post.content)
            case TiersChanged():
                self.tiers.emit(post.content)
            case message:
                if post.listener is not None:
                    post.listener(message)
