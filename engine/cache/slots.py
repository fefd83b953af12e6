"""Slots of recurrent states: which stream or kept state has which, not the bytes.

Used from the engine thread only. A slot has one owner and is never shared: a kept state is a copy,
made while nothing computes. What a slot held before is never seen again: this is the one place
that gives slots out, cleared or as a copy.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Protocol

from engine.errors import InvariantBroken


class SlotContent(Protocol):
    """The bytes behind the slots; ``engine.cache.recurrent.RecurrentArena`` is the real one."""

    @property
    def slot_count(self) -> int:
        """Slots in all."""

    def clear(self, slot: int) -> None:
        """Make a slot the condition before the first token."""

    def copy(self, source: int, target: int) -> None:
        """Make ``target`` what ``source`` is."""


@dataclass(frozen=True, slots=True)
class SlotCensus:
    """One pool as it stands."""

    slot_count: int
    free_slots: int


class SlotPool:
    """The slots of one arena, the lowest free one first."""

    def __init__(self, content: SlotContent) -> None:
        self._content = content
        self._free = list(range(content.slot_count))

    @property
    def free_slots(self) -> int:
        """Slots that nobody owns."""
        return len(self._free)

    def take_cleared(self) -> int | None:
        """A slot in the condition before the first token; None where all are taken."""
        if not self._free:
            return None
        self._content.clear(self._free[0])
        return heapq.heappop(self._free)

    def take_copy(self, source: int) -> int | None:
        """A slot with the bytes of one that is taken; None where all are taken."""
        if source in self._free:
            raise InvariantBroken(f"Recurrent slot {source} was copied although nobody owns it.")
        if not self._free:
            return None
        self._content.copy(source, self._free[0])
        return heapq.heappop(self._free)

    def release(self, slot: int) -> None:
        """Give a slot back."""
        if slot in self._free or not 0 <= slot < self._content.slot_count:
            raise InvariantBroken(f"Recurrent slot {slot} was released although nobody owns it.")
        heapq.heappush(self._free, slot)

    def census(self) -> SlotCensus:
        """The pool as it stands; raises InvariantBroken where the accounts do not meet."""
        free = set(self._free)
        if len(free) != len(self._free) or not free <= set(range(self._content.slot_count)):
            raise InvariantBroken(f"The recurrent slots do not add up: {sorted(self._free)} free.")
        return SlotCensus(self._content.slot_count, len(free))
