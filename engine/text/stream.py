"""A reply as it is generated: ids become whole characters, in regions, up to a stop string.

Three stages, each of which holds back only what it cannot decide yet: bytes that begin a
character, text that may begin a thinking tag, text that may begin a stop string. Control tokens
are skipped by id. Used from one thread at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.protocol import Region, ToolCall
from engine.text.regions import Piece, Place, Regions, overlap
from engine.text.thinking import ThinkingTags
from engine.text.tokenizer import Tokenizer
from engine.text.tools.declared import DeclaredTools


class ReplyStream:
    """Turns one reply's ids into text.

    Args:
        tags: of thinking regions, None where the model has none.
        starts_in_thinking: the prompt ended inside a thinking region.
        stop: the reply ends before the first of these texts; empty ones are ignored.
        tools: what the request declared, None where it declared nothing the model can call.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        tags: ThinkingTags | None = None,
        starts_in_thinking: bool = False,
        stop: Sequence[str] = (),
        tools: DeclaredTools | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._decoder = tokenizer.decoder()
        self._tools = tools
        self._regions = Regions(tags, starts_in_thinking, None if tools is None else tools.syntax)
        self._stops = _Stops(stop)
        self._tags = "" if tags is None else f"{tags.opening} {tags.closing}"
        if tools is not None:
            self._tags += f" {tools.syntax.opening} {tools.syntax.closing}"

    @property
    def stopped(self) -> bool:
        """Whether a stop string was met; nothing more is given then."""
        return self._stops.met

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that were closed and could be read."""
        return () if self._tools is None else self._tools.read(self._regions.calls)

    def push(self, index: int) -> list[Piece]:
        """The pieces of text that are certain after this id."""
        if not self._tokenizer.is_control(index):
            return self._read(self._decoder.push(index))
        text = self._tokenizer.token_text(index)
        # Inside a call a control token may be a quotation mark.
        if text in self._tags or self._regions.place is Place.CALL:
            return self._read(self._decoder.finish() + text)
        return []

    def finish(self) -> list[Piece]:
        """The pieces that were held back; the stream is at its end."""
        pieces = self._stops.read(self._regions.read(self._decoder.finish()))
        pieces += self._stops.read(self._regions.finish())
        return pieces + self._stops.finish()

    def _read(self, text: str) -> list[Piece]:
        return self._stops.read(self._regions.read(text)) if text else []


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
