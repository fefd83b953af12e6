"""What a message that is being written will cost: tokens, share of the context, time. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from app.chat.blocks.words import context_tokens
from app.chat.conversation import Conversation
from app.language.words import tr, tr_count

LETTERS_PER_TOKEN: Final = 4.0
SURE: Final = 2
"""An estimate this many times above the context is surely above it."""


class Fit(Enum):
    """Whether the message and the chat before it fit into the context."""

    FITS = auto()
    LEAVES_OUT = auto()
    TOO_LONG = auto()


@dataclass(frozen=True, slots=True)
class Before:
    """What the chat brings along.

    Attributes:
        used: tokens that the chat takes already.
        context: tokens that fit in all; 0 where no model is there.
        prompt_per_s: tokens of a prompt that were read in a second, None where not measured.
    """

    used: int = 0
    context: int = 0
    prompt_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a message.

    Attributes:
        exact: whether the tokens were counted, not estimated.
    """

    tokens: int
    exact: bool
    before: Before

    @property
    def fit(self) -> Fit:
        """Whether it fits: alone, or with the whole chat before it."""
        context = self.before.context
        most = context if self.exact else SURE * context
        if self.tokens >= most:
            return Fit.TOO_LONG
        return Fit.LEAVES_OUT if self.before.used + self.tokens >= context else Fit.FITS


def estimate(letters: int, letters_per_token: float = LETTERS_PER_TOKEN) -> int:
    """About how many tokens a text of so many letters takes."""
    return max(1, round(letters / letters_per_token))


def before_of(conversation: Conversation | None, context: int) -> Before:
    """What a chat brings along, as its last replies tell."""
    path = conversation.path() if conversation is not None else ()
    replies = [turn for turn in reversed(path) if turn.reply is not None]
    used = context_tokens(replies[0]) if replies else 0
    speed = None
    for turn in replies:
        facts = turn.reply
        if facts is None or facts.timings is None or facts.prompt_tokens is None:
            continue
        read = facts.prompt_tokens - (facts.resumed_tokens or 0)
        if read > 0 and facts.timings.prefill_ms:
            speed = 1000 * read / facts.timings.prefill_ms
            break
    return Before(used, context, speed)


def cost_text(cost: Cost) -> str:
    """The line beside the button: "9 tokens · 27 % of context · first token in about 0.2 s"."""
    count = format(cost.tokens, ",")
    if cost.exact:
        tokens = tr_count("{count} tokens", cost.tokens, count=count)
    else:
        tokens = tr("about {count} tokens", count=count)
    before = cost.before
    if cost.fit is Fit.TOO_LONG:
        room = tr("too long: {count} fit into the context", count=format(before.context, ","))
        return " · ".join((tokens, room))
    if cost.fit is Fit.LEAVES_OUT:
        return " · ".join((tokens, tr("the oldest messages are left out")))
    share = (before.used + cost.tokens) / before.context
    parts = [tokens, tr("{share} % of context", share=_percent(share))]
    if before.prompt_per_s:
        seconds = max(0.1, cost.tokens / before.prompt_per_s)
        shown = f"{seconds:.1f}" if seconds < 10 else f"{seconds:,.0f}"
        parts.append(tr("first token in about {seconds} s", seconds=shown))
    return " · ".join(parts)


def _percent(share: float) -> str:
    return "< 1" if share < 0.01 else str(round(100 * share))
