"""Connects the trash with its page; what lay there long enough is deleted for good at start."""

from __future__ import annotations

import time

from PySide6.QtCore import QObject

from app.chat.storage.conversations import ConversationEntry
from app.chat.store import Store
from app.language.words import tr, tr_count
from app.look.icons import Icons
from app.look.theme import Look
from app.pages.names import PageName
from app.pages.trash_page import DAY_MS, KEPT_DAYS, TrashPage
from app.panels.question import Question, QuestionFacts
from app.window import Window
from app.workshop import Workshop


class TrashConnections(QObject):
    """What a person does in the trash is done."""

    def __init__(
        self, window: Window, workshop: Workshop, look: Look, icons: Icons, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._workshop = workshop
        self._look = look
        self._icons = icons
        self._entries: tuple[ConversationEntry, ...] = ()
        self.page = TrashPage(look, icons, window)
        window.add_page(PageName.TRASH, self.page)
        self.page.head.chat_wanted.connect(lambda: window.show_page(PageName.CHAT))
        self.page.head.action.clicked.connect(self._on_empty_wanted)
        self.page.looked.connect(self._look_again)
        self.page.restore_wanted.connect(self._on_restore_wanted)
        self.page.erase_wanted.connect(self._on_erase_wanted)

    def sweep(self) -> None:
        """Delete for good what lay in the trash longer than it stays there."""
        before = time.time_ns() // 1_000_000 - KEPT_DAYS * DAY_MS

        def old(store: Store) -> tuple[ConversationEntry, ...]:
            entries = store.conversations.entries(trashed=True)
            return tuple(entry for entry in entries if (entry.trashed_ms or 0) < before)

        self._workshop.store.ask(old, self._erase)

    def _look_again(self) -> None:
        self._workshop.store.ask(
            lambda store: store.conversations.entries(trashed=True), self._show
        )

    def _show(self, entries: tuple[ConversationEntry, ...]) -> None:
        self._entries = entries
        self.page.show_entries(entries)

    def _erase(self, entries: tuple[ConversationEntry, ...]) -> None:
        for entry in entries:
            self._workshop.chats.erase(entry.id)
        if self.page.isVisible():
            self._look_again()

    def _on_restore_wanted(self, entry: ConversationEntry) -> None:
        self._window.show_page(PageName.CHAT)
        self._workshop.chats.restore(entry.id)

    def _on_erase_wanted(self, entry: ConversationEntry) -> None:
        self._ask((entry,), entry.title)

    def _on_empty_wanted(self) -> None:
        count = len(self._entries)
        self._ask(self._entries, tr_count("%n chats in the trash", count))

    def _ask(self, entries: tuple[ConversationEntry, ...], what: str) -> None:
        facts = QuestionFacts(
            tr("Delete for good?"),
            tr("{what}: the texts, and what is kept of them, cannot be brought back.", what=what),
            tr("Delete for good"),
            lambda: self._erase(entries),
        )
        Question(self._look, self._icons, facts, self._window).open()
