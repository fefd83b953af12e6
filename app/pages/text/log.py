"""The log as lines that can be narrowed. Pure, but for reading the files.

Lines of the window look like ``2026-11-30 12:00:00,123 INFO app.chat text``, those of the engine
like whatever it wrote; a line without a level belongs to the one above it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
MOST_BYTES: Final = 2_000_000
"""Of each file, its end."""

_LEVEL: Final = re.compile(r"(?:^|\s)(DEBUG|INFO|WARNING|ERROR|CRITICAL)(?=\s|:)")


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line; ``level`` is the place in ``LEVELS``."""

    level: int
    text: str


def read_lines(files: Sequence[Path]) -> tuple[LogLine, ...]:
    """The lines of a log in their order; ``files`` are its parts, the oldest first.

    A part that is not there or cannot be read is left out.
    """
    lines: list[str] = []
    for file in files:
        try:
            with file.open("rb") as opened:
                size = opened.seek(0, 2)
                opened.seek(max(0, size - MOST_BYTES))
                content = opened.read(MOST_BYTES)
        except OSError:
            continue
        lines.extend(content.decode("utf-8", "replace").splitlines())
    return tuple(levelled(lines))


def levelled(lines: Iterable[str]) -> Iterable[LogLine]:
    """Each line with its level, or that of the line above it."""
    level = LEVELS.index("INFO")
    for text in lines:
        found = _LEVEL.search(text[:80])
        if found is not None:
            level = LEVELS.index(found[1])
        yield LogLine(level, text)


def narrowed(lines: Iterable[LogLine], least: int, words: str) -> tuple[LogLine, ...]:
    """The lines of level ``least`` or above that have all of ``words`` in them, any case."""
    wanted = words.casefold().split()
    return tuple(
        line
        for line in lines
        if line.level >= least and all(word in line.text.casefold() for word in wanted)
    )
