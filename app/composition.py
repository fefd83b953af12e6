"""Builds every long-lived object of the window once and closes them in reverse.

The only file that knows all of them: it passes each what it needs and connects what one says to
what another does.
"""

from __future__ import annotations

import logging

import msgspec
from PySide6.QtCore import QObject
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QApplication

from app.actions import Action, install
from app.chat.blocks.words import context_tokens
from app.chat.conversation import Conversation, Turn
from app.chat.session import ChatSession
from app.chat.storage.conversations import ConversationEntry
from app.desktop.forward import ForwardWatch
from app.directories import Directories
from app.errors import AppError, SettingsInvalid
from app.library.choice import ModelChoice
from app.library.loaded import ModelPhase, ModelState
from app.link.events import EngineReady
from app.link.process import EngineCommand
from app.look.icons import Icons
from app.look.theme import Look, Preference
from app.memory.connections import MemoryConnections
from app.pages.names import PageName
from app.panels.notices import model_notice, store_notice
from app.settings.file import SettingsFile
from app.settings.record import Settings, WindowSettings
from app.widgets.toast import ToastFacts
from app.window import USUAL, Window, WindowPlace
from app.workshop import Workshop

log = logging.getLogger(__name__)


class Application(QObject):
    """The window and everything behind it.

    ``start`` is called once the window is shown, ``close`` once it is gone.
    """

    def __init__(
        self,
        application: QApplication,
        places: Directories,
        settings: SettingsFile,
        command: EngineCommand,
        *,
        font: QFont | None = None,
    ) -> None:
        super().__init__(application)
        self._places = places
        self._settings = settings
        self._command = command
        self._workshop: Workshop | None = None
        self.memory: MemoryConnections | None = None
        self.choice: ModelChoice | None = None
        self._noted = False
        chosen = settings.settings
        self.look = Look(application, Preference(chosen.theme), font, zoom=chosen.text_scale)
        self._icons = Icons()
        self.window = Window(self.look, self._icons)
        self.window.restore(_place(settings.settings.window))
        self._forward = ForwardWatch(places.data / "run", self)
        self._forward.wanted.connect(self._come_forward)
        install(self._actions(), self.window)

    def start(self) -> None:
        """Open the store, start the engine, look for a model; none of it holds the window up."""
        try:
            settings = self._settings.settings
            sampling, wish = settings.sampling.to_sampling(), settings.to_wish()
            workshop = Workshop(self._places, self._command, sampling, self, wish)
        except AppError as error:
            self.window.page.show_notice(store_notice(error.sentence))
            return
        self._workshop = workshop
        self._connect(workshop)
        self.memory = MemoryConnections(self.window, workshop, self.look, self._icons, self)
        workshop.start(self._settings.settings.window.conversation)
        self.choice = ModelChoice(
            workshop.model, self._places, self._settings, self._save, self._on_error
        )
        self.choice.start()

    def close(self) -> None:
        """Close everything in reverse order; may be called at any moment."""
        self._remember_place()
        self.window.page.keep_draft()
        if self.choice is not None:
            self.choice.close()
        if self.memory is not None:
            self.memory.close()
        if self._workshop is not None:
            self._workshop.close()
        self.window.deleteLater()
        self.look.deleteLater()

    @property
    def workshop(self) -> Workshop:
        """What is behind the window; only once ``start`` has succeeded."""
        assert self._workshop is not None
        return self._workshop

    def show_fault(self, detail: str) -> None:
        """Tell of an error in the window itself; ``detail`` is for a report."""
        sentence = "Something in the window went wrong. Your chats are safe."
        self.window.page.show_notice(store_notice(sentence, detail))

    # Connections ---------------------------------------------------------------------------------

    def _connect(self, workshop: Workshop) -> None:
        window, chats, model = self.window, workshop.chats, workshop.model
        window.sidebar.new_wanted.connect(self._new_chat)
        window.bar.chat_wanted.connect(self._new_chat)
        window.sidebar.chosen.connect(self._on_chosen)
        window.sidebar.page_wanted.connect(self._on_page_wanted)
        window.sidebar.delete_wanted.connect(chats.trash)
        chats.listed.connect(window.sidebar.show_entries)
        chats.answering.connect(window.sidebar.show_answering)
        chats.shown.connect(self._on_shown)
        chats.trashed.connect(self._on_trashed)
        model.changed.connect(self._on_model_changed)
        workshop.bridge.ready.connect(self._on_engine_ready)
        workshop.store.failed.connect(self._on_error)
        for sentence in (*self._settings.notices, *workshop.notices):
            window.page.show_notice(store_notice(sentence))

    def _on_chosen(self, chat: int) -> None:
        self.window.show_page(PageName.CHAT)
        self.workshop.chats.open(chat)
        self.window.close_overlay()

    def _on_page_wanted(self, name: PageName) -> None:
        self.window.show_page(name)
        self.window.close_overlay()

    def _on_trashed(self, entry: ConversationEntry) -> None:
        restore = self.workshop.chats.restore
        self.window.toast.tell(
            ToastFacts(
                "trash", "Chat moved to trash", entry.title, "Undo", lambda: restore(entry.id)
            )
        )

    def _on_shown(self, session: ChatSession) -> None:
        session.changed.connect(self._on_conversation_changed)
        session.ended.connect(self._on_reply_ended)
        self.window.page.show_session(session)
        self._show_conversation(session.conversation)

    def _on_conversation_changed(self, conversation: Conversation) -> None:
        session = self.window.page.session
        if session is not None and session.conversation is conversation:
            self._show_conversation(conversation)

    def _on_reply_ended(self, _turn: Turn) -> None:
        session = self.window.page.session
        self._show_conversation(session.conversation if session is not None else None)

    def _show_conversation(self, conversation: Conversation | None) -> None:
        window = self.window
        window.bar.show_title(conversation.title if conversation is not None else "")
        window.sidebar.show_current(conversation.id if conversation is not None else None)
        self._show_context(conversation)

    def _show_context(self, conversation: Conversation | None) -> None:
        facts = self._workshop.model.state.facts if self._workshop is not None else None
        path = conversation.path() if conversation is not None else ()
        used = next((context_tokens(turn) for turn in reversed(path) if turn.reply), 0)
        self.window.bar.show_context(used, facts.context_tokens if facts is not None else 0)

    # Model ---------------------------------------------------------------------------------------

    def _on_model_changed(self, state: ModelState) -> None:
        window = self.window
        window.bar.show_model(state)
        window.page.show_model(state)
        workshop = self._workshop
        without = (ModelPhase.ABSENT, ModelPhase.FAILED, ModelPhase.UNLOADED)
        if state.phase in without and workshop is not None:
            notice = model_notice(state, self._ask_for_model, workshop.model)
            window.page.show_notice(notice)
            self._noted = True
        elif self._noted:
            window.page.show_notice(None)
            self._noted = False
        session = window.page.session
        self._show_context(session.conversation if session is not None else None)

    def _ask_for_model(self) -> None:
        if self.choice is not None:
            self.choice.ask(self.window)

    def _on_engine_ready(self, ready: EngineReady) -> None:
        session = self.window.page.session
        if ready.restarts and session is not None and not session.state.busy:
            self.window.page.view.add_note(
                "The engine stopped and was started again; your chat is intact"
            )

    # Small things --------------------------------------------------------------------------------

    def _actions(self) -> tuple[Action, ...]:
        page = self.window.page
        return (
            Action("chat.new", "New chat", ("Ctrl+N", "Ctrl+Shift+O"), self._new_chat,
                   self._is_working),
            Action("chat.stop", "Stop the reply", ("Esc",), self._escape),
            Action("chat.again", "Answer again", ("Ctrl+R",), page.answer_again, page.isVisible),
            Action("chat.copy-reply", "Copy the reply", ("Ctrl+Shift+C",), page.copy_last_reply,
                   page.isVisible),
            Action("chat.trash", "Delete the chat", ("Ctrl+Shift+Backspace",), self._trash,
                   page.isVisible),
            Action("app.undo", "Undo", ("Ctrl+Z",), self.window.toast.undo,
                   self.window.toast.isVisible),
            Action("view.sidebar", "Toggle the sidebar", ("Ctrl+B", "F9"),
                   self.window.toggle_sidebar),
            Action("view.composer", "Write a message", ("Shift+Esc",), self._write),
            Action("view.chat", "Show the chat", ("Ctrl+1",), self._write),
            Action("view.memory", "Show the memory", ("Ctrl+4",),
                   lambda: self.window.show_page(PageName.MEMORY)),
            Action("app.close", "Close the window", ("Ctrl+W", "Ctrl+Q"), self._close_window),
        )  # fmt: skip

    def _new_chat(self) -> None:
        self.window.show_page(PageName.CHAT)
        self.workshop.chats.new()

    def _write(self) -> None:
        self.window.show_page(PageName.CHAT)
        self.window.page.composer.setFocus()

    def _trash(self) -> None:
        session = self.window.page.session
        if session is not None and session.conversation is not None:
            self.workshop.chats.trash(session.conversation.id)

    def _escape(self) -> None:
        if self.window.close_overlay():
            return
        if self.window.shown is not PageName.CHAT:
            self.window.show_page(PageName.CHAT)
        else:
            self.window.page.stop()

    def _close_window(self) -> None:
        self.window.close()

    def _is_working(self) -> bool:
        return self._workshop is not None

    def _come_forward(self) -> None:
        self.window.showNormal() if self.window.isMinimized() else self.window.show()
        self.window.raise_()
        self.window.activateWindow()

    def _on_error(self, error: AppError) -> None:
        self.window.page.show_notice(store_notice(error.sentence))

    def _remember_place(self) -> None:
        session = self.window.page.session
        conversation = session.conversation if session is not None else None
        chat = conversation.id if conversation is not None else None
        kept = _kept(self._settings.settings.window, self.window.place(), chat)
        if kept != self._settings.settings.window:
            settings = msgspec.structs.replace(self._settings.settings, window=kept)
            self._save(settings)

    def _save(self, settings: Settings) -> None:
        try:
            self._settings.save(settings)
        except SettingsInvalid as error:
            log.warning("settings not saved reason=%s", error.sentence)


def _place(kept: WindowSettings) -> WindowPlace:
    width, height = kept.width or USUAL[0], kept.height or USUAL[1]
    return WindowPlace(kept.x, kept.y, width, height, kept.maximized, kept.sidebar_shown)


def _kept(before: WindowSettings, place: WindowPlace, chat: int | None) -> WindowSettings:
    return msgspec.structs.replace(
        before,
        x=place.x,
        y=place.y,
        width=place.width,
        height=place.height,
        maximized=place.maximized,
        sidebar_shown=place.sidebar_shown,
        conversation=chat,
    )
