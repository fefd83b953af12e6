"""How a reply came to be, as names and values for a person. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from app.chat.conversation import Conversation, ReplyFacts, Turn
from app.chat.kept.plain import seconds
from app.chat.kept.words import resume_words
from app.language.words import tr, tr_count
from engine.protocol import Sampling


@dataclass(frozen=True, slots=True)
class InfoLine:
    """One fact: what it is and what it is of this reply."""

    name: str
    value: str


def info_of(conversation: Conversation, turn: Turn) -> tuple[InfoLine, ...]:
    """Everything that is known of a reply; what is not known has no line."""
    facts = turn.reply
    if facts is None:
        return ()
    lines = (
        *_model_lines(facts),
        *_token_lines(facts),
        *_time_lines(turn, facts),
        *_resume_lines(facts, begins=conversation.begins_with(turn)),
        *_sampling_lines(facts.sampling, facts.seed),
        *(InfoLine(tr("Note"), note) for note in facts.notes),
    )
    return tuple(line for line in lines if line.value)


def info_text(lines: tuple[InfoLine, ...]) -> str:
    """The lines as text, for the clipboard."""
    return "\n".join(tr("{name}: {value}", name=one.name, value=one.value) for one in lines)


def _model_lines(facts: ReplyFacts) -> Iterator[InfoLine]:
    yield InfoLine(tr("Model"), facts.model_name)
    yield InfoLine(tr("Digest"), facts.model_digest or "")
    yield InfoLine(tr("Chat template"), facts.template_hash or "")
    if facts.on_gpu is not None:
        yield InfoLine(tr("Computed on"), tr("GPU") if facts.on_gpu else tr("processor"))


def _token_lines(facts: ReplyFacts) -> Iterator[InfoLine]:
    for name, count in (
        (tr("Read"), facts.prompt_tokens),
        (tr("Written"), facts.completion_tokens),
        (tr("Of it thought"), facts.thinking_tokens or None),
    ):
        if count is not None:
            yield InfoLine(name, tr_count("{count} tokens", count, count=f"{count:,}"))
    if facts.dropped_messages:
        dropped = tr_count("%n messages", facts.dropped_messages)
        yield InfoLine(tr("Left out of the context"), dropped)


def _time_lines(turn: Turn, facts: ReplyFacts) -> Iterator[InfoLine]:
    at = datetime.fromtimestamp(turn.created_ms / 1000).astimezone()
    yield InfoLine(tr("Begun"), f"{at:%Y-%m-%d %H:%M:%S}")
    times = facts.timings
    if times is None:
        return
    for name, milliseconds in (
        (tr("Waited"), times.queue_ms or None),
        (tr("Reading"), times.prefill_ms),
        (tr("First token after"), times.first_token_ms),
        (tr("Writing"), times.decode_ms),
    ):
        if milliseconds is not None:
            yield InfoLine(name, seconds(milliseconds))


def _resume_lines(facts: ReplyFacts, *, begins: bool) -> Iterator[InfoLine]:
    words = resume_words(facts, begins=begins)
    if words is not None:
        yield InfoLine(tr("Resumed"), words.sentence)


def _sampling_lines(sampling: Sampling, seed: int | None) -> Iterator[InfoLine]:
    plain = Sampling()
    for name, value, usual in (
        (tr("Temperature"), sampling.temperature, None),
        ("top-k", sampling.top_k, None),
        ("top-p", sampling.top_p, None),
        ("min-p", sampling.min_p, None),
        (tr("Repetition penalty"), sampling.repetition_penalty, plain.repetition_penalty),
        (tr("Presence penalty"), sampling.presence_penalty, plain.presence_penalty),
        (tr("Frequency penalty"), sampling.frequency_penalty, plain.frequency_penalty),
        (tr("Longest reply"), sampling.max_tokens, None),
    ):
        if value != usual:
            yield InfoLine(name, f"{value:g}")
    yield InfoLine(tr("Stop texts"), ", ".join(map(repr, sampling.stop)))
    if seed is not None:
        yield InfoLine(tr("Seed"), str(seed))
