"""Finds control tokens spelled in a text, without reading it as tokens. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

# Longer ones exist in no real vocabulary, and a hostile one must not make every look-up slow.
_LONGEST: Final = 128


class Markers:
    """Control tokens by their text."""

    def __init__(self, ids: Mapping[str, int]) -> None:
        self._ids = {text: index for text, index in ids.items() if len(text) <= _LONGEST}
        self._lengths = sorted({len(text) for text in self._ids}, reverse=True)
        self._beginning = _beginnings(self._ids)

    def find(self, text: str) -> Iterator[tuple[int, int, int]]:
        """Those spelled in a text: (start, end, id), leftmost first, the longest there, apart."""
        position = 0
        while (found := self._beginning.search(text, position)) is not None:
            start = found.start()
            spelled = self._at(text, start)
            position = start + 1
            if spelled is not None:
                position = start + len(spelled)
                yield start, position, self._ids[spelled]

    def starts(self, text: str) -> list[int]:
        """Every place where a spelling begins, overlapping ones too."""
        found = (place.start() for place in self._beginning.finditer(text))
        return [start for start in found if self._at(text, start) is not None]

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
