"""Ways to hand a conversation to a template, from the plain one to what odd templates want.

Most templates take every message as it is. Some know no system role, so its text goes before the
first user message; some want a list of typed parts instead of a text. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from engine.helpers.records import Content, Turn
from engine.protocol import ChatMessage

MERGED_NOTE: Final = (
    "The model has no system role; the system prompt stands before the first message."
)


@dataclass(frozen=True, slots=True)
class Shape:
    """One way.

    Attributes:
        merged: the system message is put before the first user message.
        typed: contents are lists of parts.
    """

    merged: bool = False
    typed: bool = False

    def turns(
        self, messages: Sequence[ChatMessage], text: Callable[[int], str]
    ) -> tuple[Turn, ...]:
        """The turns a template sees; ``text`` gives a message's text by its number."""
        front = self._front(messages)
        turns: list[Turn] = []
        for index, message in enumerate(messages):
            if index == 0 and front is not None:
                continue
            content = text(index)
            if index == front and messages[0].text.strip():
                content = text(0) + "\n\n" + content
            turns.append(Turn(role=message.role, content=self._content(content)))
        return tuple(turns)

    def applies(self, messages: Sequence[ChatMessage]) -> bool:
        """Whether this way differs from the plain one for these messages."""
        return not self.merged or self._front(messages) is not None

    def notes(self, messages: Sequence[ChatMessage]) -> tuple[str, ...]:
        """What to tell about it."""
        shown = self.merged and bool(messages[0].text.strip())
        return (MERGED_NOTE,) if shown else ()

    def _front(self, messages: Sequence[ChatMessage]) -> int | None:
        """The user message that takes the system text, where there is one to take."""
        if not self.merged or messages[0].role != "system":
            return None
        return next((i for i, one in enumerate(messages) if one.role == "user"), None)

    def _content(self, text: str) -> Content:
        return ({"type": "text", "text": text},) if self.typed else text


SHAPES: Final = (Shape(), Shape(merged=True), Shape(typed=True), Shape(merged=True, typed=True))
