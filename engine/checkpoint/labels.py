"""Names out of files as they may stand in a sentence: one short printable line.

A file's own strings may be megabytes long or hold line breaks and marks that turn the direction of
writing; what goes into errors and lists passes through here.
"""

from __future__ import annotations

from pathlib import Path

LIMIT = 80
"""Characters of a name that are shown."""


def plain(text: str, limit: int = LIMIT) -> str:
    """The text on one line, shortened, with unprintable characters as escapes."""
    short = text if len(text) <= limit else text[: limit - 1] + "…"
    return short if short.isprintable() else repr(short)[1:-1]


def quoted(text: str) -> str:
    """The same in quotation marks."""
    return f"'{plain(text)}'"


def file_label(path: Path) -> str:
    """A file's name; bytes that are not UTF-8 show as escapes."""
    return plain(path.name, 255)
