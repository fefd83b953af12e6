r"""Which regular expressions of a tokenizer.json are run.

A stranger's expression could take for ever, so only a plain grammar passes: letters, classes,
``\p{..}``, alternatives, look-ahead and quantified single items. What makes matching exponential, a
repeated group, has no place in it, nor have back-references. A few repeats in a row remain, since
real files have them; where one of those runs wild, the search gives up after ten million tries.
Pure.
"""

from __future__ import annotations

import re
from typing import Final

PATTERN_LIMIT: Final = 4096
_LIMITS: Final = {"repeat": 2, "maybe": 8}
"""Of one alternative. A repeat multiplies the time by the text's length, an option doubles it."""
_REPEATABLE: Final = {"repeat": ("atom",), "maybe": ("atom", "close")}
_ESCAPE: Final = (
    r"\\(?:[pP]\{\^?[A-Z][A-Za-z_]{0,30}\}|[sSdDwWrntfv]|x\{[0-9A-Fa-f]{1,6}\}|x[0-9A-Fa-f]{2}"
    r"|u[0-9A-Fa-f]{4}|[^A-Za-z0-9])"
)
_ITEM: Final = re.compile(
    rf"""
    (?P<atom>{_ESCAPE}|\[\^?\]?(?:{_ESCAPE}|\[(?:\^?(?:{_ESCAPE}|[^\[\]\\])+)\]|[^\[\]\\])*\]
        |[^\\\[\](){{}}|*+?])
    |(?P<open>\((?:\?(?:i?:|[=!]|<[=!]))?)
    |(?P<close>\))
    |(?P<bar>\|)
    |(?P<repeat>(?:[*+]|\{{\d{{1,3}}(?:,\d{{0,3}})?\}})[?+]?)
    |(?P<maybe>\?[?+]?)
    """,
    re.VERBOSE,
)


def pattern_problem(pattern: str) -> str | None:
    """Why an expression is not run, None where it is."""
    if len(pattern) > PATTERN_LIMIT:
        return f"has {len(pattern)} characters, at most {PATTERN_LIMIT} are read"
    place = depth = 0
    before, counts = "bar", dict.fromkeys(_LIMITS, 0)
    while place < len(pattern):
        found = _ITEM.match(pattern, place)
        kind = None if found is None else found.lastgroup
        if found is None or kind is None:
            return f"has {pattern[place : place + 12]!r} at {place}, which is not read"
        if kind in _REPEATABLE and before not in _REPEATABLE[kind]:
            return f"repeats a group at {place}, which could take for ever"
        depth += (kind == "open") - (kind == "close")
        if kind == "bar" and depth == 0:
            counts = dict.fromkeys(_LIMITS, 0)
        elif kind in counts:
            counts[kind] += 1
        if depth < 0 or any(counts[name] > limit for name, limit in _LIMITS.items()):
            return f"is too involved at {place}"
        before, place = kind, found.end()
    return None if depth == 0 else "has a group without an end"
