"""What the engine is told of the chats, and which of them it says it can resume. UI thread only.

The engine keeps states by a chat's name: those of open chats go last, those of chats that are no
more are swept. It tells in turn from where each chat goes on with the loaded model.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from PySide6.QtCore import QObject, Signal

from app.chat.conversation import chat_name, chat_of
from app.chat.store_bridge import StoreBridge
from app.errors import AppError
from app.library.loaded import ModelPhase, ModelState
from app.link.bridge import EngineBridge
from app.link.client import EngineClient
from app.link.events import TiersChanged
from engine.protocol import ChatTier, EngineMessage

Tiers = Mapping[int, ChatTier]


class KeptStates(QObject):
    """The chats as the engine knows them, over all its lives.

    Emits ``changed`` with ``tiers`` anew: by chat, from where it goes on; one that is not in it is
    kept as text only.
    """

    changed = Signal(object)

    def __init__(
        self, client: EngineClient, bridge: EngineBridge, store: StoreBridge, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._client = client
        self._bridge = bridge
        self._store = store
        self._open: frozenset[int] = frozenset()
        self._loaded = False
        self.tiers: Tiers = MappingProxyType({})
        bridge.ready.connect(self._on_ready)
        bridge.died.connect(self._on_died)
        bridge.tiers.connect(self._on_tiers)

    def tell_open(self, chats: frozenset[int]) -> None:
        """Say which chats are shown or answering, where that has changed."""
        if chats != self._open:
            self._open = chats
            self._client.open_chats(map(chat_name, sorted(chats)))

    def follow_model(self, state: ModelState) -> None:
        """Where a model goes, what could be resumed with it goes too; the next one tells anew."""
        loaded = state.phase is ModelPhase.READY
        if self._loaded and not loaded:
            self._show({})
        self._loaded = loaded

    def clear(self, chat: int) -> None:
        """Delete what is kept of a chat that is no more; without an engine its start sweeps it."""
        try:
            self._client.clear_states([chat_name(chat)], on_message=_nobody)
        except AppError:
            return

    def _on_ready(self, _ready: object) -> None:
        self._client.open_chats(map(chat_name, sorted(self._open)))
        self._store.ask(lambda store: store.conversations.every_id(), self._tell_known)

    def _tell_known(self, chats: tuple[int, ...]) -> None:
        self._client.known_chats(map(chat_name, chats))

    def _on_tiers(self, told: TiersChanged) -> None:
        found = ((chat_of(tier.conversation), tier) for tier in told.tiers.chats)
        self._show({chat: tier for chat, tier in found if chat is not None})

    def _on_died(self, _died: object) -> None:
        self._show({})

    def _show(self, tiers: dict[int, ChatTier]) -> None:
        if tiers != self.tiers:
            self.tiers = MappingProxyType(tiers)
            self.changed.emit(self.tiers)


def _nobody(_message: EngineMessage) -> None:
    """The list that comes back is of no interest here."""
