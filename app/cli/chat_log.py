"""A stored conversation as ``hearth ask --chat`` continues it: the same store as the window's."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from app.chat.conversation import Conversation, ReplyContent, Turn, TurnState
from app.chat.store import Store
from app.chat.turns.asking import begun_facts, end_state, finished_facts, question_of
from app.errors import InputInvalid
from app.link.client import Question
from engine.protocol import Failure, Finished, Loaded, Region, Sampling, Tokens

WRITE_S: Final = 0.4


def open_chat(store: Store, name: str, system: str | None) -> Conversation:
    """The conversation that is titled ``name``, or a new one; with ``system`` where that is given.

    Raises:
        InputInvalid: several have that title.
        StoreError: it cannot be read or made.
    """
    found = store.conversations.titled(name)
    if len(found) > 1:
        raise InputInvalid(f"{len(found)} conversations are called {name!r}; rename one first.")
    if not found:
        return store.conversations.create(title=name, system=system)
    if system is not None:
        store.conversations.set_system(found[0].id, system)
    return store.conversations.read(found[0].id)


class ReplyLog:
    """One question and its reply on their way to the store.

    The question is on disk when this is made; of the reply at most the last half second is not.
    """

    def __init__(
        self,
        store: Store,
        conversation: Conversation,
        prompt: str,
        loaded: Loaded,
        sampling: Sampling,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._clock = clock
        self._texts: dict[Region, list[str]] = {"answer": [], "thinking": [], "tool": []}
        self._ids: list[int] = []
        question = store.turns.add_user(conversation.id, conversation.leaf, prompt)
        store.conversations.set_model(conversation.id, loaded.model.path)
        self.conversation = store.conversations.read(conversation.id)
        left_out = self.conversation.left_out(question.id)
        self._facts = begun_facts(loaded.model, loaded.plan, sampling, left_out)
        self._question = question
        self._turn: Turn = store.turns.begin_reply(conversation.id, question.id, self._facts)
        self._written = clock()

    @property
    def left_out(self) -> int:
        """How many of the oldest messages the model did not see; known once it has finished."""
        return self._facts.dropped_messages or 0

    def question(self) -> Question:
        """What the engine is asked."""
        # Asked of the chat as it was before the reply's row, whose number is the sibling's.
        return question_of(self.conversation, self._question)

    def add(self, tokens: Tokens) -> None:
        """Take newly generated text; raises StoreError when it cannot be written."""
        self._texts[tokens.region].append(tokens.text)
        self._ids.extend(tokens.ids)
        if self._clock() - self._written >= WRITE_S:
            self._store.turns.write_reply(self._turn.id, self._content())
            self._written = self._clock()

    def finish(self, finished: Finished) -> None:
        """Store the whole reply and how it came to be."""
        content = ReplyContent(finished.text, finished.thinking_text, finished.ids)
        self._facts = finished_facts(self._facts, finished)
        self._store.turns.end_reply(self._turn.id, end_state(finished), content, self._facts)

    def fail(self, failure: Failure) -> None:
        """Store what came before the engine failed."""
        facts = replace(self._facts, stop_reason="failed", problem=failure.sentence)
        self._store.turns.end_reply(self._turn.id, TurnState.FAILED, self._content(), facts)

    def cut(self) -> None:
        """Store what came before the command was broken off."""
        facts = replace(self._facts, stop_reason="stopped")
        self._store.turns.end_reply(self._turn.id, TurnState.STOPPED, self._content(), facts)

    def _content(self) -> ReplyContent:
        answer, thinking = ("".join(self._texts[region]) for region in ("answer", "thinking"))
        return ReplyContent(answer, thinking, tuple(self._ids))
