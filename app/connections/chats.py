"""Connects the list of chats, the chat that is shown and the model with what the window shows.

Made by the composition once the workshop is there.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject

from app.chat.blocks.words import context_tokens
from app.chat.conversation import Conversation, Turn
from app.chat.session import ChatSession
from app.chat.storage.conversations import ConversationEntry
from app.chat.turns.desk import DeletedTurn
from app.language.words import tr
from app.library.loaded import ModelPhase, ModelState
from app.link.events import EngineReady
from app.pages.names import PageName
from app.panels.chat_list import Renaming
from app.panels.chat_search import ChatPlace, Found
from app.panels.notices import model_notice
from app.text import title_of
from app.widgets.toast import ToastFacts
from app.window import Window
from app.workshop import Workshop


class ChatConnections(QObject):
    """What a person does with chats is done, and what chats and model tell is shown."""

    def __init__(
        self, window: Window, workshop: Workshop, choose_model: Callable[[], None], parent: QObject
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._workshop = workshop
        self._choose_model = choose_model
        self._noted = False
        self._place: ChatPlace | None = None
        chats, model = workshop.chats, workshop.model
        window.sidebar.new_wanted.connect(self.new)
        window.bar.chat_wanted.connect(self.new)
        window.sidebar.chosen.connect(self._on_chosen)
        window.sidebar.page_wanted.connect(self._on_page_wanted)
        window.sidebar.delete_wanted.connect(chats.trash)
        window.sidebar.pin_wanted.connect(self._on_pin_wanted)
        window.sidebar.renamed.connect(self._on_renamed)
        window.sidebar.search_wanted.connect(self._on_search_wanted)
        window.sidebar.place_chosen.connect(self._on_place_chosen)
        window.page.desk.branched.connect(self._on_branched)
        window.page.desk.deleted.connect(self._on_turn_deleted)
        chats.listed.connect(window.sidebar.show_entries)
        chats.answering.connect(window.sidebar.show_answering)
        chats.shown.connect(self._on_shown)
        chats.trashed.connect(self._on_trashed)
        model.changed.connect(self._on_model_changed)
        workshop.bridge.ready.connect(self._on_engine_ready)

    def new(self) -> None:
        """Show an empty chat."""
        self._window.show_page(PageName.CHAT)
        self._workshop.chats.new()

    def trash_current(self) -> None:
        """Put the chat that is shown into the trash."""
        session = self._window.page.session
        if session is not None and session.conversation is not None:
            self._workshop.chats.trash(session.conversation.id)

    # Chats ---------------------------------------------------------------------------------------

    def _on_chosen(self, chat: int) -> None:
        self._window.show_page(PageName.CHAT)
        self._workshop.chats.open(chat)
        self._window.close_overlay()

    def _on_pin_wanted(self, chat: int) -> None:
        entries = self._workshop.chats.entries
        pinned = any(entry.id == chat and entry.pinned_ms is not None for entry in entries)
        self._workshop.chats.pin(chat, not pinned)

    def _on_renamed(self, renaming: Renaming) -> None:
        self._workshop.chats.rename(renaming.chat, renaming.title)

    def _on_search_wanted(self, words: str) -> None:
        show = self._window.sidebar.show_hits
        self._workshop.store.ask(
            lambda store: store.search.find(words), lambda hits: show(Found(words, hits))
        )

    def _on_place_chosen(self, place: ChatPlace) -> None:
        """Open a chat where a word was found."""
        self._place = place
        self._on_chosen(place.chat)

    def _on_page_wanted(self, name: PageName) -> None:
        self._window.show_page(name)
        self._window.close_overlay()

    def _on_trashed(self, entry: ConversationEntry) -> None:
        restore = self._workshop.chats.restore
        facts = ToastFacts(
            "trash",
            tr("Chat moved to trash"),
            entry.title,
            tr("Undo"),
            lambda: restore(entry.id),
        )
        self._window.toast.tell(facts)

    def _on_branched(self, chat: int) -> None:
        self._workshop.chats.refresh()
        self._workshop.chats.open(chat)

    def _on_turn_deleted(self, deleted: DeletedTurn) -> None:
        desk = self._window.page.desk
        own = deleted.turn.role == "user"
        facts = ToastFacts(
            "trash",
            tr("Message moved to trash") if own else tr("Reply moved to trash"),
            title_of(deleted.turn.text),
            tr("Undo"),
            lambda: desk.restore(deleted, self._window.page.session),
        )
        self._window.toast.tell(facts)

    def _on_shown(self, session: ChatSession) -> None:
        session.changed.connect(self._on_conversation_changed)
        session.ended.connect(self._on_reply_ended)
        self._window.page.show_session(session)
        self._go_to_place(session)
        self._show_conversation(session.conversation)

    def _go_to_place(self, session: ChatSession) -> None:
        place, chat = self._place, session.conversation
        if place is not None and chat is not None and chat.id == place.chat:
            self._place = None
            self._window.page.view.go_to(place.turn)

    def _on_conversation_changed(self, conversation: Conversation) -> None:
        session = self._window.page.session
        if session is not None and session.conversation is conversation:
            self._show_conversation(conversation)

    def _on_reply_ended(self, _turn: Turn) -> None:
        session = self._window.page.session
        self._show_conversation(session.conversation if session is not None else None)

    def _show_conversation(self, conversation: Conversation | None) -> None:
        window = self._window
        window.bar.show_title(conversation.title if conversation is not None else "")
        window.sidebar.show_current(conversation.id if conversation is not None else None)
        self._show_context(conversation)

    def _show_context(self, conversation: Conversation | None) -> None:
        facts = self._workshop.model.state.facts
        path = conversation.path() if conversation is not None else ()
        used = next((context_tokens(turn) for turn in reversed(path) if turn.reply), 0)
        self._window.bar.show_context(used, facts.context_tokens if facts is not None else 0)

    # Model and engine ----------------------------------------------------------------------------

    def _on_model_changed(self, state: ModelState) -> None:
        window = self._window
        window.bar.show_model(state)
        window.page.show_model(state)
        without = (ModelPhase.ABSENT, ModelPhase.FAILED, ModelPhase.UNLOADED)
        if state.phase in without:
            window.page.show_notice(model_notice(state, self._choose_model, self._workshop.model))
            self._noted = True
        elif self._noted:
            window.page.show_notice(None)
            self._noted = False
        session = window.page.session
        self._show_context(session.conversation if session is not None else None)

    def _on_engine_ready(self, ready: EngineReady) -> None:
        session = self._window.page.session
        if ready.restarts and session is not None and not session.state.busy:
            self._window.page.view.add_note(
                tr("The engine stopped and was started again; your chat is intact")
            )
