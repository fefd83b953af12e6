"""A reply as it is generated: ids become whole characters, in regions, up to a stop string.

Three stages, each of which holds back only what it cannot decide yet: bytes that begin a
character, text that may begin a thinking tag, text that may begin a stop string. Control tokens
are skipped by id. Used from one thread at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final

from engine.protocol import Region
from engine.text.thinking import ThinkingTags
from engine.text.tokenizer import Tokenizer

Piece = tuple[Region, str]
# A reply that begins with so much white space is not about to open a thinking region.
_LEAD_LIMIT: Final = 64


class ReplyStream:
    """Turns one reply's ids into text.

    Args:
        tags: of thinking regions, None where the model has none.
        starts_in_thinking: the prompt ended inside a thinking region.
        stop: the reply ends before the first of these texts; empty ones are ignored.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        tags: ThinkingTags | None = None,
        starts_in_thinking: bool = False,
        stop: Sequence[str] = (),
    ) -> None:
        self._tokenizer = tokenizer
        self._decoder = tokenizer.decoder()
        self._regions = _Regions(tags, starts_in_thinking)
        self._stops = _Stops(stop)
        self._tags = () if tags is None else (tags.opening, tags.closing)

    @property
    def stopped(self) -> bool:
        """Whether a stop string was met; nothing more is given then."""
        return self._stops.met

    def push(self, index: int) -> list[Piece]:
        """The pieces of text that are certain after this id."""
        if not self._tokenizer.is_control(index):
            return self._read(self._decoder.push(index))
        text = self._tokenizer.token_text(index)
        return self._read(self._decoder.finish() + text) if text in self._tags else []

    def finish(self) -> list[Piece]:
        """The pieces that were held back; the stream is at its end."""
        pieces = self._stops.read(self._regions.read(self._decoder.finish()))
        pieces += self._stops.read(self._regions.finish())
        return pieces + self._stops.finish()

    def _read(self, text: str) -> list[Piece]:
        return self._stops.read(self._regions.read(text)) if text else []


class _Place(Enum):
    """Where in a reply the text is."""

    BEGINNING = "beginning"
    THINKING = "thinking"
    ANSWER = "answer"


class _Regions:
    """Cuts text at thinking tags and takes the tags out.

    A region opens only at the reply's beginning and closes once: a tag anywhere else is text.
    """

    def __init__(self, tags: ThinkingTags | None, inside: bool) -> None:
        self._tags = tags
        self._held = ""
        self._skip_newlines = False
        self._place = _Place.ANSWER
        if tags is not None:
            self._place = _Place.THINKING if inside else _Place.BEGINNING

    def read(self, text: str) -> list[Piece]:
        self._held += text
        pieces: list[Piece] = []
        if self._place is _Place.BEGINNING:
            self._begin()
        if self._place is _Place.THINKING:
            pieces += self._think()
        if self._place is _Place.ANSWER:
            pieces += self._give("answer", self._take(len(self._held)))
        return pieces

    def finish(self) -> list[Piece]:
        region: Region = "thinking" if self._place is _Place.THINKING else "answer"
        return self._give(region, self._take(len(self._held)))

    def _begin(self) -> None:
        assert self._tags is not None
        words = self._held.lstrip()
        if words.startswith(self._tags.opening):
            self._held = words[len(self._tags.opening) :]
            self._place, self._skip_newlines = _Place.THINKING, True
        elif not self._tags.opening.startswith(words) or len(self._held) > _LEAD_LIMIT:
            self._place = _Place.ANSWER

    def _think(self) -> list[Piece]:
        assert self._tags is not None
        end = self._held.find(self._tags.closing)
        if end < 0:
            keep = overlap(self._held, self._tags.closing)
            return self._give("thinking", self._take(len(self._held) - keep))
        pieces = self._give("thinking", self._take(end))
        self._take(len(self._tags.closing))
        self._place, self._skip_newlines = _Place.ANSWER, True
        return pieces

    def _take(self, count: int) -> str:
        taken, self._held = self._held[:count], self._held[count:]
        return taken

    def _give(self, region: Region, text: str) -> list[Piece]:
        if self._skip_newlines:
            text = text.lstrip("\n")
            self._skip_newlines = not text
        return [(region, text)] if text else []


class _Stops:
    """Ends the text before the first stop string, wherever tokens and pieces were cut."""

    def __init__(self, stop: Sequence[str]) -> None:
        self._stop = [text for text in stop if text]
        self._held = ""
        self._region: Region = "answer"
        self.met = False

    def read(self, pieces: Iterable[Piece]) -> list[Piece]:
        given: list[Piece] = []
        for region, text in pieces:
            if region != self._region:
                given += self.finish()
                self._region = region
            given += self._add(text)
        return given

    def finish(self) -> list[Piece]:
        held, self._held = self._held, ""
        return [(self._region, held)] if held else []

    def _add(self, text: str) -> list[Piece]:
        if self.met:
            return []
        self._held += text
        ends = [at for at in map(self._held.find, self._stop) if at >= 0]
        if ends:
            self.met = True
            keep = len(self._held) - min(ends)
        else:
            keep = max((overlap(self._held, stop) for stop in self._stop), default=0)
        given = self._held[: len(self._held) - keep]
        self._held = "" if self.met else self._held[len(given) :]
        return [(self._region, given)] if given else []


def overlap(text: str, wanted: str) -> int:
    """How many letters at the text's end may begin ``wanted`` without being all of it."""
    longest = min(len(text), len(wanted) - 1)
    return next((n for n in range(longest, 0, -1) if wanted.startswith(text[-n:])), 0)
