"""The tools that one request declares, and the calls in its reply. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from engine.errors import RequestInvalid
from engine.protocol import Tool, ToolCall
from engine.text.tools.syntax import ToolSyntax


class DeclaredTools:
    """Tools beside the way in which the model calls them.

    Attributes:
        syntax: how a call is written.
    """

    def __init__(self, tools: Sequence[Tool], syntax: ToolSyntax) -> None:
        """Read the tools' schemas; raises RequestInvalid for one that is no JSON object."""
        self.syntax = syntax
        self._schemas = {tool.name: schema(tool) for tool in tools}

    def read(self, bodies: Sequence[str]) -> tuple[ToolCall, ...]:
        """The calls among texts that stood between the tags."""
        found = [self.syntax.read(body, self._schemas) for body in bodies]
        return tuple(call for call in found if call is not None)


def schema(tool: Tool) -> dict[str, Any]:
    """A tool's parameters as a JSON schema; raises RequestInvalid where they are none."""
    try:
        found = json.loads(tool.parameters)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise RequestInvalid(f"The parameters of tool {tool.name!r} are no JSON object.")
    return found


def declaration(tool: Tool) -> str:
    """A tool as chat templates take it: a JSON object as text."""
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": schema(tool),
    }
    return json.dumps({"type": "function", "function": function}, ensure_ascii=False)
