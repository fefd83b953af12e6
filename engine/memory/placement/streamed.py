"""The last rung: weights that do not fit on the GPU are copied there while it computes.

A mixture keeps all but its experts resident and has a table of expert slots a layer, as large as
memory allows. Any other model keeps as many layers resident as fit; the others pass through two
places, one being copied while the other computes. What passes lies in pinned RAM where that has
room, else in the file.
"""

from __future__ import annotations

from typing import Final

from engine.memory.placement.facts import Streamable
from engine.memory.placement.layout import Candidate
from engine.memory.placement.lines import WEIGHTS, Question, other_lines
from engine.memory.pools import PINNED
from engine.protocol import PlanLine

STAGING: Final = "staging"
SLOTS: Final = "expert slots"
PASSING: Final = "weights to copy"
BOUNCE_BYTES: Final = 64 << 20
"""Pinned pieces of a file on their way."""


def streamed_lines(asked: Question, candidate: Candidate) -> tuple[PlanLine, ...] | None:
    """The lines of a streamed placement; None where even that does not fit."""
    gpu, parts = asked.machine.gpu, asked.footprint.streamable
    if gpu is None or parts is None:
        return None
    others = other_lines(asked, candidate)
    room = gpu.free_bytes - sum(line.bytes for line in others if line.pool == gpu.name)
    weights = asked.footprint.weight_bytes
    own = _expert_lines if parts.expert_bytes else _layer_lines
    lines = own(gpu.name, parts, weights, room)
    if lines is None:
        return None
    resident = sum(line.bytes for line in lines if line.owner != STAGING)
    pinned = sum(line.bytes for line in others if line.pool == PINNED)
    passing = parts.experts_bytes if parts.expert_bytes else weights - resident
    source = _passing_line(passing, asked.machine.pinned.free_bytes - pinned)
    return None if source is None else (*lines, source, *others)


def _expert_lines(
    pool: str, parts: Streamable, weights: int, room: int
) -> tuple[PlanLine, ...] | None:
    """Everything but experts resident, and the largest table of slots that fits."""
    fixed = weights - parts.experts_bytes
    staging = 2 * parts.active_count * parts.expert_bytes
    slots = parts.expert_count // 2
    while slots >= parts.active_count:
        table = slots * parts.expert_layers * parts.expert_bytes
        if fixed + staging + table <= room:
            return (
                _line(pool, WEIGHTS, fixed, "everything but the experts"),
                _line(
                    pool, SLOTS, table,
                    f"{slots} of {parts.expert_count} experts in each of {parts.expert_layers} "
                    f"layers, those used last",
                ),
                _line(pool, STAGING, staging, "experts on their way, two steps' worth"),
            )  # fmt: skip
        slots //= 2
    return None


def _layer_lines(
    pool: str, parts: Streamable, weights: int, room: int
) -> tuple[PlanLine, ...] | None:
    """As many of the first layers resident as fit; the others pass through two places."""
    resident = weights - sum(parts.layer_bytes)
    staging = 2 * max(parts.layer_bytes)
    if resident + staging > room:
        return None
    layers = 0
    for size in parts.layer_bytes[:-1]:
        if resident + size + staging > room:
            break
        resident += size
        layers += 1
    count = len(parts.layer_bytes)
    reason = f"{layers} of {count} layers; the others are copied for each piece of work"
    return (
        _line(pool, WEIGHTS, resident, reason),
        _line(pool, STAGING, staging, "two layers on their way: one is copied, one computes"),
    )


def _passing_line(size: int, room: int) -> PlanLine | None:
    if size <= room:
        return _line(PINNED, PASSING, size, "in memory that the GPU copies from")
    if room < BOUNCE_BYTES:
        return None
    reason = f"read from the file each time: {size:,} bytes are more than memory has room for"
    return _line(PINNED, PASSING, BOUNCE_BYTES, reason)


def _line(pool: str, owner: str, size: int, reason: str) -> PlanLine:
    return PlanLine(pool=pool, owner=owner, bytes=size, reason=reason)
