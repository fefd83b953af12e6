"""Looking for chats: the field in the sidebar, and what came of what was typed there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QWidget

from app.chat.storage.search import Hit
from app.language.words import tr
from app.look.icons import Icons
from app.look.theme import Look
from app.widgets.filter_field import FilterField

PAUSE_MS: Final = 120
"""After the last key, before the store is asked."""


@dataclass(frozen=True, slots=True)
class Found:
    """The hits of a search for ``words``."""

    words: str
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class ChatPlace:
    """A turn of a chat."""

    chat: int
    turn: int


class SearchField(FilterField):
    """Emits ``wanted`` with the words once typing pauses, and at once when they are gone."""

    wanted = Signal(str)

    def __init__(self, look: Look, icons: Icons, parent: QWidget) -> None:
        super().__init__(look, icons, tr("Search chats"), parent)
        self.line.setPlaceholderText(tr("Search"))
        self.setToolTip(tr("Search in titles and texts (Ctrl+K)"))
        self._pause = QTimer(self, singleShot=True, interval=PAUSE_MS)
        self._pause.timeout.connect(self._on_pause)
        self.line.textChanged.connect(self._on_changed)

    @property
    def words(self) -> str:
        """What is looked for."""
        return self.line.text().strip()

    def _on_changed(self, _text: str) -> None:
        if self.words:
            self._pause.start()
        else:
            self._pause.stop()
            self.wanted.emit("")

    def _on_pause(self) -> None:
        self.wanted.emit(self.words)
