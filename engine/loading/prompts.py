"""Prompts of one loaded checkpoint: what the app asks for becomes a request that can run.

Owns the chat template, and with it the limited child that renders. Used from the engine thread.
"""

from __future__ import annotations

import numpy as np

from engine.checkpoint.source import GenerationDefaults
from engine.errors import RequestInvalid
from engine.protocol import ChatMessage, Generate
from engine.sampling.keyed import DrawRule, derive_seed
from engine.sampling.settings import resolve_settings
from engine.serving.request import ReplyText, Request
from engine.text.stream import ReplyStream
from engine.text.template import ChatTemplate, Prompt
from engine.text.tokenizer import Tokenizer
from engine.text.tools.declared import DeclaredTools


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

    def prepare(self, wish: Generate, arrived_ns: int) -> tuple[Request, ReplyText]:
        """Render, tokenize and check a wish.

        Raises:
            RequestInvalid: the wish makes no sense or gives no token.
            TemplateFailed: the checkpoint's template does not render it.
        """
        settings = resolve_settings(wish.sampling, self._defaults)
        prompt = self._prompt(wish)
        ids = np.array(prompt.ids, np.int32)
        seed = derive_seed(ids, wish.sibling) if settings.seed is None else settings.seed
        request = Request(
            number=wish.request,
            ids=ids,
            rule=DrawRule(
                settings.temperature, settings.top_k, settings.top_p, settings.min_p, seed
            ),
            penalties=settings.penalties,
            max_tokens=settings.max_tokens,
            end_ids=frozenset(self._tokenizer.end_ids),
            suppressed_ids=self._suppressed,
            wanted_marks=wanted_marks(prompt, wish.messages),
            template_hash=prompt.template_hash,
            rewritten_from=prompt.rewritten_from,
            notes=prompt.notes,
            arrived_ns=arrived_ns,
        )
        text = ReplyStream(
            self._tokenizer,
            tags=prompt.tags,
            starts_in_thinking=prompt.starts_in_thinking,
            stop=settings.stop,
            tools=self._declared(wish),
        )
        return request, text

    def count(self, text: str) -> int:
        """Tokens of a text that a person typed."""
        return len(self._tokenizer.encode(text, special=False))

    def close(self) -> None:
        """End the child that renders; may be repeated."""
        self._template.close()

    def _declared(self, wish: Generate) -> DeclaredTools | None:
        syntax = self._template.tool_syntax
        return None if syntax is None or not wish.tools else DeclaredTools(wish.tools, syntax)

    def _prompt(self, wish: Generate) -> Prompt:
        if wish.raw is None:
            return self._template.prompt(
                wish.messages, date=wish.date, thinking=wish.thinking, tools=wish.tools
            )
        if wish.messages:
            raise RequestInvalid("A request has either messages or a raw text, not both.")
        return self._template.raw(wish.raw)


def wanted_marks(prompt: Prompt, messages: tuple[ChatMessage, ...]) -> tuple[int, ...]:
    """Rows after which a state is worth keeping.

    The end of the history serves the next turn, the start of the last user message an edit or a
    regeneration, the end of a system message that begins the conversation another conversation.
    """
    places = [] if prompt.history_end is None else [prompt.history_end]
    pairs = list(zip(messages, prompt.boundaries, strict=False))
    asked = [place.start for message, place in pairs if message.role == "user"]
    places += asked[-1:]
    if pairs and pairs[0][0].role == "system":
        places.append(pairs[0][1].end)
    return tuple(places)
