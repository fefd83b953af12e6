"""Ways to hand a conversation to a template, from the plain one to what odd templates want.

Most templates take every message as it is. Some know no system role, so its text goes before the
first user message; some want a list of typed parts instead of a text; some insist that user and
assistant take turns. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import msgspec

from engine.helpers.records import Call, Turn
from engine.protocol import ChatMessage

MERGED_NOTE: Final = (
    "The model has no system role; the system prompt stands before the first message."
)
JOINED_NOTE: Final = "The model wants turns to alternate; messages without a reply are joined."
_BETWEEN: Final = "\n\n"


@dataclass(frozen=True, slots=True)
class Shape:
    """One way.

    Attributes:
        merged: the system message is put before the first user message.
        typed: contents are lists of parts.
        joined: messages of one role that follow one another become one.
    """

    merged: bool = False
    typed: bool = False
    joined: bool = False

    def turns(
        self,
        messages: Sequence[ChatMessage],
        text: Callable[[int], str],
        written: Callable[[str], str],
    ) -> tuple[Turn, ...]:
        """The turns a template sees.

        Args:
            text: a message's text by its number.
            written: what a model wrote beside its text (thoughts, arguments of calls) as it is
                to be given.
        """
        front = self._front(messages)
        turns: list[Turn] = []
        for index, message in enumerate(messages):
            if index == 0 and front is not None:
                continue
            content = text(index)
            if index == front and messages[0].text.strip():
                content = text(0) + _BETWEEN + content
            if self.joined and turns and _may_join(turns[-1], message):
                content = str(turns.pop().content) + _BETWEEN + content
            turns.append(_turn(message, content, written))
        if not self.typed:
            return tuple(turns)
        return tuple(
            msgspec.structs.replace(turn, content=({"type": "text", "text": str(turn.content)},))
            for turn in turns
        )

    def applies(self, messages: Sequence[ChatMessage]) -> bool:
        """Whether this way differs from those before it for these messages."""
        if self.joined and not any(one.role == next_.role for one, next_ in pairwise(messages)):
            return False
        return not self.merged or self._front(messages) is not None

    def notes(self, messages: Sequence[ChatMessage]) -> tuple[str, ...]:
        """What to tell about it."""
        merged = (MERGED_NOTE,) if self.merged and messages[0].text.strip() else ()
        return merged + ((JOINED_NOTE,) if self.joined else ())

    def _front(self, messages: Sequence[ChatMessage]) -> int | None:
        """The user message that takes the system text, where there is one to take."""
        if not self.merged or messages[0].role != "system":
            return None
        return next((i for i, one in enumerate(messages) if one.role == "user"), None)


def _may_join(turn: Turn, message: ChatMessage) -> bool:
    return turn.role == message.role and not turn.calls and not message.tool_calls


def _turn(message: ChatMessage, content: str, written: Callable[[str], str]) -> Turn:
    return Turn(
        role=message.role,
        content=content,
        thinking=written(message.thinking_text),
        calls=tuple(
            Call(name=call.name, arguments=written(call.arguments)) for call in message.tool_calls
        ),
    )


SHAPES: Final = tuple(
    Shape(merged=merged, typed=typed, joined=joined)
    for joined in (False, True)
    for typed in (False, True)
    for merged in (False, True)
)
