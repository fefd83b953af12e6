"""Connects the memory page and the sidebar's marks with what they show and ask for.

Made by the composition once everything else is there; owns the desk and nothing else.
"""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.chat.conversation import chat_name
from app.chat.storage.lengths import Lengths
from app.library.loaded import ModelPhase, ModelState
from app.look.icons import Icons
from app.look.theme import Look
from app.memory.desk import MemoryDesk
from app.memory.model import MemoryView, tiers_of
from app.memory.rows import KeptRow, KnownChat, delete_question
from app.pages.names import PageName
from app.panels.question import Question, QuestionFacts
from app.widgets.toast import ToastFacts
from app.window import Window
from app.workshop import Workshop


class MemoryConnections(QObject):
    """What a person does on the memory page is done, and what the engine tells is shown."""

    def __init__(
        self, window: Window, workshop: Workshop, look: Look, icons: Icons, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._workshop = workshop
        self._look = look
        self._icons = icons
        self._lengths = Lengths({}, {})
        self.desk = MemoryDesk(workshop.client, workshop.bridge, self)
        self._connect_page()
        self.desk.changed.connect(self._on_view)
        self.desk.failed.connect(self._on_failed)
        workshop.kept.changed.connect(self._show_tiers)
        workshop.chats.listed.connect(self._on_listed)
        workshop.chats.answering.connect(self._on_answering)
        workshop.model.changed.connect(self._on_model_changed)

    def close(self) -> None:
        """Ask no more."""
        self.desk.close()

    def _connect_page(self) -> None:
        page = self._window.memory
        page.shown_changed.connect(self._on_seen_changed)
        self._window.minimized.connect(self._on_seen_changed)
        page.head.chat_wanted.connect(self._on_new_wanted)
        page.head.action.clicked.connect(self._workshop.model.unload)
        page.kept.table.open_wanted.connect(self._on_open_wanted)
        page.kept.table.pin_wanted.connect(self._on_pin_wanted)
        page.kept.table.delete_wanted.connect(self._on_delete_wanted)
        page.kept.clear.clicked.connect(self._on_clear_wanted)

    # What is told --------------------------------------------------------------------------------

    def _on_view(self, view: MemoryView) -> None:
        self._window.memory.show_view(view)
        self._window.sidebar.memory.show_parts(view.bar, view.bar_words)
        self._show_tiers()

    def _show_tiers(self, _tiers: object = None) -> None:
        # The engine tells tiers of the loaded model; without one, those of what is kept hold.
        view, loaded = self.desk.view, self._workshop.model.state.phase is ModelPhase.READY
        tiers = self._workshop.kept.tiers if loaded else tiers_of(view.rows)
        self._window.sidebar.show_tiers(tiers, gpu=view.gpu)

    def _on_seen_changed(self, _how: bool) -> None:
        self.desk.look(self._is_seen())
        self._ask_lengths()

    def _is_seen(self) -> bool:
        return self._window.memory.isVisible() and not self._window.isMinimized()

    def _on_listed(self, _entries: object) -> None:
        self._show_chats()
        self._ask_lengths()

    def _ask_lengths(self) -> None:
        """How long the chats are is of interest only while the page can be seen."""
        if self._is_seen():
            self._workshop.store.ask(lambda store: store.lengths.read(), self._on_lengths)

    def _on_lengths(self, lengths: Lengths) -> None:
        self._lengths = lengths
        self._show_chats()

    def _show_chats(self) -> None:
        facts, lengths = self._workshop.model.state.facts, self._lengths
        model = facts.name if facts is not None else ""
        self.desk.show_chats(
            tuple(
                KnownChat(
                    chat=entry.id,
                    conversation=chat_name(entry.id),
                    title=entry.title,
                    used_s=entry.updated_ms / 1000,
                    tokens=lengths.tokens.get(entry.id, 0),
                    read_s=lengths.read_s(entry.id, model),
                )
                for entry in self._workshop.chats.entries
            )
        )

    def _on_answering(self, chats: frozenset[int]) -> None:
        self.desk.show_answering(chats)
        self._window.memory.head.action.setEnabled(not chats)
        if chats and self._workshop.model.state.phase is ModelPhase.UNLOADED:
            self._workshop.model.try_again()

    def _on_model_changed(self, state: ModelState) -> None:
        ready = state.phase is ModelPhase.READY
        self._window.memory.head.offer(state.name if ready else "")
        self._show_tiers()
        if state.facts is not None:
            self.desk.show_name(state.facts.name, state.name)
        if ready or state.phase is ModelPhase.UNLOADED:
            self.desk.refresh()

    def _on_failed(self, sentence: str) -> None:
        self._window.toast.tell(ToastFacts("warn", "That did not work", sentence))

    # What is wanted ------------------------------------------------------------------------------

    def _on_new_wanted(self) -> None:
        self._window.show_page(PageName.CHAT)
        self._workshop.chats.new()

    def _on_open_wanted(self, row: KeptRow) -> None:
        if row.chat is not None:
            self._window.show_page(PageName.CHAT)
            self._workshop.chats.open(row.chat)

    def _on_pin_wanted(self, row: KeptRow) -> None:
        if row.conversation is not None:
            self.desk.pin(row.conversation, not row.pinned)

    def _on_delete_wanted(self, row: KeptRow) -> None:
        name = row.conversation
        if name is None:
            return
        self._ask(
            QuestionFacts(
                f"Delete what is kept of “{row.title}”?",
                delete_question(row),
                "Delete",
                lambda: self.desk.clear((name,)),
            )
        )

    def _on_clear_wanted(self) -> None:
        self._ask(
            QuestionFacts(
                "Delete what is kept of all chats?",
                "The texts of the chats stay. The next reply in each reads the whole chat again, "
                "once.",
                "Delete all",
                lambda: self.desk.clear(None),
            )
        )

    def _ask(self, facts: QuestionFacts) -> None:
        Question(self._look, self._icons, facts, self._window).open()
