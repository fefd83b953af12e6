r"""Which regular expressions of a tokenizer.json are run.

A stranger's expression could take for ever, so only a plain grammar passes: letters, classes,
``\p{..}``, alternatives, look-ahead and quantified single items. What makes matching exponential, a
repeated group, has no place in it, nor have back-references. Two repeats in a row remain, since
real files have them, but nothing may have to follow them: so a place in the text is judged in time
proportional to what is left of it. The search itself gives up after ten million tries. Pure.
"""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import Final

PATTERN_LIMIT: Final = 4096
_LIMITS: Final = {"repeat": 2, "maybe": 3}
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
    items = _items(pattern)
    if isinstance(items, str):
        return items
    judge = _Judge()
    for item, after in zip_longest(items, items[1:]):
        problem = judge.problem(item, after)
        if problem is not None:
            return problem
    return None if judge.depth == 0 else "has a group without an end"


def _items(pattern: str) -> list[re.Match[str]] | str:
    """The expression cut into items, or why it cannot be."""
    items: list[re.Match[str]] = []
    place = 0
    while place < len(pattern):
        found = _ITEM.match(pattern, place)
        if found is None:
            return f"has {pattern[place : place + 12]!r} at {place}, which is not read"
        items.append(found)
        place = found.end()
    return items


class _Judge:
    """Follows an expression from item to item.

    Attributes:
        depth: groups that are open.
    """

    def __init__(self) -> None:
        self.depth = 0
        self._before: str | None = "bar"
        self._counts = dict.fromkeys(_LIMITS, 0)
        self._followed: list[bool] = []

    def problem(self, item: re.Match[str], after: re.Match[str] | None) -> str | None:
        """Why the expression is not run, as far as this item tells."""
        kind, place = item.lastgroup, item.start()
        if kind in _REPEATABLE and self._before not in _REPEATABLE[kind]:
            return f"repeats a group at {place}, which could take for ever"
        self._before = kind
        self.depth += (kind == "open") - (kind == "close")
        if kind == "bar" and self.depth == 0:
            self._counts = dict.fromkeys(_LIMITS, 0)
        elif kind in self._counts:
            self._counts[kind] += 1
        if self.depth < 0 or any(self._counts[name] > most for name, most in _LIMITS.items()):
            return f"is too involved at {place}"
        if self._goes_back(kind, _is_optional(after)):
            return f"repeats twice before something that must follow at {place}"
        return None

    def _goes_back(self, kind: str | None, optional: bool) -> bool:
        """Whether something must follow two repeats: where it is missing, every cut is tried.

        What a group asks for counts when the group ends, as the group may be optional.
        """
        if kind == "open":
            self._followed.append(False)
            return False
        if kind == "close":
            must = self._followed.pop() and not optional
        else:
            must = kind == "atom" and self._counts["repeat"] == _LIMITS["repeat"] and not optional
        if must and self._followed:
            self._followed[-1] = True
            return False
        return must


def _is_optional(after: re.Match[str] | None) -> bool:
    """Whether what stands before this item may be missing."""
    return after is not None and after[0].startswith(("?", "*", "{0,"))
