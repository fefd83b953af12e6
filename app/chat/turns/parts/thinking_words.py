"""What is said of a model's thinking: how long it takes, how long it took. Pure."""

from __future__ import annotations

from typing import Final

from app.language.words import tr, tr_count

MINUTE: Final = 60


def thinking_words(seconds: int) -> str:
    """While it goes on; a time below a second is not told."""
    return tr("Thinking, {time}", time=_time(seconds)) if seconds else tr("Thinking")


def thought_words(milliseconds: float | None, tokens: int | None) -> str:
    """Afterwards, as far as it is known."""
    if milliseconds is None or tokens is None:
        return tr("Thoughts")
    time = _time(max(1, round(milliseconds / 1000)))
    return tr_count("Thought for {time} · %n tokens", tokens, time=time)


def _time(seconds: int) -> str:
    if seconds < MINUTE:
        return tr("{seconds} s", seconds=seconds)
    return tr("{minutes} min {seconds} s", minutes=seconds // MINUTE, seconds=seconds % MINUTE)
