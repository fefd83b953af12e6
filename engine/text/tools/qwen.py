"""Qwen's two ways to write a tool call.

Qwen3 (and many others): ``{"name": "f", "arguments": {...}}``. Qwen3.5: ``<function=f>``, then
``<parameter=p>``, a line break, the value, a line break and ``</parameter>`` for each, then
``</function>``. There a text value stands as it is and every other one as JSON, so the declared
type decides. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from engine.protocol import ToolCall

_FUNCTION: Final = re.compile(r"\s*<function=([^>\n]+)>(.*?)(?:</function>)?\s*", re.DOTALL)
_PARAMETER: Final = re.compile(
    r"<parameter=([^>\n]+)>(.*?)(?:</parameter>|(?=<parameter=)|$)", re.DOTALL
)


def read_json(body: str) -> ToolCall | None:
    """A call written as one JSON object."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        return None
    arguments = found.get("arguments", found.get("parameters", {}))
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return None
    return _call(found["name"], arguments)


def read_function(body: str, schemas: Mapping[str, Mapping[str, Any]]) -> ToolCall | None:
    """A call written with function and parameter tags."""
    found = _FUNCTION.fullmatch(body)
    if found is None:
        return None
    name, inside = found[1].strip(), found[2]
    properties = schemas.get(name, {}).get("properties", {})
    arguments: dict[str, Any] = {}
    for parameter, text in _PARAMETER.findall(inside):
        declared = properties.get(parameter) if isinstance(properties, Mapping) else None
        arguments[parameter] = _value(_without_line_breaks(text), declared)
    return _call(name, arguments)


def _call(name: str, arguments: object) -> ToolCall | None:
    if not isinstance(arguments, dict):
        return None
    return ToolCall(name=name, arguments=json.dumps(arguments, ensure_ascii=False))


def _without_line_breaks(text: str) -> str:
    """The value without the one line break that the notation puts on either side."""
    return text.removeprefix("\n").removesuffix("\n")


def _value(text: str, declared: object) -> Any:
    kinds = declared.get("type") if isinstance(declared, Mapping) else None
    if kinds == "string" or (isinstance(kinds, list) and "string" in kinds):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
