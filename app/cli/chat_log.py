"""A stored conversation as ``hearth ask --chat`` continues it: the same store as the window's."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from app.chat.conversation import Conversation, ReplyContent, ReplyFacts, Turn, TurnState
from app.chat.store import Store
from app.errors import InputInvalid
from engine.protocol import Failure, Finished, ModelFacts, Region, Sampling, Tokens

WRITE_S: Final = 0.4

STATES: Final = {"stopped": TurnState.STOPPED, "failed": TurnState.FAILED}


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
        model: ModelFacts,
        sampling: Sampling,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._clock = clock
        self._texts: dict[Region, list[str]] = {"answer": [], "thinking": [], "tool": []}
        self._ids: list[int] = []
        self._facts = ReplyFacts(
            model_name=model.name, template_hash=model.template_hash, sampling=sampling
        )
        question = store.turns.add_user(conversation.id, conversation.leaf, prompt)
        store.conversations.set_model(conversation.id, model.path)
        self.conversation = store.conversations.read(conversation.id)
        self.question = question
        self._turn: Turn = store.turns.begin_reply(conversation.id, question.id, self._facts)
        self._written = clock()

    @property
    def sibling(self) -> int:
        """The reply's number among the replies to its question."""
        return self._turn.sibling

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
        facts = replace(
            self._facts,
            template_hash=finished.template_hash,
            seed=finished.seed,
            stop_reason=finished.stop_reason,
            prompt_tokens=finished.prompt_tokens,
            resumed_tokens=finished.resumed_tokens,
            completion_tokens=len(finished.ids),
            timings=finished.timings,
            notes=finished.notes,
        )
        state = STATES.get(finished.stop_reason, TurnState.WHOLE)
        self._store.turns.end_reply(self._turn.id, state, content, facts)

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
