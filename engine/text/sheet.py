"""A rendered conversation, and which parts of it people wrote.

Every conversation is rendered plainly, once more with private marks around each text, and once
without the part that asks for a reply. Where the marked rendering says the same, the marks say
where each message stands; where a template looks at the texts themselves, only the masks of
spelled control tokens are trusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from engine.errors import TemplateFailed
from engine.helpers.records import Outcome, Refused, Rendered, Rendering, Value
from engine.protocol import ChatMessage
from engine.text.marks import Marks, Span, Unmarked, search
from engine.text.renderer import Renderer
from engine.text.rows import Stretch, joined, template_markers
from engine.text.shapes import SHAPES, Shape
from engine.text.tokenizer import Tokenizer

_LEFT_OUT_NOTE: Final = "The model's chat template leaves out a part of the conversation."


@dataclass(frozen=True, slots=True)
class Sheet:
    """A rendered conversation.

    Attributes:
        text: the prompt.
        history: the same without the part that asks for a reply, None where that failed.
        spans: where the messages stand, in order.
        foreign: stretches in which no control token may be read.
        complete: whether every message that has to be seen is there.
    """

    text: str
    history: str | None
    spans: tuple[Span, ...]
    foreign: tuple[Stretch, ...]
    complete: bool
    notes: tuple[str, ...]


class Sheets:
    """Renders conversations of one checkpoint."""

    def __init__(self, renderer: Renderer, tokenizer: Tokenizer) -> None:
        self._renderer = renderer
        self._tokenizer = tokenizer

    def render(
        self, messages: Sequence[ChatMessage], date: str | None, variables: dict[str, Value]
    ) -> Sheet:
        """Render in the first way that shows every message that has to be seen.

        Raises:
            TemplateFailed: none of the ways renders.
        """
        texts = [message.text for message in messages]
        marks = Marks(texts, self._renderer.source, self._tokenizer)
        spare: Sheet | None = None
        reason: str | None = None
        for shape in SHAPES:
            if not shape.applies(messages):
                continue
            found = self._try(shape, messages, marks, date, variables)
            if isinstance(found, Refused):
                reason = reason or found.reason
            elif found.complete:
                return found
            else:
                spare = spare or found
        if spare is not None:
            return spare
        raise TemplateFailed(
            f"The model's chat template does not render this conversation: {reason}."
        )

    def _try(
        self,
        shape: Shape,
        messages: Sequence[ChatMessage],
        marks: Marks,
        date: str | None,
        variables: dict[str, Value],
    ) -> Sheet | Refused:
        plain = shape.turns(messages, lambda index: messages[index].text)
        wrapped = shape.turns(messages, marks.wrapped)
        masked = shape.turns(messages, marks.masked)
        wanted = [
            Rendering(turns=plain, generation_prompt=True, variables=variables),
            Rendering(turns=wrapped, generation_prompt=True, variables=variables),
            Rendering(turns=plain, generation_prompt=False, variables=variables),
        ]
        if marks.masks_anything:
            wanted += [
                Rendering(turns=masked, generation_prompt=True, variables=variables),
                Rendering(turns=masked, generation_prompt=False, variables=variables),
            ]
        found = self._renderer.render(wanted, date)
        if isinstance(found[0], Refused):
            return found[0]
        return self._read(shape, messages, marks, found)

    def _read(
        self,
        shape: Shape,
        messages: Sequence[ChatMessage],
        marks: Marks,
        found: Sequence[Outcome],
    ) -> Sheet:
        """Make sense of the renderings: plain, wrapped, history, and the two masked ones."""
        plain, wrapped = _removed(found[0], marks), _removed(found[1], marks)
        assert plain is not None
        history = _removed(found[2], marks)
        texts = [message.text for message in messages]
        if wrapped is not None and wrapped.text == plain.text:
            spans = wrapped.spans
            foreign = joined([(one.start, one.end) for one in spans] + _letters(wrapped.masked))
            text = plain.text
        else:
            # The template looks at the text itself, so only the masks can be trusted.
            chosen = _removed(found[3], marks) if marks.masks_anything else plain
            if chosen is None:
                chosen = Unmarked(plain.text, (), ())
            if marks.masks_anything:
                history = _removed(found[4], marks)
            text, foreign = chosen.text, _letters(chosen.masked)
            control = template_markers(self._tokenizer, text, foreign)
            spans = search(text, texts, [(one.start, one.end) for one in control])
        complete = _all_shown(messages, spans)
        notes = shape.notes(messages) + (() if complete else (_LEFT_OUT_NOTE,))
        return Sheet(
            text, None if history is None else history.text, spans, tuple(foreign), complete, notes
        )


def _removed(outcome: Outcome, marks: Marks) -> Unmarked | None:
    return marks.remove(outcome.text) if isinstance(outcome, Rendered) else None


def _letters(places: Sequence[int]) -> list[Stretch]:
    return [(place, place + 1) for place in places]


def _all_shown(messages: Sequence[ChatMessage], spans: Sequence[Span]) -> bool:
    """Whether the system text and the last user text stand in the prompt."""
    needed = [i for i, one in enumerate(messages) if one.role == "system"]
    needed += [i for i, one in enumerate(messages) if one.role == "user"][-1:]
    shown = {span.message for span in spans}
    return all(index in shown or not messages[index].text.strip() for index in needed)
