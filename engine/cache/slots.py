"""Slots of recurrent states: which stream or kept state has which, not the bytes.

Used from the engine thread only. A slot has one owner and is never shared: a kept state is a copy.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from engine.errors import InvariantBroken


@dataclass(frozen=True, slots=True)
class SlotCensus:
    """One pool as it stands."""

    slot_count: int
    free_slots: int


class SlotPool:
    """The slots of one arena, the lowest free one first."""

    def __init__(self, slot_count: int) -> None:
        self._slot_count = slot_count
        self._free = list(range(slot_count))

    def take(self) -> int | None:
        """A slot whose bytes may be anything; None where all are taken."""
        return heapq.heappop(self._free) if self._free else None

    def release(self, slot: int) -> None:
        """Give a slot back."""
        if slot in self._free or not 0 <= slot < self._slot_count:
            raise InvariantBroken(f"Recurrent slot {slot} was released twice.")
        heapq.heappush(self._free, slot)

    def census(self) -> SlotCensus:
        """The pool as it stands."""
        return SlotCensus(self._slot_count, len(self._free))
