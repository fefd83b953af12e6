"""The scheduler: queue facts to the next round's work. Pure policy.

A round is: one prompt chunk of the stream that has been filling longest, then one decode step of
every stream that decodes. So a long prompt never holds up running replies by more than one chunk,
and prompts are served in the order in which they came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from engine.serving.request import Phase

QUEUE_LIMIT: Final = 256


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """What the policy knows of an admitted stream."""

    number: int
    phase: Phase


@dataclass(frozen=True, slots=True)
class Round:
    """Numbers of the streams to work on; each entry of ``steps`` is one shared step."""

    prompt: int | None
    steps: tuple[tuple[int, ...], ...]


def next_round(streams: Sequence[StreamFacts], *, shares_steps: bool) -> Round:
    """Choose the work of one round.

    Args:
        streams: in the order of their admission.
        shares_steps: whether the runner computes rows of several streams in one step.
    """
    filling = [stream.number for stream in streams if stream.phase is Phase.FILLING]
    decoding = tuple(stream.number for stream in streams if stream.phase is Phase.DECODING)
    together = (decoding,) if shares_steps and decoding else tuple((one,) for one in decoding)
    return Round(filling[0] if filling else None, together)


def may_admit(waiting: int, running: int, stream_limit: int) -> bool:
    """Whether the head of the queue may ask for pages; nobody overtakes it."""
    return waiting > 0 and running < stream_limit


def queue_is_full(waiting: int) -> bool:
    """Whether one more request is refused instead of queued."""
    return waiting >= QUEUE_LIMIT
