"""What the window says of a reply: the facts of a finished one, why there is none. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from app.chat.conversation import ReplyFacts, Turn, TurnState
from app.chat.session_facts import Problem
from app.errors import ENGINE_DIED

DASH: Final = "–"
BETWEEN: Final = "  ·  "

STOP_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "end-of-turn": "finished",
        "stop-string": "finished at a stop text",
        "max-tokens": "reached the limit",
        "context-full": "context is full",
        "stopped": "stopped by you",
        "failed": "not finished",
    }
)

TITLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "memory-refused": "This does not fit into memory",
        "request-invalid": "This message cannot be answered",
        "request-too-large": "This chat is too long to send",
        "template-failed": "The model cannot read this chat",
        "store": "Your message was not saved",
        "store-full": "The disk is full",
        "engine-unavailable": "The engine is not there",
        "device-lost": "The engine was started again",
    }
)
OTHER_TITLE: Final = "There is no reply"
RESTARTED_TITLE: Final = "The engine stopped and was restarted."
RESTARTED_SENTENCE: Final = "Your chat is intact."


@dataclass(frozen=True, slots=True)
class ProblemWords:
    """Title and sentence of a problem."""

    title: str
    sentence: str


def status_text(turn: Turn) -> str:
    """Speed, tokens, first token, how it ended; a dash where nothing was measured."""
    facts = turn.reply
    if facts is None:
        return ""
    if turn.state is TurnState.CUT:
        return "Hearth was closed before this reply ended"
    count = facts.completion_tokens
    parts = [
        f"{_speed(facts)} tok/s",
        f"{DASH if count is None else format(count, ',')} token{'' if count == 1 else 's'}",
        f"first token {_first_token(facts)}",
        _ending(turn, facts),
    ]
    return BETWEEN.join(parts)


def context_tokens(turn: Turn) -> int:
    """How many tokens of the context a chat took at the end of this reply."""
    if turn.reply is None or turn.reply.prompt_tokens is None:
        return 0
    return turn.reply.prompt_tokens + (turn.reply.completion_tokens or 0)


def _ending(turn: Turn, facts: ReplyFacts) -> str:
    if turn.state is TurnState.FAILED:
        return STOP_WORDS["failed"]
    if turn.state is TurnState.STOPPED:
        return STOP_WORDS["stopped"]
    return STOP_WORDS.get(facts.stop_reason or "", "finished")


def _speed(facts: ReplyFacts) -> str:
    timings, count = facts.timings, facts.completion_tokens
    if timings is None or not timings.decode_ms or not count or count < 2:
        return DASH
    speed = 1000 * count / timings.decode_ms
    return f"{speed:.1f}" if speed < 100 else f"{speed:,.0f}"


def _first_token(facts: ReplyFacts) -> str:
    if facts.timings is None or facts.timings.first_token_ms is None:
        return DASH
    seconds = facts.timings.first_token_ms / 1000
    return f"{seconds:.2f} s" if seconds < 0.1 else f"{seconds:.1f} s"


def words_of(problem: Problem) -> ProblemWords:
    """What a person reads of ``problem``."""
    if problem.code == ENGINE_DIED:
        return ProblemWords(RESTARTED_TITLE, RESTARTED_SENTENCE)
    return ProblemWords(TITLES.get(problem.code, OTHER_TITLE), problem.sentence)
