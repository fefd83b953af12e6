"""Rows of the tables as records of the conversation, and back. Pure."""

from __future__ import annotations

import sqlite3
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from app.chat.conversation import ReplyFacts, Turn, TurnState
from app.chat.storage.database import Value
from engine.protocol import Sampling, Timings

SEED_SPAN: Final = 1 << 64

TURN_COLUMNS: Final = (
    "turn.id, turn.parent, turn.sibling, turn.role, turn.text, turn.created_ms, turn.state,"
    " turn.thinking_text, turn.trashed_ms, reply.*"
)


def ids_to_bytes(ids: Sequence[int]) -> bytes:
    """Token ids as little-endian int32."""
    packed = array("i", ids)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def ids_from_bytes(content: bytes) -> tuple[int, ...]:
    """Token ids of a blob; a torn last one is left out."""
    packed = array("i")
    packed.frombytes(content[: len(content) // packed.itemsize * packed.itemsize])
    if sys.byteorder == "big":
        packed.byteswap()
    return tuple(packed)


def kept_rows(rows: Iterable[sqlite3.Row]) -> Iterator[sqlite3.Row]:
    """The rows of turns that are not in the trash, nor follow one that is.

    Args:
        rows: of one conversation by id: a turn comes after the one it follows.
    """
    gone: set[int] = set()
    for row in rows:
        if row["trashed_ms"] is not None or row["parent"] in gone:
            gone.add(row["id"])
        else:
            yield row


def turn_of(row: sqlite3.Row) -> Turn:
    """The turn of a row of ``TURN_COLUMNS``."""
    reply = None if row["model_name"] is None else _reply_of(row)
    return Turn(
        id=row["id"],
        parent=row["parent"],
        sibling=row["sibling"],
        role=row["role"],
        text=row["text"],
        created_ms=row["created_ms"],
        state=TurnState(row["state"]),
        thinking_text=row["thinking_text"],
        ids=ids_from_bytes(row["ids"]) if reply is not None else (),
        reply=reply,
    )


def reply_values(facts: ReplyFacts) -> tuple[Value, ...]:
    """The values of ``REPLY_COLUMNS``, in order."""
    return (
        facts.template_hash,
        facts.model_name,
        facts.model_digest,
        msgspec.json.encode(facts.sampling).decode(),
        _signed(facts.seed),
        facts.stop_reason,
        facts.prompt_tokens,
        facts.resumed_tokens,
        facts.resumed_from,
        facts.resumed_bytes,
        facts.resumed_ms,
        facts.on_gpu,
        facts.reason,
        facts.dropped_messages,
        facts.completion_tokens,
        None if facts.timings is None else msgspec.json.encode(facts.timings).decode(),
        facts.problem,
        facts.thinking_ms,
        facts.thinking_tokens,
        msgspec.json.encode(facts.notes).decode(),
    )


REPLY_COLUMNS: Final = (
    "template_hash",
    "model_name",
    "model_digest",
    "sampling",
    "seed",
    "stop_reason",
    "prompt_tokens",
    "resumed_tokens",
    "resumed_from",
    "resumed_bytes",
    "resumed_ms",
    "on_gpu",
    "reason",
    "dropped_messages",
    "completion_tokens",
    "timings",
    "problem",
    "thinking_ms",
    "thinking_tokens",
    "notes",
)


def _reply_of(row: sqlite3.Row) -> ReplyFacts:
    timings = row["timings"]
    return ReplyFacts(
        model_name=row["model_name"],
        model_digest=row["model_digest"],
        template_hash=row["template_hash"],
        sampling=msgspec.json.decode(row["sampling"], type=Sampling),
        seed=None if row["seed"] is None else row["seed"] % SEED_SPAN,
        stop_reason=row["stop_reason"],
        prompt_tokens=row["prompt_tokens"],
        resumed_tokens=row["resumed_tokens"],
        resumed_from=row["resumed_from"],
        resumed_bytes=row["resumed_bytes"],
        resumed_ms=row["resumed_ms"],
        on_gpu=None if row["on_gpu"] is None else bool(row["on_gpu"]),
        reason=row["reason"],
        dropped_messages=row["dropped_messages"],
        completion_tokens=row["completion_tokens"],
        timings=None if timings is None else msgspec.json.decode(timings, type=Timings),
        problem=row["problem"],
        thinking_ms=row["thinking_ms"],
        thinking_tokens=row["thinking_tokens"],
        notes=msgspec.json.decode(row["notes"], type=tuple[str, ...]),
    )


def _signed(seed: int | None) -> int | None:
    """A seed of up to 64 bits as SQLite's signed integer."""
    if seed is None:
        return None
    seed %= SEED_SPAN
    return seed - SEED_SPAN if seed >= SEED_SPAN // 2 else seed
