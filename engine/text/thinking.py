"""Where a model thinks aloud: the tags around it, and whether a prompt ends inside of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from engine.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class ThinkingTags:
    """The texts that open and close a thinking region."""

    opening: str
    closing: str


_KNOWN: Final = (
    ThinkingTags("<|channel>thought\n", "<channel|>"),
    ThinkingTags("<think>", "</think>"),
    ThinkingTags("[THINK]", "[/THINK]"),
    ThinkingTags("<seed:think>", "</seed:think>"),
)


def find_tags(template: str | None, tokenizer: Tokenizer) -> ThinkingTags | None:
    """The tags that this checkpoint uses: those its template names or its vocabulary has.

    A model that knows neither writes such a tag only as text, and it is left as text.
    """
    for tags in _KNOWN:
        named = template is not None and tags.closing in template
        if named or tokenizer.find(tags.closing) is not None:
            return tags
    return None


def ends_inside(tail: str, tags: ThinkingTags | None) -> bool:
    """Whether a prompt whose last part, written by the template, is ``tail`` ends in thinking."""
    return tags is not None and tail.rfind(tags.opening) > tail.rfind(tags.closing)
