"""Trimming: what is given up for a wish that would not fit, in a fixed order.

Whoever can do without something registers a ``Trimmer`` and says at which step it is asked. The
order is that of what it costs to have the thing again: nothing, an allocation, a read, a prefill,
slower prompts, waiting. The last three free nothing by themselves: they make the wish smaller, and
say by how much. Asked is before the next request's workspace would not fit, not only when a pool
is over its capacity; and only between two pieces of work, so nothing that runs is taken away.

Pages and slots lie in arenas of one size: a kept state on the device that goes makes room for
streams (``engine.states``), not for other owners, so cold states here are those in host memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from engine.memory.leases import Bytes
from engine.memory.ledger import Ledger


class TrimStep(IntEnum):
    """When a trimmer is asked, the first first."""

    PREFETCH = 1
    IDLE_WORKSPACES = 2
    WEIGHT_CACHES = 3
    COLD_STATES = 4
    SMALLER_CHUNK = 5
    QUEUE = 6
    PAUSE = 7


class Trimmer(Protocol):
    """Can do without some bytes; it has closed their leases when ``trim`` returns."""

    @property
    def step(self) -> TrimStep:
        """When it is asked."""

    @property
    def last_used(self) -> int:
        """A clock that grows; within a step who was used longest ago is asked first."""

    def trim(self, pool: str, size_bytes: int) -> int:
        """Give up ``size_bytes`` of a pool, or what there is of it.

        Returns:
            Bytes by which the wish became smaller without anything being freed, mostly 0.
        """


@dataclass(frozen=True, slots=True)
class Trimmed:
    """Whether a wish fits now, what it still lacks, and the steps that were gone."""

    missing: Bytes
    steps: tuple[TrimStep, ...]

    @property
    def fits(self) -> bool:
        """Whether the wish can be reserved."""
        return not self.missing


class Trimmers:
    """Everybody who can give something up. Owns nothing; used from the engine thread."""

    def __init__(self) -> None:
        self._trimmers: list[Trimmer] = []

    def register(self, trimmer: Trimmer) -> None:
        """Ask it too from now on."""
        self._trimmers.append(trimmer)

    def withdraw(self, trimmer: Trimmer) -> None:
        """Ask it no more."""
        self._trimmers.remove(trimmer)

    def make_room(self, ledger: Ledger, wish: Bytes) -> Trimmed:
        """Trim in order until ``wish`` fits into every pool, and not a byte more than needed."""
        wanted = ledger.charged(wish)
        steps: list[TrimStep] = []
        for trimmer in sorted(self._trimmers, key=lambda each: (each.step, each.last_used)):
            for pool, size in _missing(ledger, wanted).items():
                wanted[pool] -= trimmer.trim(pool, size)
                steps.append(trimmer.step)
        return Trimmed(_missing(ledger, wanted), tuple(dict.fromkeys(steps)))


def _missing(ledger: Ledger, wanted: Bytes) -> dict[str, int]:
    """What each pool lacks, nothing where all fits.

    A pool that holds more than its capacity must first come down to it.
    """
    found = {}
    for pool, size in wanted.items():
        facts = ledger.pool(pool)
        lacking = facts.held_bytes + size - facts.capacity_bytes
        if lacking > 0 and (size > 0 or facts.held_bytes > facts.capacity_bytes):
            found[pool] = lacking
    return found
