"""Everything behind the window: engine, store, chats; built together and closed in reverse.

Knows no widget, so that a test can run it without a window.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject, QTimer

from app.chat.chats import Chats
from app.chat.kept.following import KeptStates
from app.chat.store import open_store
from app.chat.store_bridge import StoreBridge
from app.chat.store_thread import StoreThread
from app.chat.turns.services import ChatServices
from app.desktop.answers import Background
from app.directories import Directories
from app.exchange.backups import Backups
from app.library.loaded import USUAL, LoadedModel
from app.link.bridge import EngineBridge
from app.link.client import EngineClient
from app.link.deaths.crash_guard import CrashGuard
from app.link.deaths.restart import RestartPolicy
from app.link.engine_log import EngineLog
from app.link.events import LoadWish
from app.link.process import EngineCommand
from engine.protocol import Sampling

LOOK_MS: Final = 3_600_000
"""How often it is seen whether a backup is due."""


class Workshop(QObject):
    """Engine, store, its backups and chats. Owns their threads and the engine's process.

    Raises:
        StoreError: the conversations cannot be opened.
    """

    def __init__(
        self,
        places: Directories,
        command: EngineCommand,
        sampling: Sampling,
        parent: QObject,
        wish: LoadWish = USUAL,
    ) -> None:
        super().__init__(parent)
        self.notices: tuple[str, ...] = ()
        self._thread = StoreThread(lambda: open_store(places.store_file))
        self.notices = self._thread.notices
        self.store = StoreBridge(self._thread, self)
        self._backups = Backups(places.store_file)
        self._copying = Background(self)
        self._copying.failed.connect(self.store.failed)
        self._due = QTimer(self, interval=LOOK_MS)
        self._due.timeout.connect(self._back_up)
        self.bridge = EngineBridge(self)
        self._engine_log = EngineLog(places.engine_log)
        self.client = EngineClient(
            command,
            engine_log=self._engine_log,
            guard=CrashGuard(places.crash_file),
            on_event=self.bridge.on_event,
            restart=RestartPolicy(),
        )
        self.model = LoadedModel(self.client, self.bridge, self, wish)
        services = ChatServices(self.store, self.client, self.bridge, self.model, sampling)
        self.chats = Chats(services, self)
        self.kept = KeptStates(self.client, self.bridge, self.store, self)
        self.model.changed.connect(self.kept.follow_model)
        self.chats.opened.connect(self.kept.tell_open)
        self.chats.erased.connect(self.kept.clear)

    def start(self, chat: int | None) -> None:
        """Start the engine and show ``chat``, or the one that was used last."""
        self.client.start()
        self.chats.start(chat)
        self._back_up()
        self._due.start()

    def close(self) -> None:
        """Keep what has come, end the engine, write what is queued."""
        self._due.stop()
        self._copying.close()
        self.chats.close()
        self.bridge.close()
        self.client.close()
        self.store.close()
        self._thread.close()
        self._engine_log.close()

    def _back_up(self) -> None:
        self._copying.ask(self._backups.make_due, lambda _made: None)
