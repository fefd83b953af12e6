"""What the window says of a reply: the facts of a finished one, why there is none. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from app.chat.conversation import ReplyFacts, Turn, TurnState
from app.chat.session_facts import Problem
from app.chat.turns.keeping import EDITED
from app.errors import ENGINE_DIED
from app.language.words import tr, tr_count

DASH: Final = "–"
BETWEEN: Final = "  ·  "


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
        return tr("Hearth was closed before this reply ended")
    if facts.stop_reason == EDITED:
        return tr("written by you")
    count = facts.completion_tokens
    tokens = tr("{count} tokens", count=DASH)
    if count is not None:
        tokens = tr_count("{count} tokens", count, count=format(count, ","))
    parts = [
        tr("{speed} tok/s", speed=_speed(facts)),
        tokens,
        tr("first token {time}", time=_first_token(facts)),
        _ending(turn, facts),
    ]
    return BETWEEN.join(parts)


def context_tokens(turn: Turn) -> int:
    """How many tokens of the context a chat took at the end of this reply."""
    if turn.reply is None or turn.reply.prompt_tokens is None:
        return 0
    return turn.reply.prompt_tokens + (turn.reply.completion_tokens or 0)


def _ending(turn: Turn, facts: ReplyFacts) -> str:
    states = {TurnState.FAILED: "failed", TurnState.STOPPED: "stopped"}
    words = {
        "stop-string": tr("finished at a stop text"),
        "max-tokens": tr("reached the limit"),
        "context-full": tr("context is full"),
        "stopped": tr("stopped by you"),
        "failed": tr("not finished"),
    }
    return words.get(states.get(turn.state, facts.stop_reason or ""), tr("finished"))


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
    return tr("{seconds} s", seconds=f"{seconds:.2f}" if seconds < 0.1 else f"{seconds:.1f}")


def words_of(problem: Problem) -> ProblemWords:
    """What a person reads of ``problem``."""
    if problem.code == ENGINE_DIED:
        title = tr("The engine stopped and was restarted.")
        return ProblemWords(title, tr("Your chat is intact."))
    return ProblemWords(_title(problem.code), problem.sentence)


def _title(code: str) -> str:
    titles = {
        "memory-refused": tr("This does not fit into memory"),
        "request-invalid": tr("This message cannot be answered"),
        "request-too-large": tr("This chat is too long to send"),
        "template-failed": tr("The model cannot read this chat"),
        "store": tr("Your message was not saved"),
        "store-full": tr("The disk is full"),
        "engine-unavailable": tr("The engine is not there"),
        "device-lost": tr("The engine was started again"),
    }
    return titles.get(code, tr("There is no reply"))
