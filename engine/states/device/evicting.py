"""Making room on the device: evicts states where pages or slots are needed for something else.

What goes is moved down first, where the lower tiers lack it and have a buffer for it. Used from the
engine thread only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.cache.formats import PAGE_ROWS
from engine.cache.lane import LaneMemory, LaneRefused, PagesRefused, SlotsRefused
from engine.cache.pages import state_pages
from engine.errors import InvariantBroken
from engine.states.device.held import HeldState, HeldStates
from engine.states.device.victims import Standing, victims
from engine.states.lookup import Losses
from engine.states.overview import Counts
from engine.states.records import Role, StateRecord
from engine.states.write_back import WriteBack


class Eviction:
    """Takes states from the device tier.

    Attributes:
        losses: told of what goes.
        counts: of the store.
        standing: whose states go last.
    """

    def __init__(
        self,
        memory: LaneMemory,
        held: HeldStates,
        writer: WriteBack | None,
        losses: Losses,
        counts: Counts,
    ) -> None:
        self._memory = memory
        self._held = held
        self._writer = writer
        self.losses = losses
        self.counts = counts
        self.standing = Standing()

    def reclaim(
        self, refused: LaneRefused, coming: StateRecord | None = None, *, for_request: bool
    ) -> bool:
        """Evict until there is what was refused; nothing where that cannot succeed."""
        order = victims(tuple(self._held), self.standing, coming, for_request=for_request)
        return self._evict_until(refused, order)

    def reclaim_spare(self, refused: LaneRefused) -> bool:
        """The same, of those states alone that the lower tiers hold too."""
        writer = self._writer
        if writer is None:
            return False
        order = victims(tuple(self._held), self.standing, for_request=True)
        return self._evict_until(refused, [state for state in order if writer.has(state)])

    def _evict_until(self, refused: LaneRefused, order: Sequence[HeldState]) -> bool:
        if isinstance(refused, SlotsRefused):
            return self._reclaim_slot(order)
        pool = self._memory.pools[refused.group]
        if pool.available_pages + self._held.freed_by(refused.group, order) < refused.needed_pages:
            return False
        for state in order:
            if pool.fits(refused.needed_pages):
                break
            self.evict(state)
        return True

    def make_room(self, record: StateRecord) -> None:
        """Evict for what a state takes anew, as far as that can succeed."""
        slots = self._memory.slots
        if slots is not None:
            self.reclaim(SlotsRefused(slots.census().slot_count), record, for_request=False)
        for group, pool in enumerate(self._memory.pools):
            pages = _own_pages(pool.window, record.at)
            wanted = PagesRefused(group, pages, pool.available_pages)
            self.reclaim(wanted, record, for_request=False)

    def roomy(self, marks: Iterable[tuple[int, Role]]) -> list[tuple[int, Role]]:
        """Those of the states to come for which there is room, or would be; the first ones first.

        Args:
            marks: (rows, role) of each.
        """
        order = victims(tuple(self._held), self.standing, for_request=False)
        free = [
            pool.available_pages + self._held.freed_by(group, order)
            for group, pool in enumerate(self._memory.pools)
        ]
        slots = self._memory.slots
        if slots is not None:
            free.append(slots.free_slots + sum(state.hold.slot is not None for state in order))
        found = []
        for at, role in marks:
            needs = [_own_pages(pool.window, at) for pool in self._memory.pools]
            needs += [] if slots is None else [1]
            left = [one - need for one, need in zip(free, needs, strict=True)]
            if min(left) >= 0:
                free = left
                found.append((at, role))
        return found

    def evict(self, state: HeldState) -> None:
        """Move a state down if it can be, and keep it no longer on the device."""
        if self._writer is not None:
            self._writer.save(state, tuple(self._held))
        self._held.drop(state)
        self.counts.evicted += 1
        self.losses.add(state.record.key, "evicted")

    def _reclaim_slot(self, order: Iterable[HeldState]) -> bool:
        """Evict at most one state so that a slot is free."""
        slots = self._memory.slots
        if slots is None:
            raise InvariantBroken("A slot was refused by a model that has none.")
        if slots.free_slots:
            return True
        state = next(iter(order), None)
        if state is None:
            return False
        self.evict(state)
        return True


def _own_pages(window: int | None, at: int) -> int:
    """Pages of a group that a state may need beyond those of the lane it is cut from.

    A sliding group drops what a state still holds, so it needs all of them; elsewhere only the
    copy of the last, partly filled one is its own.
    """
    return state_pages(window, at) if window is not None else (1 if at % PAGE_ROWS else 0)
