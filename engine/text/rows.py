"""A rendered prompt as token rows: which ids, and which characters stand behind each row.

Three kinds of stretches: control tokens that the template wrote, replies whose exact ids are
known, and text. Text between two of the others is encoded in one go, whoever wrote it, because
that is how the model was trained; only a control token is never read out of a person's words.
Pure.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from engine.text.tokenizer import Tokenizer

Stretch = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Known:
    """Characters ``start .. end`` whose ids are known."""

    start: int
    end: int
    ids: tuple[int, ...]


@dataclass(slots=True)
class Rows:
    """Ids of a prompt; row r stands for characters ``starts[r] .. ends[r]``."""

    ids: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def first(self, character: int) -> int:
        """The first row that reaches past the character's beginning."""
        return bisect_right(self.ends, character)

    def after(self, character: int) -> int:
        """The number of rows that begin before the character."""
        return bisect_left(self.starts, character)

    def add(self, ids: Sequence[int], starts: Sequence[int], ends: Sequence[int]) -> None:
        """Append rows."""
        self.ids += ids
        self.starts += starts
        self.ends += ends


class PromptRows:
    """Encodes one prompt's text.

    Args:
        text: the whole prompt.
        foreign: stretches that people wrote, in order and apart; no control token is read out of
            them or across their ends.
        replies: stretches of known ids, in order and apart.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        text: str,
        foreign: Sequence[Stretch],
        replies: Sequence[Known] = (),
    ) -> None:
        self._tokenizer = tokenizer
        self._text = text
        excluded = joined([*foreign, *((one.start, one.end) for one in replies)])
        control = template_markers(tokenizer, text, excluded)
        self._known = sorted([*control, *replies], key=lambda one: one.start)
        self.rows = Rows()
        for one in self._gaps():
            self._encode(one)
        if tokenizer.add_bos and tokenizer.bos_id is not None:
            self._begin(tokenizer.bos_id)

    def prefix_rows(self, end: int) -> int:
        """How many rows the prompt shares with its first ``end`` characters encoded alone.

        All rows before ``end``, unless the text there would be cut otherwise if it ended there.
        """
        start, continued = 0, False
        for one in self._known:
            if one.end > end:
                break
            start, continued = one.end, self._continues(one)
        rows = self.rows.first(start)
        alone = self._tokenizer.encode(self._text[start:end], special=False, continued=continued)
        for expected in alone:
            if rows == len(self.rows.ids) or self.rows.ids[rows] != expected:
                break
            rows += 1
        return rows

    def _gaps(self) -> Iterator[tuple[Known | None, int, Known | None]]:
        """Each stretch of text: what is known before it, where it begins, what is known after."""
        before: Known | None = None
        for one in [*self._known, None]:
            yield before, 0 if before is None else before.end, one
            before = one

    def _encode(self, gap: tuple[Known | None, int, Known | None]) -> None:
        before, start, after = gap
        end = len(self._text) if after is None else after.start
        if end > start:
            found = self._tokenizer.encode_with_spans(
                self._text[start:end],
                special=False,
                continued=before is not None and self._continues(before),
            )
            self.rows.add(
                found.ids, [start + at for at in found.starts], [start + at for at in found.ends]
            )
        if after is not None:
            count = len(after.ids)
            self.rows.add(after.ids, [after.start] * count, [after.end] * count)

    def _continues(self, before: Known) -> bool:
        """Whether text after this stretch follows other text rather than a control token."""
        once = self._tokenizer.prefix_once
        return once or not self._tokenizer.is_control(before.ids[-1])

    def _begin(self, bos: int) -> None:
        if self.rows.ids[:1] != [bos]:
            self.rows.ids.insert(0, bos)
            self.rows.starts.insert(0, 0)
            self.rows.ends.insert(0, 0)


def template_markers(tokenizer: Tokenizer, text: str, excluded: Iterable[Stretch]) -> list[Known]:
    """Control tokens in a text, none of them in or across the excluded stretches."""
    found: list[Known] = []
    place = 0
    for start, end in [*excluded, (len(text), len(text))]:
        found += [
            Known(place + a, place + b, (index,))
            for a, b, index in tokenizer.markers.find(text[place:start])
        ]
        place = end
    return found


def joined(stretches: Iterable[Stretch]) -> list[Stretch]:
    """The union of stretches, in order and apart."""
    kept: list[Stretch] = []
    for start, end in sorted(stretches):
        if kept and start <= kept[-1][1]:
            kept[-1] = (kept[-1][0], max(end, kept[-1][1]))
        else:
            kept.append((start, end))
    return kept
