"""Context full: which turns of a conversation drop out. Pure policy.

Where a prompt leaves less than ``least_reply`` tokens for the reply, the oldest turns after the
system messages drop out, at a message of the user, until the prompt takes at most half of the
context. So it happens once in many turns, not at each one, and between two times every turn's
prompt begins as the one before did. The system prompt stays, and with it its kept state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.protocol import ChatMessage
from engine.text.template import Boundary

LEAST_REPLY_TOKENS: Final = 1024


def least_reply(context_tokens: int, max_tokens: int | None) -> int:
    """Tokens that have to be left for a reply: 1,024, a quarter of the context or its limit."""
    least = min(LEAST_REPLY_TOKENS, context_tokens // 4)
    return least if max_tokens is None else min(least, max_tokens)


def is_full(prompt_tokens: int, context_tokens: int, max_tokens: int | None) -> bool:
    """Whether a prompt leaves too little of the context."""
    return context_tokens - prompt_tokens < least_reply(context_tokens, max_tokens)


def first_turn(messages: Sequence[ChatMessage]) -> int:
    """The first message after the system messages with which the conversation begins."""
    return next((i for i, one in enumerate(messages) if one.role != "system"), len(messages))


def without_oldest(messages: Sequence[ChatMessage], count: int) -> tuple[ChatMessage, ...]:
    """A conversation without the oldest ``count`` messages after the system messages."""
    first = first_turn(messages)
    return (*messages[:first], *messages[first + count :])


def turns_to_drop(
    messages: Sequence[ChatMessage],
    boundaries: Sequence[Boundary],
    prompt_tokens: int,
    context_tokens: int,
) -> int:
    """How many messages have to drop out for the prompt to take half of the context.

    Args:
        boundaries: where the messages stand in the prompt, one each.

    Returns:
        The fewest that leave a user message in front; where not even the last one alone takes
        half of the context, all before that; 0 where nothing can drop out.
    """
    first = first_turn(messages)
    places = [i for i in range(first + 1, len(messages)) if messages[i].role == "user"]
    for place in places:
        dropped = boundaries[place].start - boundaries[first].start
        if prompt_tokens - dropped <= context_tokens // 2:
            return place - first
    return places[-1] - first if places else 0
