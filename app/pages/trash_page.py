"""The trash: chats that were deleted, until when they stay, and both ways out of it."""

from __future__ import annotations

from functools import partial
from typing import Final

from PySide6.QtCore import QDateTime, QLocale, Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QWidget

from app.chat.storage.conversations import ConversationEntry
from app.language.words import tr
from app.look.icons import Icons
from app.look.theme import Look
from app.pages.head import HeadAction
from app.pages.page import FullPage
from app.pages.settings.card import Card, SettingsRow
from app.widgets.icon_button import IconButton

KEPT_DAYS: Final = 30
DAY_MS: Final = 24 * 60 * 60 * 1000
MOST_ROWS: Final = 200
"""Shown at once; the newest first."""


class TrashPage(FullPage):
    """Emits ``looked`` when it is shown, ``restore_wanted`` and ``erase_wanted`` with an entry.

    The head's button asks for all of them to be erased.
    """

    looked = Signal()
    restore_wanted = Signal(object)
    erase_wanted = Signal(object)

    def __init__(self, look: Look, icons: Icons, parent: QWidget) -> None:
        action = HeadAction("trash", tr("Empty the trash"), tr("Deletes all of them for good"))
        super().__init__(look, icons, tr("Trash"), parent, action=action)
        self._icons = icons
        self._card: Card | None = None
        self._words = QLabel(self)
        self._words.setProperty("tone", "quiet")
        self._words.setWordWrap(True)
        self.column.addWidget(self._words)
        self.column.addStretch(1)
        self.rows: tuple[SettingsRow, ...] = ()
        self.setFocusProxy(self.head.action)

    def showEvent(self, event: QShowEvent) -> None:
        """What is there now is asked for."""
        super().showEvent(event)
        self.looked.emit()

    def show_entries(self, entries: tuple[ConversationEntry, ...]) -> None:
        """Show the chats in the trash."""
        if self._card is not None:
            self._card.hide()
            self._card.deleteLater()
            self._card = None
        self.head.offer(tr("Trash") if entries else "")
        words = tr("Chats stay here for {days} days and are then deleted for good.", days=KEPT_DAYS)
        self._words.setText(words if entries else tr("Nothing is in the trash."))
        self.rows = ()
        if entries:
            self._card = Card(self._look, self)
            self.rows = tuple(self._row(each, self._card) for each in entries[:MOST_ROWS])
            for row in self.rows:
                self._card.add(row)
            self.column.insertWidget(1, self._card)

    def _row(self, entry: ConversationEntry, card: QWidget) -> SettingsRow:
        buttons = QWidget(card)
        line = QHBoxLayout(buttons)
        line.setContentsMargins(0, 0, 0, 0)
        restore = QPushButton(tr("Restore"), buttons)
        restore.setFixedHeight(self._look.theme.px(30))
        restore.setAccessibleName(tr("Restore {title}", title=entry.title))
        restore.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        restore.clicked.connect(partial(self.restore_wanted.emit, entry))
        name = tr("Delete {title} for good", title=entry.title)
        erase = IconButton(self._look, self._icons, "trash", name, buttons, side=30)
        erase.clicked.connect(partial(self.erase_wanted.emit, entry))
        for button in (restore, erase):
            line.addWidget(button)
            self.follow_focus(button)
        until = tr("until {day}", day=gone_on(entry))
        return SettingsRow(self._look, entry.title, until, buttons, card)


def gone_on(entry: ConversationEntry) -> str:
    """The day on which a chat of the trash is deleted, as the person's language writes days."""
    last = (entry.trashed_ms or 0) + KEPT_DAYS * DAY_MS
    day = QDateTime.fromMSecsSinceEpoch(last).date()
    return QLocale().toString(day, QLocale.FormatType.LongFormat)
