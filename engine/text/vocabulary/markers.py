"""Finds control tokens spelled in a text, without reading it as tokens. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from engine.checkpoint.vocabulary.cuts import MarkerFlags

# Longer ones exist in no real vocabulary, and a hostile one must not make every look-up slow.
_LONGEST: Final = 128


class Markers:
    """Control tokens by their text.

    Args:
        ids: text to id.
        flags: by id, of those that take white space before or after them with them.
    """

    def __init__(self, ids: Mapping[str, int], flags: Mapping[int, MarkerFlags]) -> None:
        self._flags = flags
        self._ids = {text: index for text, index in ids.items() if len(text) <= _LONGEST}
        self._lengths = sorted({len(text) for text in self._ids}, reverse=True)
        self._beginning = _beginnings(self._ids)

    def find(self, text: str) -> Iterator[tuple[int, int, int]]:
        """Those spelled in a text: (start, end, id), leftmost first, the longest there, apart."""
        position = 0
        while (found := self._beginning.search(text, position)) is not None:
            start = found.start()
            spelled = self._at(text, start)
            if spelled is None:
                position = start + 1
                continue
            index, end = self._ids[spelled], start + len(spelled)
            if index in self._flags:
                start, end = self._widened(text, (start, end), self._flags[index], position)
            position = end
            yield start, end, index

    def starts(self, text: str) -> list[int]:
        """Every place where a spelling begins, overlapping ones too."""
        found = (place.start() for place in self._beginning.finditer(text))
        return [start for start in found if self._at(text, start) is not None]

    def _widened(
        self, text: str, span: tuple[int, int], flags: MarkerFlags, least: int
    ) -> tuple[int, int]:
        """The span with the white space that belongs to the marker, from ``least`` on."""
        start, end = span
        while flags.lstrip and start > least and text[start - 1].isspace():
            start -= 1
        while flags.rstrip and end < len(text) and text[end].isspace():
            end += 1
        return start, end

    def _at(self, text: str, start: int) -> str | None:
        """The longest one spelled at ``start``."""
        for length in self._lengths:
            spelled = text[start : start + length]
            if spelled in self._ids:
                return spelled
        return None


def _beginnings(markers: Iterable[str]) -> re.Pattern[str]:
    """Finds where one of the markers may begin, by its first two letters."""
    seconds: dict[str, set[str]] = {}
    for text in markers:
        seconds.setdefault(text[0], set()).add(text[1:2])
    parts = [
        re.escape(first)
        if "" in after
        else f"{re.escape(first)}(?=[{''.join(map(re.escape, sorted(after)))}])"
        for first, after in sorted(seconds.items())
    ]
    return re.compile("|".join(parts) or "(?!)")
