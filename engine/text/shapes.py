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

from engine.helpers.records import Content, Turn
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
        self, messages: Sequence[ChatMessage], text: Callable[[int], str]
    ) -> tuple[Turn, ...]:
        """The turns a template sees; ``text`` gives a message's text by its number."""
        front = self._front(messages)
        turns: list[tuple[str, str]] = []
        for index, message in enumerate(messages):
            if index == 0 and front is not None:
                continue
            content = text(index)
            if index == front and messages[0].text.strip():
                content = text(0) + _BETWEEN + content
            if self.joined and turns and turns[-1][0] == message.role:
                turns[-1] = (message.role, turns[-1][1] + _BETWEEN + content)
            else:
                turns.append((message.role, content))
        return tuple(Turn(role=role, content=self._content(content)) for role, content in turns)

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

    def _content(self, text: str) -> Content:
        return ({"type": "text", "text": text},) if self.typed else text


SHAPES: Final = tuple(
    Shape(merged=merged, typed=typed, joined=joined)
    for joined in (False, True)
    for typed in (False, True)
    for merged in (False, True)
)
