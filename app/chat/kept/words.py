"""What the app says of kept states: how a prompt was resumed, why not, what is waited for. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, get_args

from app.chat.conversation import ReplyFacts
from app.chat.kept.plain import megabytes, seconds
from app.errors import gibibytes
from app.language.words import tr, tr_count
from engine.protocol import REASONS, Progress, Queued, Tier


def left_out_note() -> str:
    """The note where the messages begin that a model still sees."""
    return tr("Earlier messages no longer fit and are not seen by the model")


def short_reasons() -> Mapping[str, str]:
    """The engine's reasons for little reuse, in few words; its own sentence is for details."""
    return {
        "short-prompt": tr("too short to keep"),
        "nothing-kept": tr("nothing was kept"),
        "no-common-prefix": tr("begins differently"),
        "evicted": tr("made room for others"),
        "no-room": tr("no room to resume"),
        "edited": tr("message edited"),
        "model-changed": tr("another model"),
        "damaged": tr("kept file damaged"),
        "template": tr("another chat template"),
        "history-rewritten": tr("rewritten by the template"),
        "context-full": tr("the oldest left out"),
    }


FIRST_READ: Final = frozenset({"short-prompt", "nothing-kept"})
"""Reasons with which nothing is read again: it was never kept."""


@dataclass(frozen=True, slots=True)
class ResumeWords:
    """The resume of one prompt in words.

    Attributes:
        text: for the status line.
        sentence: the whole of it, for who asks.
        tier: where it came from; None where little was resumed, or that is not known.
    """

    text: str
    sentence: str
    tier: Tier | None


def resume_words(facts: ReplyFacts, *, begins: bool = False) -> ResumeWords | None:
    """How the prompt of a reply was resumed; None where there is nothing to tell.

    Less than half of it is little: then what was read again is told, and why.

    Args:
        begins: it answers the first message of its chat, of which nothing could be kept.
    """
    total, resumed = facts.prompt_tokens, facts.resumed_tokens
    if total is None or resumed is None:
        return None
    if facts.reason is not None and 2 * resumed < total:
        if resumed == 0 and (begins or facts.reason == "short-prompt"):
            return None
        return _little(total - resumed, facts.reason)
    if resumed == 0:
        return None
    text = _resumed(facts, f"{resumed:,}", f"{total:,}")
    tiers: tuple[Tier, ...] = get_args(Tier)
    tier = next((tier for tier in tiers if tier == facts.resumed_from), None)
    begin = f"{text[:1].upper()}{text[1:]}"
    sentence = tr("{what}. {why}", what=begin, why=_why(facts.reason))
    return ResumeWords(text, sentence.rstrip(), tier)


def _little(count: int, reason: str) -> ResumeWords:
    why, shown = _why(reason), f"{count:,}"
    short = short_reasons().get(reason, reason.replace("-", " "))
    if reason in FIRST_READ:
        text = tr("read {count}: {why}", count=shown, why=short)
        sentence = tr_count("{count} tokens were read. {why}", count, count=shown, why=why)
    else:
        text = tr("read {count} again: {why}", count=shown, why=short)
        sentence = tr_count("{count} tokens were read again. {why}", count, count=shown, why=why)
    return ResumeWords(text, sentence.rstrip(), None)


def _why(reason: str | None) -> str:
    """The engine's own sentence for a reason; nothing for one that this version does not know."""
    return next((sentence for word, sentence in REASONS.items() if word == reason), "")


def _resumed(facts: ReplyFacts, count: str, total: str) -> str:
    """How much, from where and what moved; nothing of what an older version did not store."""
    places = {
        "device": tr("the GPU") if facts.on_gpu else tr("memory"),
        "host": tr("RAM") if facts.on_gpu else tr("memory"),
        "disk": tr("disk"),
    }
    place = places.get(facts.resumed_from or "")
    if place is None:
        return tr("resumed {count} of {total} tokens", count=count, total=total)
    if not facts.resumed_bytes or facts.resumed_ms is None:
        return tr(
            "resumed {count} of {total} tokens from {place}", count=count, total=total, place=place
        )
    return tr(
        "resumed {count} of {total} tokens from {place}, {size} in {time}",
        count=count,
        total=total,
        place=place,
        size=megabytes(facts.resumed_bytes),
        time=seconds(facts.resumed_ms),
    )


def waiting_words(queued: Queued, streams: int) -> str:
    """What a message waits for, with its place in the line."""
    number = queued.position
    match queued.reason:
        case "loading":
            return tr("Waiting: the model is loading")
        case "chats-at-once" if number <= 1:
            return tr_count("Waiting: next in line, %n chats answer at once", streams)
        case "chats-at-once":
            return tr_count(
                "Waiting: number {number} in line, %n chats answer at once", streams, number=number
            )
        case "memory":
            needed = gibibytes(queued.needed_bytes, up=True)
            free = gibibytes(queued.free_bytes, up=False)
            return tr("Waiting for {needed} of memory, {free} are free", needed=needed, free=free)
        case "another-prompt" if number <= 1:
            return tr("Waiting: next in line, another message is being read")
        case "another-prompt":
            return tr(
                "Waiting: number {number} in line, another message is being read", number=number
            )


def reading_words(progress: Progress) -> str:
    """How far a prompt is read, or what is kept of it taken up."""
    share = round(100 * progress.done / progress.total)
    if progress.phase == "resume":
        size = megabytes(progress.total)
        return tr("Taking up the chat, {percent} % of {size}", percent=share, size=size)
    return tr_count(
        "Reading {count} tokens, {percent} %",
        progress.total,
        count=f"{progress.total:,}",
        percent=share,
    )
