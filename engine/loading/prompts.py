"""Prompts of one loaded checkpoint: what the app asks for becomes a request that can run.

Owns the chat template, and with it the limited child that renders. Used from the engine thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Final

import numpy as np

from engine.checkpoint.source import GenerationDefaults
from engine.errors import RequestInvalid
from engine.loading.dropping import is_full, turns_to_drop, without_oldest
from engine.protocol import ChatMessage, Finished, Generate
from engine.sampling.keyed import DrawRule, derive_seed
from engine.sampling.settings import DrawSettings, resolve_settings
from engine.serving.request import ReplyText, Request, WantedMark
from engine.states.records import Role
from engine.text.begun import begun_ids
from engine.text.stream import ReplyStream
from engine.text.template import ChatTemplate, Prompt
from engine.text.tokenizer import Tokenizer
from engine.text.tools.declared import DeclaredTools

_PROBES: Final = ("\n\n\nA", "x")
"""Next messages that begin as differently as messages may: with lines' ends and with a letter."""


class CheckpointPrompts:
    """Implements ``engine.loading.loaded.Prompts``."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        template: ChatTemplate,
        defaults: GenerationDefaults,
        vocabulary: int,
    ) -> None:
        self._tokenizer = tokenizer
        self._template = template
        self._defaults = defaults
        named = {index for index in defaults.suppressed_ids if 0 <= index < vocabulary}
        holes = {index for index in tokenizer.hole_ids if index < vocabulary}
        padding = set(range(tokenizer.size, vocabulary))
        self._suppressed = tuple(sorted(named | holes | padding))

    def prepare(
        self, wish: Generate, arrived_ns: int, context_tokens: int | None = None
    ) -> tuple[Request, ReplyText]:
        """Render, tokenize and check a wish.

        Args:
            context_tokens: where the wish allows it, the oldest turns of a conversation that
                leaves too little of so many tokens drop out; None lets none drop out.

        Raises:
            RequestInvalid: the wish makes no sense or gives no token.
            TemplateFailed: the checkpoint's template does not render it.
        """
        settings = resolve_settings(wish.sampling, self._defaults)
        most = settings.max_tokens
        prompt = self._prompt(wish)
        begun = () if wish.begun is None else begun_ids(wish.begun, prompt, self._tokenizer)
        messages, dropped = wish.messages, 0
        if wish.may_drop and wish.raw is None and context_tokens is not None:
            while is_full(rows := len(prompt.ids) + len(begun), context_tokens, most):
                more = turns_to_drop(messages, prompt.boundaries, rows, context_tokens)
                if not more:
                    break
                dropped += more
                messages = without_oldest(wish.messages, dropped)
                prompt = self._rendered(wish, messages)
        request = self._request(wish, settings, prompt, messages, arrived_ns)
        text = ReplyStream(
            self._tokenizer,
            tags=prompt.tags,
            starts_in_thinking=prompt.starts_in_thinking,
            stop=settings.stop,
            tools=self._declared(wish),
        )
        return _going_on(_with_dropped(request, dropped), begun), text

    def follow_up(self, wish: Generate, finished: Finished) -> Request | None:
        """The prompt with which the turn after a reply begins, whatever the person will say.

        It is what two renderings with different next messages have in common. None where the
        template does not render that, or the wish was no conversation.
        """
        if wish.raw is not None or not wish.messages:
            return None
        said = ChatMessage(
            role="assistant",
            text=finished.text,
            ids=finished.ids,
            template_hash=finished.template_hash,
        )
        before = (*without_oldest(wish.messages, finished.dropped_messages), said)
        first, second = (
            self._rendered(wish, (*before, ChatMessage(role="user", text=probe))).ids
            for probe in _PROBES
        )
        shared = [one for one, other in takewhile(_are_equal, zip(first, second, strict=False))]
        if not shared:
            return None
        settings = resolve_settings(wish.sampling, self._defaults)
        prompt = Prompt(ids=tuple(shared), text="")
        return self._request(wish, settings, prompt, (), 0)

    def count(self, text: str) -> int:
        """Tokens of a text that a person typed."""
        return len(self._tokenizer.encode(text, special=False))

    def close(self) -> None:
        """End the child that renders; may be repeated."""
        self._template.close()

    def _declared(self, wish: Generate) -> DeclaredTools | None:
        syntax = self._template.tool_syntax
        return None if syntax is None or not wish.tools else DeclaredTools(wish.tools, syntax)

    def _request(
        self,
        wish: Generate,
        settings: DrawSettings,
        prompt: Prompt,
        messages: Sequence[ChatMessage],
        arrived_ns: int,
    ) -> Request:
        ids = np.array(prompt.ids, np.int32)
        seed = derive_seed(ids, wish.sibling) if settings.seed is None else settings.seed
        return Request(
            number=wish.request,
            ids=ids,
            rule=DrawRule(
                settings.temperature, settings.top_k, settings.top_p, settings.min_p, seed
            ),
            penalties=settings.penalties,
            max_tokens=settings.max_tokens,
            end_ids=frozenset(self._tokenizer.end_ids),
            suppressed_ids=self._suppressed,
            wanted_marks=wanted_marks(prompt, messages),
            template_hash=prompt.template_hash,
            rewritten_from=prompt.rewritten_from,
            notes=prompt.notes,
            arrived_ns=arrived_ns,
            conversation=wish.conversation,
            is_side=wish.purpose == "side",
            other_template=any(
                one.template_hash not in (None, prompt.template_hash) for one in messages
            ),
        )

    def _rendered(self, wish: Generate, messages: Sequence[ChatMessage]) -> Prompt:
        return self._template.prompt(
            messages, date=wish.date, thinking=wish.thinking, tools=wish.tools
        )

    def _prompt(self, wish: Generate) -> Prompt:
        if wish.raw is None:
            return self._rendered(wish, wish.messages)
        if wish.messages:
            raise RequestInvalid("A request has either messages or a raw text, not both.")
        return self._template.raw(wish.raw)


def wanted_marks(prompt: Prompt, messages: Sequence[ChatMessage]) -> tuple[WantedMark, ...]:
    """Rows after which a state is worth keeping, the best first.

    The end of the history serves the next turn, the start of the last user message an edit or a
    regeneration, the end of a system message that begins the conversation another conversation.
    """
    places = [] if prompt.history_end is None else [WantedMark(prompt.history_end, Role.END)]
    pairs = list(zip(messages, prompt.boundaries, strict=False))
    asked = [place.start for message, place in pairs if message.role == "user"]
    places += [WantedMark(start, Role.REWIND) for start in asked[-1:]]
    if pairs and pairs[0][0].role == "system":
        places.append(WantedMark(pairs[0][1].end, Role.SHARED))
    return tuple(places)


def _with_dropped(request: Request, dropped: int) -> Request:
    """A request that says how many of the messages it was made of were left out.

    ``rewritten_from`` counts the messages that were sent, those left out among them.
    """
    if not dropped:
        return request
    return replace(request, dropped_messages=dropped, rewritten_from=None)


def _going_on(request: Request, begun: Sequence[int]) -> Request:
    """A request whose reply has begun; its seed is that of the prompt alone, as at first."""
    if not begun:
        return request
    ids = np.concatenate([request.ids, np.array(begun, np.int32)])
    return replace(request, ids=ids, begun_tokens=len(begun))


def _are_equal(pair: tuple[int, int]) -> bool:
    return pair[0] == pair[1]
