"""Code in a reply: its fenced blocks, as they stand in the Markdown text. Pure."""

from __future__ import annotations

import re
from typing import Final

FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n`]*$", re.MULTILINE)


def last_code(markdown: str) -> str | None:
    """What stands in the last fenced block, one that is not closed included; None for none."""
    found: str | None = None
    at = 0
    while (opening := FENCE.search(markdown, at)) is not None:
        mark = opening[1]
        end = re.compile(rf"^ {{0,3}}{mark[0]}{{{len(mark)},}}[ \t]*$", re.MULTILINE)
        begin = min(opening.end() + 1, len(markdown))
        closing = end.search(markdown, begin)
        found = markdown[begin : closing.start() if closing is not None else len(markdown)]
        if closing is None:
            break
        at = closing.end()
    return found
