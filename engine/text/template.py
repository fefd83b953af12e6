"""Messages to a prompt: ids, where each message stands, where the history ends.

Owns the renderer. Used from one thread at a time. What a person wrote is never read as a control
token, whatever the template does with it: it is found in the prompt by private marks around it
(``engine.text.marks``), and where a template does not keep those, control tokens spelled in it
stay masked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from engine.errors import RequestInvalid
from engine.helpers.records import Value
from engine.owner import Owner
from engine.protocol import ChatMessage, Tool
from engine.text.marks import Span
from engine.text.renderer import PlainRenderer, Renderer, TemplateRenderer, source_hash
from engine.text.rows import Known, PromptRows
from engine.text.sheet import Sheet, Sheets
from engine.text.thinking import ThinkingTags, ends_inside, find_tags
from engine.text.tokenizer import Tokenizer, clean
from engine.text.tools.declared import declaration
from engine.text.tools.syntax import find_syntax

_NO_SWITCH_NOTE: Final = "The model's chat template cannot turn thinking on or off."
_NO_TOOLS_NOTE: Final = "The model's chat template shows no tools, so the model cannot call any."
_BASE_NOTE: Final = "The model has no chat template; it continues the text instead of answering."


@dataclass(frozen=True, slots=True)
class Boundary:
    """Rows ``start .. end`` of a prompt carry one message; empty for one that was left out."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is given.

    Attributes:
        ids: the whole prompt, BOS included.
        text: as rendered, for people to look at.
        boundaries: one a message.
        history_end: rows with which the next turn's prompt begins too, whatever the reply; never
            all rows, because one has to be computed. None where the template cannot tell.
        keeps_prefix: whether the whole prompt is how the next turn's begins.
        rewritten_from: the first message that this prompt shows otherwise than the turn before
            did, as where past thoughts are dropped; None where that turn's prompt is kept whole.
        template_hash: names what rendered it, None for a raw prompt.
        tags: of thinking regions, where the model has them.
        starts_in_thinking: the reply begins inside a thinking region.
        spliced: replies whose own ids are used.
        notes: what a person should know.
    """

    ids: tuple[int, ...]
    text: str
    boundaries: tuple[Boundary, ...] = ()
    history_end: int | None = None
    keeps_prefix: bool = False
    rewritten_from: int | None = None
    template_hash: str | None = None
    tags: ThinkingTags | None = None
    starts_in_thinking: bool = False
    spliced: int = 0
    notes: tuple[str, ...] = ()


class ChatTemplate(Owner):
    """Builds prompts for one checkpoint.

    Attributes:
        hash: names what renders.
        tags: of thinking regions, None where the model has none.
        tool_syntax: how the model calls tools, None where its template takes none.
        can_think: whether the template asks for ``thinking``.

    Args:
        source: the checkpoint's template, None for a base model.
        tokenizer: the checkpoint's.
        renderer: renders ``source`` and is closed with this; None takes a limited child.
    """

    def __init__(
        self, source: str | None, tokenizer: Tokenizer, renderer: Renderer | None = None
    ) -> None:
        self._tokenizer = tokenizer
        self._renderer = renderer or _renderer(source)
        self._sheets = Sheets(self._renderer, tokenizer)
        self._notes = (_BASE_NOTE,) if source is None else ()
        self.hash = source_hash(self._renderer.source)
        self.tags = find_tags(source, tokenizer)
        self.tool_syntax = find_syntax(source)
        self.can_think = source is not None and "enable_thinking" in source

    def start(self) -> None:
        """Get ready in the background, so that the first prompt comes sooner."""
        self._renderer.start()

    def close(self) -> None:
        """End the child that renders."""
        self._renderer.close()

    def raw(self, text: str) -> Prompt:
        """A prompt without any template: the text, after BOS where the model wants one.

        The reply is all text: no thinking region is looked for in it.

        Raises:
            RequestInvalid: there would be no row at all.
        """
        text = clean(text)
        rows = PromptRows(self._tokenizer, text, [(0, len(text))]).rows
        if not rows.ids:
            raise RequestInvalid("The prompt is empty, and this model needs at least one token.")
        return Prompt(ids=tuple(rows.ids), text=text)

    def prompt(
        self,
        messages: Sequence[ChatMessage],
        *,
        date: str | None = None,
        thinking: bool | None = None,
        tools: Sequence[Tool] = (),
    ) -> Prompt:
        """The prompt that asks for the next reply.

        Args:
            messages: the conversation, oldest first.
            date: ISO, what the template sees as today; None takes the clock.
            thinking: passed to the template as ``enable_thinking`` where not None.
            tools: what the model may call.

        Raises:
            RequestInvalid: no messages, or no row comes of them.
            TemplateFailed: the template does not render this conversation in any way.
        """
        if not messages:
            raise RequestInvalid("There is no message to answer.")
        cleaned = [msgspec.structs.replace(one, text=clean(one.text)) for one in messages]
        declared = [declaration(tool) for tool in tools]
        sheet = self._sheets.render(cleaned, date, self._variables(thinking), declared)
        replies = self._replies(sheet, cleaned)
        built = PromptRows(self._tokenizer, sheet.text, sheet.foreign, replies)
        if not built.rows.ids:
            raise RequestInvalid("The prompt is empty, and this model needs at least one token.")
        tail = sheet.text[max((end for _, end in sheet.foreign), default=0) :]
        return Prompt(
            ids=tuple(built.rows.ids),
            text=sheet.text,
            boundaries=_boundaries(built, sheet.spans, len(cleaned)),
            history_end=_history_end(built, sheet),
            keeps_prefix=sheet.next_shared == len(sheet.text),
            rewritten_from=_rewritten_from(sheet),
            template_hash=self.hash,
            tags=self.tags,
            starts_in_thinking=ends_inside(tail, self.tags),
            spliced=len(replies),
            notes=(
                *self._notes,
                *sheet.notes,
                *self._switch_notes(thinking),
                *_tool_notes(sheet.text, tools),
            ),
        )

    def _switch_notes(self, thinking: bool | None) -> tuple[str, ...]:
        return (_NO_SWITCH_NOTE,) if thinking is not None and not self.can_think else ()

    def _variables(self, thinking: bool | None) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for name, index in (
            ("bos_token", self._tokenizer.bos_id),
            ("eos_token", self._tokenizer.eos_id),
        ):
            if index is not None:
                found[name] = self._tokenizer.token_text(index)
        if thinking is not None:
            found["enable_thinking"] = thinking
        return found

    def _replies(self, sheet: Sheet, messages: Sequence[ChatMessage]) -> list[Known]:
        """Replies whose exact ids say just what the prompt says there."""
        places: dict[int, list[Span]] = {}
        for span in sheet.spans:
            places.setdefault(span.message, []).append(span)
        found: list[Known] = []
        for index, message in enumerate(messages):
            if (
                message.ids
                and message.template_hash == self.hash
                and len(places.get(index, ())) == 1
            ):
                reply = self._reply(sheet.text, places[index][0], message.ids)
                if reply is not None and (not found or found[-1].end <= reply.start):
                    found.append(reply)
        return found

    def _reply(self, text: str, span: Span, ids: tuple[int, ...]) -> Known | None:
        if not all(0 <= index < self._tokenizer.size for index in ids):
            return None
        said = self._tokenizer.decode(ids)
        start = span.start - (len(said) - len(said.lstrip()))
        end = start + len(said)
        if start < 0 or text[start:end] != said or said.strip() != text[span.start : span.end]:
            return None
        last = ids[-1]
        if last not in self._tokenizer.end_ids:
            return Known(start, end, ids)
        spelled = self._tokenizer.token_text(last)
        if text.startswith(spelled, end):
            return Known(start, end + len(spelled), ids)
        return Known(start, end, ids[:-1]) if len(ids) > 1 else None


def _renderer(source: str | None) -> Renderer:
    return PlainRenderer() if source is None else TemplateRenderer(source)


def _tool_notes(text: str, tools: Sequence[Tool]) -> tuple[str, ...]:
    """A note where tools were declared and not even their names came into the prompt."""
    return () if all(tool.name in text for tool in tools) else (_NO_TOOLS_NOTE,)


def _boundaries(
    built: PromptRows, spans: Sequence[Span], message_count: int
) -> tuple[Boundary, ...]:
    first: dict[int, Span] = {}
    for span in spans:
        first.setdefault(span.message, span)
    found: list[Boundary] = []
    place = 0
    for index in range(message_count):
        one = first.get(index)
        if one is None:
            found.append(Boundary(place, place))
            continue
        start = built.rows.first(one.start)
        place = built.rows.after(one.end)
        found.append(Boundary(start, place))
    return tuple(found)


def _history_end(built: PromptRows, sheet: Sheet) -> int | None:
    end = sheet.next_shared
    if end is None and sheet.history is not None and sheet.text.startswith(sheet.history):
        end = len(sheet.history)
    if end is None:
        return None
    return min(built.prefix_rows(end), len(built.rows.ids) - 1)


def _rewritten_from(sheet: Sheet) -> int | None:
    """The message at, or else after, the first character that is shown otherwise."""
    at = sheet.rewritten_at
    if at is None:
        return None
    return next((span.message for span in sheet.spans if span.end > at), None)
