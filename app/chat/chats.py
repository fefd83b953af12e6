"""All chats: the list, the sessions that are open, the one that is shown. UI thread only.

A chat that is answering goes on while another is shown. Owns the sessions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from app.chat.conversation import Conversation
from app.chat.session import ChatSession
from app.chat.storage.conversations import ConversationEntry
from app.chat.store import Store
from app.chat.turns.services import ChatServices

Entries = tuple[ConversationEntry, ...]


@dataclass(frozen=True, slots=True)
class Opened:
    """A chat as it is stored, with what was typed and not sent."""

    conversation: Conversation
    draft: str


def _opened(store: Store, conversation: int) -> Opened:
    return Opened(store.conversations.read(conversation), store.conversations.draft(conversation))


class Chats(QObject):
    """The chats of one data directory.

    Signals: ``listed`` the entries, ``shown`` the ChatSession to show, ``answering`` the ids of
    chats with a running reply, ``opened`` those of chats that are shown or answering, ``trashed``
    the entry that went to the trash, ``erased`` the id of a chat that is no more.
    """

    listed = Signal(object)
    shown = Signal(object)
    answering = Signal(object)
    opened = Signal(object)
    trashed = Signal(object)
    erased = Signal(object)

    def __init__(self, services: ChatServices, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._services = services
        self._sessions: list[ChatSession] = []
        self._wanted: int | None = None
        self._closed = False
        self.entries: Entries = ()
        self.current: ChatSession | None = None

    def start(self, chat: int | None = None) -> None:
        """Show ``chat`` where it is in the list, else the one used last, else a new one."""

        def newest(store: Store) -> tuple[Entries, Opened | None]:
            entries = store.conversations.entries()
            known = [entry.id for entry in entries]
            wanted = chat if chat in known else known[0] if known else None
            return entries, _opened(store, wanted) if wanted is not None else None

        self._services.store.ask(newest, self._on_started)

    def new(self) -> None:
        """Show an empty chat; it is stored with its first message."""
        self._wanted = None
        if self.current is None or self.current.conversation is not None:
            self._show(self._session(None))
        else:
            self.shown.emit(self.current)

    def open(self, conversation: int) -> None:
        """Show a chat."""
        self._wanted = conversation
        for session in self._sessions:
            if session.conversation is not None and session.conversation.id == conversation:
                self._show(session)
                return
        self._services.store.ask(lambda store: _opened(store, conversation), self._on_opened)

    def trash(self, conversation: int) -> None:
        """Put a chat into the trash; ``restore`` undoes it."""
        for session in self._sessions:
            if session.conversation is not None and session.conversation.id == conversation:
                session.close()
                self._forget(session)
                break

        def trash(store: Store) -> Entries:
            store.conversations.trash(conversation)
            return store.conversations.entries()

        gone = [entry for entry in self.entries if entry.id == conversation]
        self._on_listed(tuple(entry for entry in self.entries if entry.id != conversation))
        self._services.store.ask(trash, self._on_listed)
        for entry in gone:
            self.trashed.emit(entry)
        if self.current is None:
            self.new()

    def restore(self, conversation: int) -> None:
        """Bring a chat back from the trash and show it."""

        def restore(store: Store) -> Entries:
            store.conversations.restore(conversation)
            return store.conversations.entries()

        self._services.store.ask(restore, self._on_listed)
        self.open(conversation)

    def rename(self, conversation: int, title: str) -> None:
        """Give a chat a title."""
        self._change(lambda store: store.conversations.rename(conversation, title))

    def pin(self, conversation: int, pinned: bool) -> None:
        """Keep a chat at the top of the list, or no more."""
        self._change(lambda store: store.options.pin(conversation, pinned))

    def erase(self, conversation: int) -> None:
        """Remove a chat of the trash for good, with what is kept of it."""

        def erase(store: Store) -> Entries:
            store.conversations.erase(conversation)
            return store.conversations.entries()

        def erased(entries: Entries) -> None:
            self._on_listed(entries)
            self.erased.emit(conversation)

        self._services.store.ask(erase, erased)

    def _change(self, work: Callable[[Store], None]) -> None:
        """Do something to a chat and read the list again, the titles of open ones too."""

        def change(store: Store) -> Entries:
            work(store)
            return store.conversations.entries()

        self._services.store.ask(change, self._on_changed)

    def _on_changed(self, entries: Entries) -> None:
        self._on_listed(entries)
        titles = {entry.id: entry.title for entry in entries}
        for session in self._sessions:
            chat = session.conversation
            if chat is not None and titles.get(chat.id, chat.title) != chat.title:
                session.show_title(titles[chat.id])

    def refresh(self) -> None:
        """Read the list again."""
        self._services.store.ask(lambda store: store.conversations.entries(), self._on_listed)

    def close(self) -> None:
        """Close every session, keeping what has come of its reply."""
        self._closed = True
        for session in self._sessions:
            session.close()
        self._sessions.clear()

    def _on_started(self, found: tuple[Entries, Opened | None]) -> None:
        entries, opened = found
        self._on_listed(entries)
        if self.current is None and not self._closed:
            self._show(self._session(opened))

    def _on_listed(self, entries: Entries) -> None:
        if not self._closed:
            self.entries = entries
            self.listed.emit(entries)

    def _on_opened(self, opened: Opened) -> None:
        if not self._closed and self._wanted == opened.conversation.id:
            self._show(self._session(opened))

    def _session(self, opened: Opened | None) -> ChatSession:
        conversation = opened.conversation if opened is not None else None
        session = ChatSession(conversation, self._services, self)
        session.draft = opened.draft if opened is not None else ""
        session.changed.connect(self._on_session_changed)
        session.moved.connect(self._on_session_moved)
        self._sessions.append(session)
        return session

    def _show(self, session: ChatSession) -> None:
        before, self.current = self.current, session
        self.shown.emit(session)
        if before is not None and before is not session and not before.state.busy:
            self._forget(before)
        self._tell_opened()

    def _forget(self, session: ChatSession) -> None:
        self._sessions.remove(session)
        if self.current is session:
            self.current = None
        session.close()
        session.deleteLater()
        self._tell_opened()

    def _tell_opened(self) -> None:
        there = (session.conversation for session in self._sessions)
        self.opened.emit(frozenset(chat.id for chat in there if chat is not None))

    def _on_session_changed(self, _conversation: Conversation) -> None:
        self._tell_opened()
        self.refresh()

    def _on_session_moved(self, _state: object) -> None:
        busy = [s for s in self._sessions if s.state.busy and s.conversation is not None]
        self.answering.emit(frozenset(s.conversation.id for s in busy if s.conversation))
        for session in [s for s in self._sessions if s is not self.current and not s.state.busy]:
            self._forget(session)
