"""Keeping: the state of what a lane has computed becomes one of the device's.

Used from the engine thread only.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from engine.cache.formats import PAGE_ROWS
from engine.cache.lane import Lane, LaneMemory, LaneState
from engine.errors import DeviceLost
from engine.states.border import StateArchive
from engine.states.device.evicting import Eviction
from engine.states.device.held import HeldState, HeldStates, common_rows, first_pages
from engine.states.records import Role, StateRecord, extent_names, prefix_digest

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Clocks:
    """A monotonic one in ns, and seconds since 1970."""

    monotonic_ns: Callable[[], int] = time.monotonic_ns
    wall_s: Callable[[], float] = time.time


class Keeping:
    """Adds states to the device tier and notes their use."""

    def __init__(
        self,
        memory: LaneMemory,
        held: HeldStates,
        room: Eviction,
        archive: StateArchive | None,
        clocks: Clocks,
    ) -> None:
        self._memory = memory
        self._held = held
        self._room = room
        self._archive = archive
        self._clocks = clocks
        self._ticks = 0

    def keep(
        self, lane: Lane, ids: NDArray[np.int32], role: Role, conversation: str | None
    ) -> HeldState | None:
        """Keep the state after ``ids``; see ``StateStore.keep``."""
        key = prefix_digest(ids)
        self._swap(lane, ids)
        state = self._held.equal_to(ids, key)
        if state is not None:
            state.record = replace(state.record, role=_merged(state.record.role, role))
            state.born = self._tick()
            self.use(state, conversation)
            return state
        windows = [pool.window for pool in self._memory.pools]
        names = extent_names(ids, windows, recurrent=self._memory.slots is not None)
        record = StateRecord(ids.copy(), key, names, role, conversation)
        self._room.make_room(record)
        hold = self._share(lane, record)
        if hold is None:
            return None
        whose = set() if conversation is None or role is Role.SHARED else {conversation}
        born, now_s = self._tick(), self._clocks.wall_s()
        state = HeldState(record, hold, whose, born=born, used=born, used_s=now_s)
        self._held.add(state)
        self._room.losses.remove(key)
        self._room.counts.kept += 1
        return state

    def use(self, state: HeldState, conversation: str | None) -> None:
        """A state was resumed or kept again, by a conversation that begins with all of it."""
        state.used, state.used_s = self._tick(), self._clocks.wall_s()
        self._held.join(state, conversation)
        if self._archive is not None and state.written:
            self._archive.touch(state.record, conversation)

    def _swap(self, lane: Lane, ids: NDArray[np.int32]) -> None:
        """Have the lane hold kept pages in place of its own that are the same."""
        pages, state = max(
            ((common_rows(state.record.ids, ids) // PAGE_ROWS, state) for state in self._held),
            key=itemgetter(0),
            default=(0, None),
        )
        if state is not None and pages:
            lane.swap(first_pages(state.hold, pages))

    def _share(self, lane: Lane, record: StateRecord) -> LaneState | None:
        try:
            hold = lane.share(record.at)
        except DeviceLost as error:
            self._room.counts.failed += 1
            _LOG.info("state not kept tokens=%d reason=%r", record.at, error.sentence)
            return None
        if hold is None:
            self._room.counts.refused += 1
        return hold

    def _tick(self) -> int:
        self._ticks += 1
        return self._ticks


def _merged(one: Role, other: Role) -> Role:
    """What several conversations begin with stays that; else the latest use counts."""
    return Role.SHARED if Role.SHARED in (one, other) else other
