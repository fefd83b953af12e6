"""How a model writes tool calls: which tags stand around one, and what is written between them.

Three ways are known: Qwen3's JSON, Qwen3.5's function and parameter tags, Gemma 4's own notation.
Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from engine.protocol import ToolCall
from engine.text.tools.gemma import read_gemma
from engine.text.tools.qwen import read_function, read_json

Schemas = Mapping[str, Mapping[str, Any]]
"""JSON schema of the parameters by tool name."""


@dataclass(frozen=True, slots=True)
class ToolSyntax:
    """The tags around a call and what reads its inside; None comes back for what is no call."""

    opening: str
    closing: str
    read: Callable[[str, Schemas], ToolCall | None]


def _read_qwen(body: str, schemas: Schemas) -> ToolCall | None:
    return read_function(body, schemas) if "<function=" in body else read_json(body)


_KNOWN: Final = (
    ToolSyntax("<|tool_call>", "<tool_call|>", lambda body, _: read_gemma(body)),
    ToolSyntax("<tool_call>", "</tool_call>", _read_qwen),
)


def find_syntax(template: str | None) -> ToolSyntax | None:
    """The way that a checkpoint's template writes calls; None where it takes no tools."""
    if template is None or "tools" not in template:
        return None
    return next((one for one in _KNOWN if one.opening in template), None)
