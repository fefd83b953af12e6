"""What the app says of kept states: how a prompt was resumed, why not, what is waited for. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, get_args

from app.chat.conversation import ReplyFacts
from app.errors import gibibytes
from engine.protocol import REASONS, Progress, Queued, Tier

LEFT_OUT: Final = "Earlier messages no longer fit and are not seen by the model"


SHORT_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "short-prompt": "too short to keep",
        "nothing-kept": "nothing was kept",
        "no-common-prefix": "begins differently",
        "evicted": "made room for others",
        "no-room": "no room to resume",
        "edited": "message edited",
        "model-changed": "another model",
        "damaged": "kept file damaged",
        "template": "another chat template",
        "history-rewritten": "rewritten by the template",
        "context-full": "the oldest left out",
    }
)
"""The engine's reasons for little reuse, in few words; its own sentence stands in the details."""

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
    text = f"resumed {resumed:,} of {total:,} tokens{_whence(facts)}"
    tiers: tuple[Tier, ...] = get_args(Tier)
    tier = next((tier for tier in tiers if tier == facts.resumed_from), None)
    sentence = f"{text[:1].upper()}{text[1:]}. {_why(facts.reason)}"
    return ResumeWords(text, sentence.rstrip(), tier)


def _little(count: int, reason: str) -> ResumeWords:
    again = "" if reason in FIRST_READ else " again"
    text = f"read {count:,}{again}: {SHORT_REASONS.get(reason, reason.replace('-', ' '))}"
    tokens = "token was" if count == 1 else "tokens were"
    return ResumeWords(text, f"{count:,} {tokens} read{again}. {_why(reason)}".rstrip(), None)


def _why(reason: str | None) -> str:
    """The engine's own sentence for a reason; nothing for one that this version does not know."""
    return next((sentence for word, sentence in REASONS.items() if word == reason), "")


def _whence(facts: ReplyFacts) -> str:
    """From where, and what moved; nothing of what an older version did not store."""
    places = {
        "device": "the GPU" if facts.on_gpu else "memory",
        "host": "RAM" if facts.on_gpu else "memory",
        "disk": "disk",
    }
    place = places.get(facts.resumed_from or "")
    if place is None:
        return ""
    if not facts.resumed_bytes or facts.resumed_ms is None:
        return f" from {place}"
    return f" from {place}, {megabytes(facts.resumed_bytes)} in {seconds(facts.resumed_ms)}"


def waiting_words(queued: Queued, streams: int) -> str:
    """What a message waits for, with its place in the line."""
    match queued.reason:
        case "loading":
            return "Waiting: the model is loading"
        case "chats-at-once":
            at_once = "one chat answers" if streams == 1 else f"{streams} chats answer"
            return f"Waiting: {_place(queued.position)} in line, {at_once} at once"
        case "memory":
            needed = gibibytes(queued.needed_bytes, up=True)
            free = gibibytes(queued.free_bytes, up=False)
            return f"Waiting for {needed} of memory, {free} are free"
        case "another-prompt":
            return f"Waiting: {_place(queued.position)} in line, another message is being read"


def reading_words(progress: Progress) -> str:
    """How far a prompt is read, or what is kept of it taken up."""
    share = f"{progress.done / progress.total:.0%}".replace("%", " %")
    if progress.phase == "resume":
        return f"Taking up the chat, {share} of {megabytes(progress.total)}"
    return f"Reading {progress.total:,} tokens, {share}"


def left_out_words(count: int) -> str:
    """That the oldest messages were not seen, for the command line."""
    if count == 1:
        return "The oldest message no longer fits and is not seen by the model."
    return f"The {count:,} oldest messages no longer fit and are not seen by the model."


def megabytes(count: int) -> str:
    """Bytes as disks are read: ``590 MB``, ``1.2 GB``, below one MB ``12 kB``."""
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if count >= 0.9995 * unit:
            return (
                f"{count / unit:.1f} {name}"
                if count < 9.95 * unit
                else f"{count / unit:.0f} {name}"
            )
    return f"{count / 1e3:.0f} kB"


def seconds(milliseconds: float) -> str:
    """A short time: ``0.2 s``, below a tenth ``0.04 s``, never less than ``0.01 s``."""
    found = max(0.01, milliseconds / 1000)
    return f"{found:.2f} s" if found < 0.095 else f"{found:.1f} s"


def _place(position: int) -> str:
    if position <= 1:
        return "next"
    ending = {1: "st", 2: "nd", 3: "rd"}.get(position % 10, "th")
    return f"{position}{'th' if position % 100 in (11, 12, 13) else ending}"
