"""A rendered conversation, and which parts of it people wrote.

Every conversation is rendered plainly, once more with private marks around each text, and once
without the part that asks for a reply. Where the marked rendering says the same, the marks say
where each message stands; where a template looks at the texts themselves, only the masks of
spelled control tokens are trusted. Two more renderings tell what turns share: the conversation as
the next turn will show it, with a probe in place of the reply, and as the turn before showed it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from engine.errors import TemplateFailed
from engine.helpers.records import Outcome, Refused, Rendered, Rendering, Turn, Value
from engine.protocol import ChatMessage
from engine.text.marks import Marks, Span, Unmarked, search
from engine.text.renderer import Renderer
from engine.text.rows import Stretch, joined, template_markers
from engine.text.shapes import SHAPES, Shape
from engine.text.tokenizer import Tokenizer

_PROBE: Final = (
    ChatMessage(role="assistant", text="\ue000"),
    ChatMessage(role="user", text="\ue001"),
)
_LEFT_OUT_NOTE: Final = "The model's chat template leaves out a part of the conversation."


@dataclass(frozen=True, slots=True)
class Sheet:
    """A rendered conversation.

    Attributes:
        text: the prompt.
        history: the same without the part that asks for a reply, None where that failed.
        next_shared: characters with which the next turn's prompt begins too, None where unknown.
        rewritten_at: the first character that the turn before showed otherwise; None where its
            prompt is how this one begins, or there was none.
        spans: where the messages stand, in order.
        foreign: stretches in which no control token may be read.
        complete: whether every message that has to be seen is there.
    """

    text: str
    history: str | None
    next_shared: int | None
    rewritten_at: int | None
    spans: tuple[Span, ...]
    foreign: tuple[Stretch, ...]
    complete: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Fixed:
    """What every rendering of one conversation has in common."""

    date: str | None
    variables: dict[str, Value]
    tools: tuple[str, ...]

    def rendering(self, turns: tuple[Turn, ...], *, generation_prompt: bool = True) -> Rendering:
        return Rendering(
            turns=turns,
            generation_prompt=generation_prompt,
            variables=self.variables,
            tools=self.tools,
        )


class Sheets:
    """Renders conversations of one checkpoint."""

    def __init__(self, renderer: Renderer, tokenizer: Tokenizer) -> None:
        self._renderer = renderer
        self._tokenizer = tokenizer

    def render(
        self,
        messages: Sequence[ChatMessage],
        date: str | None,
        variables: dict[str, Value],
        tools: Sequence[str] = (),
    ) -> Sheet:
        """Render in the first way that shows every message that has to be seen.

        Args:
            tools: declarations as the template gets them, JSON objects as text.

        Raises:
            TemplateFailed: none of the ways renders.
        """
        texts = [message.text for message in messages]
        written = [text for message in messages for text in _written(message)]
        marks = Marks(texts, self._renderer.source, self._tokenizer, written)
        fixed = _Fixed(date, variables, tuple(tools))
        spare: Sheet | None = None
        reason: str | None = None
        for shape in SHAPES:
            if not shape.applies(messages):
                continue
            found = self._try(shape, messages, marks, fixed)
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
        fixed: _Fixed,
    ) -> Sheet | Refused:
        plain = _as_it_is(shape, messages)
        wanted = [
            fixed.rendering(plain),
            fixed.rendering(shape.turns(messages, marks.wrapped, marks.mask)),
            fixed.rendering(plain, generation_prompt=False),
            fixed.rendering(_as_it_is(shape, (*messages, *_PROBE))),
        ]
        before = _turn_before(messages)
        if before:
            wanted.append(fixed.rendering(_as_it_is(shape, before)))
        if marks.masks_anything:
            masked = shape.turns(messages, marks.masked, marks.mask)
            wanted += [fixed.rendering(masked), fixed.rendering(masked, generation_prompt=False)]
        found = list(self._renderer.render(wanted, fixed.date))
        if isinstance(found[0], Refused):
            return found[0]
        masks = [found.pop(), found.pop()][::-1] if marks.masks_anything else []
        return self._read(shape, messages, marks, found, masks)

    def _read(
        self,
        shape: Shape,
        messages: Sequence[ChatMessage],
        marks: Marks,
        found: Sequence[Outcome],
        masks: Sequence[Outcome],
    ) -> Sheet:
        """Make sense of the renderings: plain, wrapped, history, next and previous turn.

        Args:
            masks: the prompt and the history with masks alone, where a text needs them.
        """
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
            chosen = _removed(masks[0], marks) if masks else plain
            if chosen is None:
                chosen = Unmarked(plain.text, (), ())
            if masks:
                history = _removed(masks[1], marks)
            text, foreign = chosen.text, _letters(chosen.masked)
            control = template_markers(self._tokenizer, text, foreign)
            spans = search(text, texts, [(one.start, one.end) for one in control])
        complete = _all_shown(messages, spans)
        notes = shape.notes(messages) + (() if complete else (_LEFT_OUT_NOTE,))
        after = [_removed(one, marks) for one in found[3:]]
        return Sheet(
            text=text,
            history=None if history is None else history.text,
            next_shared=_shared(text, after[0]),
            rewritten_at=_rewritten(text, after[1]) if len(after) > 1 else None,
            spans=spans,
            foreign=tuple(foreign),
            complete=complete,
            notes=notes,
        )


def _removed(outcome: Outcome, marks: Marks) -> Unmarked | None:
    return marks.remove(outcome.text) if isinstance(outcome, Rendered) else None


def _as_it_is(shape: Shape, messages: Sequence[ChatMessage]) -> tuple[Turn, ...]:
    return shape.turns(messages, lambda index: messages[index].text, str)


def _written(message: ChatMessage) -> list[str]:
    return [message.thinking_text, *(call.arguments for call in message.tool_calls)]


def _turn_before(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """The conversation up to the last reply: what the turn before was asked."""
    replies = [index for index, one in enumerate(messages) if one.role == "assistant"]
    return messages[: replies[-1]] if replies else ()


def _shared(text: str, other: Unmarked | None) -> int | None:
    """How many characters two prompts begin with alike."""
    if other is None:
        return None
    low, high = 0, min(len(text), len(other.text))
    while low < high:
        middle = (low + high + 1) // 2
        if text[low:middle] == other.text[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _rewritten(text: str, before: Unmarked | None) -> int | None:
    shared = _shared(text, before)
    return None if before is None or shared == len(before.text) else shared


def _letters(places: Sequence[int]) -> list[Stretch]:
    return [(place, place + 1) for place in places]


def _all_shown(messages: Sequence[ChatMessage], spans: Sequence[Span]) -> bool:
    """Whether the system text and the last user text stand in the prompt."""
    needed = [i for i, one in enumerate(messages) if one.role == "system"]
    needed += [i for i, one in enumerate(messages) if one.role == "user"][-1:]
    shown = {span.message for span in spans}
    return all(index in shown or not messages[index].text.strip() for index in needed)
