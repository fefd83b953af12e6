"""Writing TOML: what the standard library only reads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def to_toml(table: Mapping[str, Any]) -> str:
    """A table as TOML: plain values first, then sub-tables; None is left out."""
    return "\n".join(_lines(table, ())) + "\n"


def _lines(table: Mapping[str, Any], place: tuple[str, ...]) -> Iterator[str]:
    plain = {k: v for k, v in table.items() if not isinstance(v, Mapping) and v is not None}
    if place and plain:
        yield ""
        yield f"[{'.'.join(map(_key, place))}]"
    for key, value in plain.items():
        yield f"{_key(key)} = {_value(value)}"
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _lines(value, (*place, key))


def _key(key: str) -> str:
    bare = key.isascii() and key.replace("-", "").replace("_", "").isalnum()
    return key if bare else _text(key)


def _value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case int() | float():
            return repr(value)
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case Mapping():
            return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
        case _:
            return str(value)  # dates and times of TOML, which only a kept key can have


def _text(text: str) -> str:
    # TOML's basic strings are JSON's, save that DEL must be escaped too.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
