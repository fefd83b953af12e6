"""Titles that the model gives: asked beside the chats after a first reply, never in their way.

What is asked is short, keeps no state, and ends at once where the person goes on in that chat.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QObject, Signal

from app.chat.conversation import Conversation, Turn, TurnState
from app.chat.session import ChatSession
from app.chat.session_facts import ChatState
from app.chat.store import Store
from app.chat.store_bridge import StoreBridge
from app.errors import AppError
from app.library.loaded import LoadedModel
from app.link.bridge import EngineBridge
from app.link.client import EngineClient, Question
from engine.protocol import ChatMessage, EngineMessage, Finished, Sampling

WANTED: Final = (
    "Write a title of at most five words for the conversation below, in its language. "
    "Answer with the title alone."
)
MOST_LETTERS: Final = 600
"""Of each of the two messages, so that reading them takes no time."""

MOST_TOKENS: Final = 16
LONGEST: Final = 60
THOUGHTS: Final = re.compile(r"<think>.*?(</think>|$)", re.DOTALL)
LABEL: Final = re.compile(r"^\s*title\s*[::]\s*", re.IGNORECASE)
AROUND: Final = " \t\"'`*#_“”„«»‘’「」『』.。:"


def title_question(user: str, reply: str, *, can_think: bool) -> Question:
    """What the engine is asked for a title."""
    text = f"{WANTED}\n\nUser: {user[:MOST_LETTERS]}\n\nAssistant: {reply[:MOST_LETTERS]}"
    message = ChatMessage(role="user", text=text)
    return Question((message,), thinking=False if can_think else None, purpose="side")


def cleaned_title(text: str) -> str:
    """A title of what the model said: one line without marks around it; empty for none."""
    lines = (line.strip(AROUND) for line in THOUGHTS.sub("", text).splitlines())
    first = next((line for line in lines if line), "")
    title = " ".join(LABEL.sub("", first).strip(AROUND).split())
    if len(title) <= LONGEST:
        return title
    return title[:LONGEST].rsplit(" ", 1)[0].rstrip(AROUND + ",;") + "…"


class TitleWriter(QObject):
    """Asks for titles. Emits ``titled`` with the id of a chat that has another title.

    ``wanted`` says whether titles are wanted at all; asked each time.
    """

    titled = Signal(object)

    def __init__(
        self,
        store: StoreBridge,
        client: EngineClient,
        bridge: EngineBridge,
        model: LoadedModel,
        wanted: Callable[[], bool],
    ) -> None:
        super().__init__(model)
        self._store = store
        self._client = client
        self._bridge = bridge
        self._model = model
        self._wanted = wanted
        self._running: dict[int, int] = {}
        self._followed: set[int] = set()

    def follow(self, session: ChatSession) -> None:
        """Title this chat after its first reply."""
        if id(session) in self._followed:
            return
        self._followed.add(id(session))
        number = id(session)
        session.destroyed.connect(lambda _gone=None: self._followed.discard(number))
        session.ended.connect(lambda turn: self._on_ended(session, turn))
        session.moved.connect(lambda state: self._on_moved(session, state))

    def _on_ended(self, session: ChatSession, turn: Turn) -> None:
        chat, facts = session.conversation, self._model.state.facts
        if chat is None or facts is None or not self._wanted() or not _is_first(chat, turn):
            return
        assert turn.parent is not None
        question = title_question(
            chat.turns[turn.parent].text, turn.text, can_think=facts.can_think
        )
        with contextlib.suppress(AppError):
            self._running[chat.id] = self._client.generate(
                question,
                on_message=self._bridge.on_ui(lambda told: self._on_message(session, chat, told)),
                sampling=Sampling(temperature=0.0, max_tokens=MOST_TOKENS),
            )

    def _on_moved(self, session: ChatSession, state: ChatState) -> None:
        """The person goes on: their reply comes first."""
        chat = session.chat_id
        if state.busy and chat is not None and chat in self._running:
            self._client.cancel(self._running.pop(chat))

    def _on_message(self, session: ChatSession, chat: Conversation, told: EngineMessage) -> None:
        if not isinstance(told, Finished) or self._running.get(chat.id) != told.request:
            return
        del self._running[chat.id]
        title = cleaned_title(told.text)
        if not title or told.stop_reason == "stopped":
            return

        def keep(store: Store) -> str:
            store.conversations.suggest_title(chat.id, title)
            return store.conversations.read(chat.id).title

        self._store.ask(keep, lambda kept: self._on_kept(session, chat.id, kept))

    def _on_kept(self, session: ChatSession, chat: int, title: str) -> None:
        shown = session.conversation
        if shown is not None and shown.id == chat and shown.title != title:
            session.show_title(title)
        self.titled.emit(chat)


def _is_first(chat: Conversation, turn: Turn) -> bool:
    """Whether ``turn`` ends the first exchange, and there is something to title."""
    first = chat.begins_with(turn) and len(chat.path()) == 2 and turn.sibling == 0
    return first and turn.state is TurnState.WHOLE and bool(turn.text.strip())
