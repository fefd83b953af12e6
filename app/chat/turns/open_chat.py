"""A chat in memory and in the store: which turns it shows, what is typed in it. UI thread only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from PySide6.QtCore import QObject, Signal

from app.chat.conversation import Conversation, Turn
from app.chat.options.record import NONE, ChatOptions, keep_options, options_of
from app.chat.session_facts import ChatState, Problem
from app.chat.store import Store
from app.chat.turns.services import ChatServices
from app.errors import AppError

Result = TypeVar("Result")


class OpenChat(QObject):
    """One chat. ``conversation`` is None until its first message is stored.

    ``draft`` is what was typed and not sent. Signals carry one record each: ``changed`` the
    Conversation after it changed, ``rearranged`` the same where other turns are shown than before,
    ``moved`` the ChatState, ``failed`` a Problem.
    """

    changed = Signal(object)
    rearranged = Signal(object)
    moved = Signal(object)
    failed = Signal(object)

    def __init__(
        self, conversation: Conversation | None, services: ChatServices, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._services = services
        self._closed = False
        self.conversation = conversation
        self.draft = ""
        self._options = NONE
        self.state = ChatState.IDLE

    @property
    def options(self) -> ChatOptions:
        """What the next reply is asked with."""
        return self._options if self.conversation is None else options_of(self.conversation)

    def set_options(self, options: ChatOptions) -> None:
        """Ask the next reply with these; a chat that is stored keeps them."""
        self._options = options
        chat = self.conversation
        if chat is not None and not self._closed:
            self._services.store.tell(lambda store: keep_options(store, chat.id, options))
            self.conversation = options.on(chat)

    @property
    def chat_id(self) -> int | None:
        """The number of the chat in the store; None before its first message is kept."""
        return self.conversation.id if self.conversation is not None else None

    def show_turn(self, turn: int) -> None:
        """Show the path that goes through ``turn``."""
        if self.conversation is None or self.state.busy or turn not in self.conversation.turns:
            return
        shown = self.conversation.showing(turn)
        self._services.store.tell(lambda store: store.conversations.show(shown.id, shown.leaf))
        self._rearrange(shown)
        self.changed.emit(shown)

    def change(self, work: Callable[[Store], object]) -> None:
        """Have the store changed by ``work`` and show the chat as it is then."""
        chat = self.conversation
        if chat is None or self.state.busy:
            return

        def change(store: Store) -> Conversation:
            work(store)
            return store.conversations.read(chat.id)

        self._services.store.ask(change, self._on_changed, self._on_refused)

    def ask(self, work: Callable[[Store], Result], then: Callable[[Result], None]) -> None:
        """Have the store do ``work`` for this chat; ``then`` takes its result."""
        self._services.store.ask(work, then, self._on_refused)

    def show_title(self, title: str) -> None:
        """The chat has another title, which the store has already."""
        if self.conversation is not None and not self._closed:
            self.conversation = replace(self.conversation, title=title)
            self.changed.emit(self.conversation)

    def keep_draft(self, text: str) -> None:
        """Remember what is typed and not sent; a stored chat keeps it over a restart."""
        if text == self.draft:
            return
        self.draft = text
        if self.conversation is not None:
            chat = self.conversation.id
            self._services.store.tell(lambda store: store.conversations.set_draft(chat, text))

    def turn(self, turn: int | None) -> Turn | None:
        """A turn by its number; None where there is none."""
        return self.conversation.turns.get(turn) if self.conversation and turn else None

    # For who answers in it -----------------------------------------------------------------------

    def _on_changed(self, conversation: Conversation) -> None:
        if not self._closed and not self.state.busy:
            self._rearrange(conversation)
            self.changed.emit(conversation)

    def _on_refused(self, error: AppError) -> None:
        self._fail(Problem(error.code, error.sentence))

    def _last_user_turn(self) -> Turn | None:
        if self.conversation is None:
            return None
        return next((t for t in reversed(self.conversation.path()) if t.role == "user"), None)

    def _rearrange(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.rearranged.emit(conversation)

    def _move(self, state: ChatState) -> None:
        if state is not self.state:
            self.state = state
            if not self._closed:
                self.moved.emit(state)

    def _fail(self, problem: Problem) -> None:
        if not self._closed:
            self.failed.emit(problem)
