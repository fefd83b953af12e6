"""What lines of a plan take of each pool, and which pool falls short."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.memory.placement.facts import Machine
from engine.memory.pools import PINNED, RAM
from engine.protocol import PlanLine


@dataclass(frozen=True, slots=True)
class Need:
    """What a plan takes of one pool, and what was free there; pinned bytes count as RAM too."""

    pool: str
    needed_bytes: int
    free_bytes: int
    total_bytes: int
    label: str = ""
    holders: tuple[tuple[str, int], ...] = ()


def needs(machine: Machine, lines: Sequence[PlanLine]) -> tuple[Need, ...]:
    """What lines take of each pool, the one that computes first."""
    taken = peak_by_pool(lines)
    rooms = [machine.ram] if machine.gpu is None else [machine.gpu, machine.ram, machine.pinned]
    return tuple(
        Need(
            pool=room.name,
            needed_bytes=taken.get(room.name, 0),
            free_bytes=room.free_bytes,
            total_bytes=room.total_bytes,
            label=room.label,
            holders=room.holders,
        )
        for room in rooms
    )


def short_pool(machine: Machine, lines: Sequence[PlanLine]) -> Need | None:
    """The first pool that has too little; None where the lines fit."""
    for need in needs(machine, lines):
        if need.needed_bytes > need.free_bytes:
            return need
    return None


def peak_by_pool(lines: Sequence[PlanLine]) -> dict[str, int]:
    """Bytes of each pool; what is pinned is charged to RAM besides."""
    found: dict[str, int] = {}
    for line in lines:
        found[line.pool] = found.get(line.pool, 0) + line.bytes
    if PINNED in found:
        found[RAM] = found.get(RAM, 0) + found[PINNED]
    return found
