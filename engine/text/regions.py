"""Cuts a reply's text into regions: what a model thinks, what it answers, which tools it calls.

A thinking region opens only at the reply's beginning and closes once: a tag anywhere else is text.
Tool calls are looked for in the answer, and only where the request declared tools; there may be
several. Tags are taken out. Used from one thread at a time.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from engine.protocol import Region
from engine.text.thinking import ThinkingTags
from engine.text.tools.syntax import ToolSyntax

Piece = tuple[Region, str]
# A reply that begins with so much white space is not about to open a thinking region.
_LEAD_LIMIT: Final = 64


class Place(Enum):
    """Where in a reply the text is."""

    BEGINNING = "beginning"
    THINKING = "thinking"
    ANSWER = "answer"
    CALL = "call"


class Regions:
    """The cut of one reply.

    Attributes:
        place: where the text is now.
        calls: what stood in each tool call that was closed.
    """

    def __init__(self, thinking: ThinkingTags | None, inside: bool, tools: ToolSyntax | None):
        self._thinking = thinking
        self._tools = tools
        self._held = ""
        self._call = ""
        self._skip_newlines = False
        self.calls: list[str] = []
        self.place = Place.ANSWER
        if thinking is not None:
            self.place = Place.THINKING if inside else Place.BEGINNING

    def read(self, text: str) -> list[Piece]:
        """What is certain after more text."""
        self._held += text
        pieces: list[Piece] = []
        before = None
        while before is not self.place:
            before = self.place
            pieces += self._advance()
        return pieces

    def finish(self) -> list[Piece]:
        """What was held back."""
        rest = self._take(len(self._held))
        match self.place:
            case Place.THINKING:
                return self._give("thinking", rest)
            case Place.CALL:
                return self._give("tool", rest)
            case _:
                return self._give("answer", rest)

    def _advance(self) -> list[Piece]:
        """Read as far as the present place goes; the place changes where a tag was whole."""
        match self.place:
            case Place.BEGINNING:
                return self._begin()
            case Place.THINKING:
                return self._think()
            case Place.CALL:
                return self._read_call()
            case Place.ANSWER:
                return self._answer()

    def _begin(self) -> list[Piece]:
        assert self._thinking is not None
        words = self._held.lstrip()
        if words.startswith(self._thinking.opening):
            self._held = words[len(self._thinking.opening) :]
            self.place, self._skip_newlines = Place.THINKING, True
        elif not self._thinking.opening.startswith(words) or len(self._held) > _LEAD_LIMIT:
            self.place = Place.ANSWER
        return []

    def _think(self) -> list[Piece]:
        assert self._thinking is not None
        text, closed = self._until(self._thinking.closing)
        pieces = self._give("thinking", text)
        if closed:
            self.place, self._skip_newlines = Place.ANSWER, True
        return pieces

    def _answer(self) -> list[Piece]:
        if self._tools is None:
            return self._give("answer", self._take(len(self._held)))
        text, opened = self._until(self._tools.opening)
        pieces = self._give("answer", text)
        if opened:
            self.place, self._skip_newlines, self._call = Place.CALL, False, ""
        return pieces

    def _read_call(self) -> list[Piece]:
        assert self._tools is not None
        text, closed = self._until(self._tools.closing)
        self._call += text
        pieces = self._give("tool", text)
        if closed:
            self.calls.append(self._call)
            self.place, self._skip_newlines = Place.ANSWER, True
        return pieces

    def _until(self, tag: str) -> tuple[str, bool]:
        """The text before a tag, which is taken too, and whether it was met."""
        end = self._held.find(tag)
        if end < 0:
            return self._take(len(self._held) - overlap(self._held, tag)), False
        text = self._take(end)
        self._take(len(tag))
        return text, True

    def _take(self, count: int) -> str:
        taken, self._held = self._held[:count], self._held[count:]
        return taken

    def _give(self, region: Region, text: str) -> list[Piece]:
        if self._skip_newlines:
            text = text.lstrip("\n")
            self._skip_newlines = not text
        return [(region, text)] if text else []


def overlap(text: str, wanted: str) -> int:
    """How many letters at the text's end may begin ``wanted`` without being all of it."""
    longest = min(len(text), len(wanted) - 1)
    return next((n for n in range(longest, 0, -1) if wanted.startswith(text[-n:])), 0)
