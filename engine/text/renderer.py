"""Renders conversations: with the checkpoint's template in a limited child, or by a plain rule."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from engine.errors import TemplateFailed
from engine.helpers.limited import LimitedChild
from engine.helpers.records import Outcome, Refused, Rendered, Rendering, RenderRequest, Turn

_MODULE: Final = "engine.helpers.template_child"
_SUBJECT: Final = "The model's chat template"
_OUTPUT_FLOOR: Final = 4 << 20
_PLAIN_RULE: Final = "hearth plain rule 1"


class Renderer(Protocol):
    """Turns conversations into prompt texts. An owner: ``close`` ends what it holds."""

    @property
    def source(self) -> str:
        """What decides the result: the template's text, or the name of a rule."""

    def start(self) -> None:
        """Get ready without waiting."""

    def render(self, renderings: Sequence[Rendering], date: str | None) -> tuple[Outcome, ...]:
        """One outcome for each rendering; raises TemplateFailed where nothing came back."""

    def close(self) -> None:
        """Give back what is held."""


class TemplateRenderer:
    """Owner of the limited child that renders one checkpoint's template."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._child = LimitedChild(_MODULE, subject=_SUBJECT, failure=TemplateFailed)

    @property
    def source(self) -> str:
        """The template."""
        return self._source

    def start(self) -> None:
        """Start the child, so that the first prompt does not wait for it."""
        self._child.start()

    def render(self, renderings: Sequence[Rendering], date: str | None) -> tuple[Outcome, ...]:
        """One outcome for each rendering; raises TemplateFailed where nothing came back."""
        longest = max(sum(map(_length, one.turns)) for one in renderings)
        request = RenderRequest(
            template=self._source,
            date=date,
            output_limit=_OUTPUT_FLOOR + 2 * longest,
            renderings=tuple(renderings),
        )
        answer = self._child.ask(msgspec.msgpack.encode(request))
        try:
            return msgspec.msgpack.decode(answer, type=tuple[Outcome, ...])
        except msgspec.MsgspecError as error:
            raise TemplateFailed(f"{_SUBJECT} gave an answer that is none.") from error

    def close(self) -> None:
        """End the child."""
        self._child.close()


class PlainRenderer:
    """The rule for a checkpoint without a template: texts in turn, a reply right after its text.

    A blank line stands before every other message. Such a model continues; it does not converse.
    """

    @property
    def source(self) -> str:
        """The rule's name."""
        return _PLAIN_RULE

    def start(self) -> None:
        """Nothing to do."""

    def render(self, renderings: Sequence[Rendering], date: str | None) -> tuple[Outcome, ...]:
        """One text for each rendering."""
        del date
        return tuple(self._one(rendering) for rendering in renderings)

    def close(self) -> None:
        """Nothing to give back."""

    def _one(self, rendering: Rendering) -> Outcome:
        text = ""
        for turn in rendering.turns:
            if not isinstance(turn.content, str):
                return Refused(reason="the plain rule takes texts only")
            text += ("\n\n" if text and turn.role != "assistant" else "") + turn.content
        return Rendered(text=text)


def _length(turn: Turn) -> int:
    content = turn.content
    return len(content) if isinstance(content, str) else sum(len(part["text"]) for part in content)


def source_hash(source: str) -> str:
    """What names a template in the store: replies are spliced only under the same one."""
    return hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:32]
