"""How what a person wrote comes into the store: at the end, or beside what was edited."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from app.chat.conversation import Conversation, ReplyFacts, Turn
from app.chat.options.record import ChatOptions, keep_options
from app.chat.store import Store

EDITED: Final = "edited"
"""The stop reason of a reply that a person wrote anew."""


def kept_turn(
    conversation: Conversation | None, edited: Turn | None, text: str, options: ChatOptions
) -> Callable[[Store], tuple[Conversation, Turn]]:
    """Work for the store: it keeps ``text`` and gives the chat and the new turn.

    Args:
        conversation: None makes a new one, with ``options``.
        edited: the turn that gets another version; None adds a message at the end.
    """

    def keep(store: Store) -> tuple[Conversation, Turn]:
        there = conversation
        if there is None:
            there = store.conversations.create()
            keep_options(store, there.id, options)
        parent = edited.parent if edited is not None else there.leaf
        if edited is not None and edited.role == "assistant" and parent is not None:
            turn = store.turns.add_reply(there.id, parent, text, _edited_facts(edited))
        else:
            turn = store.turns.add_user(there.id, parent, text)
        return store.conversations.read(there.id), turn

    return keep


def _edited_facts(turn: Turn) -> ReplyFacts:
    """The facts of a reply that a person wrote anew: of the model's, only its name."""
    name = turn.reply.model_name if turn.reply is not None else ""
    return ReplyFacts(model_name=name, stop_reason=EDITED)
