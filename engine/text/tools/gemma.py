"""Gemma 4's notation of a tool call: ``call:name{key:value,...}``.

A text stands between two ``<|"|>``, numbers, true, false and null stand bare, objects are
``{key:value}`` and lists ``[value,...]``; keys are bare. Pure.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from engine.protocol import ToolCall

_QUOTE: Final = '<|"|>'
_DEEPEST: Final = 64
_HEAD: Final = re.compile(r"\s*call:([^{\s]+)\s*(?=\{)")
_KEY: Final = re.compile(r"\s*([^:{}\[\],]+?)\s*:")
_BARE: Final = re.compile(r"[^,{}\[\]]+")


class _Malformed(ValueError):
    """The text is no value of this notation."""


def read_gemma(body: str) -> ToolCall | None:
    """The call, None where the text is none."""
    head = _HEAD.match(body)
    if head is None:
        return None
    reader = _Reader(body, head.end())
    try:
        arguments = reader.value(0)
        reader.end()
    except _Malformed:
        return None
    return ToolCall(name=head[1], arguments=json.dumps(arguments, ensure_ascii=False))


class _Reader:
    """Reads values from a text; ``at`` is the next character."""

    def __init__(self, text: str, at: int) -> None:
        self._text = text
        self._at = at

    def value(self, depth: int) -> Any:
        """One value of any kind."""
        if depth > _DEEPEST:
            raise _Malformed
        self._skip_space()
        if self._took("{"):
            return self._object(depth)
        if self._took("["):
            return self._list(depth)
        if self._took(_QUOTE):
            end = self._text.find(_QUOTE, self._at)
            if end < 0:
                raise _Malformed
            start, self._at = self._at, end + len(_QUOTE)
            return self._text[start:end]
        found = self._match(_BARE)
        return _bare(found[0].strip())

    def end(self) -> None:
        """Nothing may be left."""
        if self._text[self._at :].strip():
            raise _Malformed

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self._closed("}"):
            key = self._match(_KEY)[1].removeprefix(_QUOTE).removesuffix(_QUOTE)
            found[key] = self.value(depth + 1)
            self._separated("}")
        return found

    def _list(self, depth: int) -> list[Any]:
        found: list[Any] = []
        while not self._closed("]"):
            found.append(self.value(depth + 1))
            self._separated("]")
        return found

    def _closed(self, closing: str) -> bool:
        self._skip_space()
        return self._took(closing)

    def _separated(self, closing: str) -> None:
        self._skip_space()
        if not self._took(",") and not self._text.startswith(closing, self._at):
            raise _Malformed

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise _Malformed
        self._at = found.end()
        return found

    def _took(self, text: str) -> bool:
        if not self._text.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _skip_space(self) -> None:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1


def _bare(text: str) -> Any:
    """A number, truth value or null; anything else is a text that came without its quotes."""
    try:
        return json.loads(text)
    except ValueError:
        return text
