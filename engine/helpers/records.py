"""What the engine asks the template child, and what it answers."""

from __future__ import annotations

import msgspec

Value = str | bool | None
Content = str | tuple[dict[str, str], ...]


class Call(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool call that a reply made; ``arguments`` is a JSON object as text."""

    name: str
    arguments: str


class Turn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One message as a template sees it; ``content`` is a text or typed parts.

    ``thinking`` and ``calls`` are given to the template only where there are any.
    """

    role: str
    content: Content
    thinking: str = ""
    calls: tuple[Call, ...] = ()


class Rendering(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One conversation to render; ``variables`` are the template's other names.

    ``tools`` are declarations, each a JSON object as text.
    """

    turns: tuple[Turn, ...]
    generation_prompt: bool
    variables: dict[str, Value] = {}
    tools: tuple[str, ...] = ()


class RenderRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A template and the conversations to render with it.

    ``date`` (ISO) is what the template sees as now, None the clock; ``output_limit`` is in
    characters for each rendering.
    """

    template: str
    date: str | None
    output_limit: int
    renderings: tuple[Rendering, ...]


class Rendered(msgspec.Struct, frozen=True, kw_only=True, tag=True, forbid_unknown_fields=True):
    """What a rendering gave."""

    text: str


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag=True, forbid_unknown_fields=True):
    """Why a rendering gave nothing: the template's own words or a short reason."""

    reason: str


Outcome = Rendered | Refused
