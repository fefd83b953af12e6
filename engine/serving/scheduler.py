"""The scheduler: queue facts to the next round's work. Pure policy.

A round is at most one prompt chunk, then one decode step of every stream that decodes. Admission
is first come, first served, and nobody overtakes the head of the queue. Of the admitted prompts
the one with the fewest tokens left goes first; one that ``OVERTAKEN_CHUNKS`` chunks of others went
before runs next, so with n prompts none waits for more than ``OVERTAKEN_CHUNKS + n - 2`` chunks
between two of its own. While others decode, a chunk is followed by decode steps alone until they
had ``DECODE_SHARE`` of the time that the chunk took, so a long prompt slows running replies down
by a bounded factor and never holds one up for longer than a chunk.

Work beside a chat ("side") waits for every chat: it is admitted only when no chat waits or runs,
and stands still while one does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from engine.serving.request import Phase

QUEUE_LIMIT: Final = 256
OVERTAKEN_CHUNKS: Final = 8
DECODE_SHARE: Final = 0.25


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """What the policy knows of an admitted stream.

    Attributes:
        tokens_left: prompt tokens not yet computed.
        overtaken: chunks of others since its own last one, or since it was admitted.
        is_side: whether it is work beside a chat.
    """

    number: int
    phase: Phase
    tokens_left: int = 0
    overtaken: int = 0
    is_side: bool = False


@dataclass(frozen=True, slots=True)
class Round:
    """Numbers of the streams to work on; each entry of ``steps`` is one shared step.

    Attributes:
        resumes: streams whose kept state is copied a bounded piece further.
    """

    prompt: int | None
    steps: tuple[tuple[int, ...], ...]
    resumes: tuple[int, ...] = ()


def next_round(streams: Sequence[StreamFacts], *, shares_steps: bool, owed_ns: int = 0) -> Round:
    """Choose the work of one round.

    Args:
        streams: in the order of their admission.
        shares_steps: whether the runner computes rows of several streams in one step.
        owed_ns: what decoding streams may still run before the next prompt chunk.
    """
    chats = [stream for stream in streams if not stream.is_side]
    active = chats or streams
    filling = [stream for stream in active if stream.phase is Phase.FILLING]
    decoding = tuple(stream.number for stream in active if stream.phase is Phase.DECODING)
    resumes = tuple(stream.number for stream in active if stream.phase is Phase.RESUMING)
    together = (decoding,) if shares_steps and decoding else tuple((one,) for one in decoding)
    waits = bool(decoding) and owed_ns > 0
    return Round(None if waits else _next_prompt(filling), together, resumes)


def _next_prompt(filling: Sequence[StreamFacts]) -> int | None:
    if not filling:
        return None
    longest = max(filling, key=lambda stream: stream.overtaken)
    if longest.overtaken >= OVERTAKEN_CHUNKS:
        return longest.number
    return min(filling, key=lambda stream: stream.tokens_left).number


def owed_after(owed_ns: int, chunk_ns: int, decode_ns: int, *, decodes: bool) -> int:
    """What decoding streams may still run after a round, in ns.

    Args:
        chunk_ns: what the round's prompt chunk took, 0 where it had none.
        decode_ns: what its steps took.
        decodes: whether any stream decodes; where none does nothing is owed.
    """
    if not decodes:
        return 0
    return max(0, owed_ns + int(chunk_ns * DECODE_SHARE) - decode_ns)


def chunk_end(position: int, chunk_rows: int, marks: Sequence[int], total: int) -> int:
    """Where the prompt chunk that begins at ``position`` ends: at the next mark at the latest."""
    ahead = [mark for mark in marks if mark > position]
    return min(position + chunk_rows, total, *ahead)


def may_admit(waiting: int, running: int, stream_limit: int) -> bool:
    """Whether the head of the queue may ask for pages; nobody overtakes it."""
    return waiting > 0 and running < stream_limit


def queue_is_full(waiting: int) -> bool:
    """Whether one more request is refused instead of queued."""
    return waiting >= QUEUE_LIMIT
