"""The limited child that renders chat templates: jinja in its sandbox, as transformers sets it up.

Runs as a process of its own (``engine.helpers.limited``). Never imports torch.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import jinja2
import jinja2.debug
import jinja2.ext
import msgspec
from jinja2 import nodes
from jinja2.parser import Parser
from jinja2.runtime import Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from engine.helpers.limits import Limits, limit_request, limit_self
from engine.helpers.pipe import read_frame, write_frame
from engine.helpers.records import Outcome, Refused, Rendered, Rendering, RenderRequest, Turn

_FAILURES: Final = (
    jinja2.TemplateError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)
_REASON_LIMIT: Final = 300
_EMPTY: Final = Rendering(turns=(), generation_prompt=False)
_WARM: Final = (
    "{% for m in messages %}{% if loop.first %}{{ m.content | trim | tojson }}{% endif %}"
    "{% break %}{% endfor %}{% generation %}{% set n = namespace(a=1) %}{{ n.a }}"
    "{% endgeneration %}{{ strftime_now('%d %b %Y') }}{{ lipsum(1) }}"
    "{{ nothing.at.all }}"
)


def main(parent: int) -> None:
    """Answer requests until the pipe ends; ``parent`` is the process that started this one."""
    desk = Desk()
    desk.render(RenderRequest(template=_WARM, date=None, output_limit=1000, renderings=(_EMPTY,)))
    limits = Limits()
    kept = limit_self(limits, parent)
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    write_frame(sink, b"")
    while (payload := read_frame(source)) is not None:
        limit_request(limits)
        request = msgspec.msgpack.decode(payload, type=RenderRequest)
        write_frame(sink, msgspec.msgpack.encode(desk.render(request)))
    del kept


class Desk:
    """Renders requests; the last template stays compiled, because the next one is the same."""

    def __init__(self) -> None:
        self._key: tuple[str, str | None] | None = None
        self._template: jinja2.Template | None = None

    def render(self, request: RenderRequest) -> tuple[Outcome, ...]:
        """An outcome for each rendering."""
        key = (request.template, request.date)
        try:
            if self._template is None or self._key != key:
                self._template = environment(request.date).from_string(request.template)
                self._key = key
        except _FAILURES as error:
            return (Refused(reason=_reason(error)),) * len(request.renderings)
        template = self._template
        return tuple(_render(template, one, request.output_limit) for one in request.renderings)


def environment(date: str | None) -> jinja2.Environment:
    """The sandbox, with the names that chat templates expect and nothing else."""
    found = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[_Generation, jinja2.ext.loopcontrols],
    )
    found.filters["tojson"] = _tojson
    found.globals["raise_exception"] = _raise
    found.globals["strftime_now"] = _Clock(date).strftime
    found.globals["dict"] = _Dictionary()
    found.globals["namespace"] = _SafeNamespace
    return found


def _render(template: jinja2.Template, wanted: Rendering, limit: int) -> Outcome:
    tools = [json.loads(tool) for tool in wanted.tools]
    found = _rendered(template, wanted, limit, tools or None)
    if isinstance(found, Refused) and not tools:
        # Templates made for tools alone walk through the list without asking whether there is one.
        without = _rendered(template, wanted, limit, tools)
        return without if isinstance(without, Rendered) else found
    return found


def _rendered(
    template: jinja2.Template, wanted: Rendering, limit: int, tools: list[Any] | None
) -> Outcome:
    pieces: list[str] = []
    size = 0
    try:
        for piece in template.generate(
            messages=[_message(turn) for turn in wanted.turns],
            tools=tools,
            documents=None,
            add_generation_prompt=wanted.generation_prompt,
            **wanted.variables,
        ):
            size += len(piece)
            if size > limit:
                return Refused(reason=f"it writes more than {limit} characters")
            pieces.append(piece)
        text = "".join(pieces)
        text.encode("utf-8")
    except _FAILURES as error:
        return Refused(reason=_reason(error))
    return Rendered(text=text)


def _message(turn: Turn) -> dict[str, Any]:
    """A message as templates expect it, with the keys that they ask for only where needed."""
    found: dict[str, Any] = {"role": turn.role, "content": msgspec.to_builtins(turn.content)}
    if turn.thinking:
        found["reasoning_content"] = turn.thinking
    if turn.calls:
        found["tool_calls"] = [
            {
                "type": "function",
                "function": {"name": call.name, "arguments": json.loads(call.arguments)},
            }
            for call in turn.calls
        ]
    return found


def _reason(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "it wants more memory than it may have"
    if isinstance(error, RecursionError):
        return "it calls itself without end"
    text = " ".join(str(error).encode("utf-8", "replace").decode().split())
    return text[:_REASON_LIMIT] or type(error).__name__


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
        default=_listed,
    )


def _listed(value: object) -> list[Any]:
    """What ``map`` and its like give, which templates take for lists."""
    if isinstance(value, Iterator):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)


class _Clock:
    """The date that a template sees."""

    __slots__ = ("_now",)

    def __init__(self, date: str | None) -> None:
        self._now = datetime.now() if date is None else datetime.fromisoformat(date)

    def strftime(self, pattern: str) -> str:
        return self._now.strftime(pattern)


class _Dictionary:
    """``dict`` for templates: its constructor and ``fromkeys``, not the type itself."""

    __slots__ = ()

    def __call__(self, *pairs: Any, **names: Any) -> dict[Any, Any]:
        return dict(*pairs, **names)

    def fromkeys(self, keys: Any, value: Any = None) -> dict[Any, Any]:
        return dict.fromkeys(keys, value)


class _SafeNamespace(Namespace):
    """A namespace without names that begin with an underscore."""

    def __init__(*arguments: Any, **names: Any) -> None:
        self, *pairs = arguments
        found = dict(*pairs, **names)
        for name in found:
            _check_name(name)
        Namespace.__init__(self, found)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        Namespace.__setitem__(self, name, value)


def _check_name(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError(f"a namespace may not hold {name!r}")


class _Generation(jinja2.ext.Extension):
    """``{% generation %}`` .. ``{% endgeneration %}``: marks replies for training; prints them."""

    tags = {"generation"}  # noqa: RUF012 - jinja reads this class attribute

    def parse(self, parser: Parser) -> nodes.Node:
        """Read the block."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        call = self.call_method("_print")
        return nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _print(self, caller: Macro) -> str:
        return str(caller())
