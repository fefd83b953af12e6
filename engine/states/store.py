"""The store of kept prompt states: look up, keep, pin, evict.

A state is the engine's condition after exactly ``at`` prompt tokens: the exact ids, references to
the pages that hold their K and V, and a copy of the recurrent state in a slot of its own where the
model has one. It resumes at its own position only, for a prompt that begins with the same ids and
is longer. Owns page references and slots, never bytes: where a running stream and a state hold the
same page, it is one page. Used from the engine thread only.

Eviction is least recently used first and skips pinned states; it happens when pages or slots are
needed.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.cache.formats import PAGE_ROWS
from engine.cache.lane import Lane, LaneRefused, LaneState, PagesRefused, SlotsRefused
from engine.cache.pages import PagePool, first_reached_page
from engine.cache.slots import SlotPool
from engine.errors import InvariantBroken

REMEMBERED_EVICTIONS: Final = 1024


@dataclass(frozen=True, slots=True)
class StoreCensus:
    """What the store holds and has done since it opened; pages are counted once each."""

    states: int
    pages: int
    slots: int
    pinned: int
    kept: int
    refused: int
    evicted: int


@dataclass(slots=True, eq=False)
class KeptState:
    """The condition after ``len(ids)`` tokens and what it holds of the lane it was cut from."""

    ids: NDArray[np.int32]
    held: LaneState
    pins: int = 0

    @property
    def at(self) -> int:
        """Tokens that a stream which resumes here need not compute."""
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Found:
    """The longest state that a prompt can resume, or the reason word why there is none.

    Reasons: "short-prompt" no grid point inside it; "nothing-kept" the store is empty; "evicted"
    a state that fitted had to go; "no-common-prefix" what is kept begins otherwise.
    """

    state: KeptState | None
    reason: str | None


class StateStore:
    """Kept states over the pools of one loaded model; closed before the pools are dropped."""

    def __init__(
        self, pools: Sequence[PagePool], grid_rows: int, slots: SlotPool | None = None
    ) -> None:
        self._pools = tuple(pools)
        self._slots = slots
        self._grid_rows = grid_rows
        self._states: OrderedDict[bytes, KeptState] = OrderedDict()
        self._evictions: OrderedDict[bytes, None] = OrderedDict()
        self._kept = self._refused = self._evicted = 0

    def find(self, ids: NDArray[np.int32]) -> Found:
        """The longest kept state that is a proper prefix of a prompt."""
        digests = list(self._digests(ids, len(ids) - 1))
        for at, digest in reversed(digests):
            state = self._states.get(digest)
            if state is not None and np.array_equal(state.ids, ids[:at]):
                self._states.move_to_end(digest)
                return Found(state, None)
        if not digests:
            return Found(None, "short-prompt")
        if any(digest in self._evictions for _, digest in digests):
            return Found(None, "evicted")
        return Found(None, "no-common-prefix" if self._states else "nothing-kept")

    @contextmanager
    def pinned(self, state: KeptState | None) -> Iterator[None]:
        """Hold a state back from eviction, as between finding and resuming it."""
        if state is None:
            yield
            return
        state.pins += 1
        try:
            yield
        finally:
            state.pins -= 1

    def keep(self, lane: Lane, ids: NDArray[np.int32]) -> bool:
        """Keep the state after ``ids``, which the lane has computed; False where it cannot be.

        Args:
            ids: the prompt's first tokens, a multiple of the grid long; where the model has a
                recurrent state, all that the lane has computed.
        """
        if len(ids) % self._grid_rows or not len(ids):
            raise InvariantBroken(f"A state of {len(ids)} tokens is not on the grid.")
        digest = list(self._digests(ids, len(ids)))[-1][1]
        if digest in self._states:
            self._states.move_to_end(digest)
            return True
        held = lane.share(len(ids)) if self._make_room(len(ids)) else None
        if held is None:
            self._refused += 1
            return False
        self._states[digest] = KeptState(ids.copy(), held)
        self._evictions.pop(digest, None)
        self._kept += 1
        return True

    def reclaim(self, refused: LaneRefused) -> bool:
        """Evict until there is what was refused; nothing where that cannot succeed."""
        if isinstance(refused, SlotsRefused):
            return self._reclaim_slot()
        pool = self._pools[refused.group]
        if pool.available_pages + self._reclaimable(refused.group) < refused.needed_pages:
            return False
        while not pool.fits(refused.needed_pages):
            self._evict_oldest()
        return True

    def census(self) -> StoreCensus:
        """The store as it stands."""
        held = {
            (group, page)
            for state in self._states.values()
            for group, run in enumerate(state.held.runs)
            for page in run.ids
        }
        pinned = sum(1 for state in self._states.values() if state.pins)
        return StoreCensus(
            states=len(self._states),
            pages=len(held),
            slots=sum(state.held.slot is not None for state in self._states.values()),
            pinned=pinned,
            kept=self._kept,
            refused=self._refused,
            evicted=self._evicted,
        )

    def close(self) -> None:
        """Release every state; may be repeated."""
        while self._states:
            self._evict(next(iter(self._states)))

    def _make_room(self, at: int) -> bool:
        """Evict for what a state of ``at`` tokens takes anew; False where no slot can be had."""
        if self._slots is not None and not self._reclaim_slot():
            return False
        for group, pool in enumerate(self._pools):
            if pool.window is not None:
                pages = at // PAGE_ROWS - first_reached_page(pool.window, at)
                self.reclaim(PagesRefused(group, pages, pool.available_pages))
        return True

    def _reclaim_slot(self) -> bool:
        """Evict at most one state so that a slot is free."""
        if self._slots is None:
            raise InvariantBroken("A slot was refused by a model that has none.")
        if self._slots.free_slots:
            return True
        if all(state.pins for state in self._states.values()):
            return False
        self._evict_oldest()
        return True

    def _evict_oldest(self) -> None:
        self._evict(next(key for key, state in self._states.items() if not state.pins))

    def _evict(self, digest: bytes) -> None:
        self._states.pop(digest).held.release(self._pools, self._slots)
        self._evicted += 1
        self._evictions[digest] = None
        if len(self._evictions) > REMEMBERED_EVICTIONS:
            self._evictions.popitem(last=False)

    def _reclaimable(self, group: int) -> int:
        """Pages of a group that only states hold which may be evicted."""
        held = Counter(
            page
            for state in self._states.values()
            if not state.pins
            for page in state.held.runs[group].ids
        )
        pool = self._pools[group]
        return sum(1 for page, count in held.items() if count == pool.references(page))

    def _digests(self, ids: NDArray[np.int32], most: int) -> Iterator[tuple[int, bytes]]:
        """(at, digest of the first ``at`` ids) for each grid point up to ``most``."""
        digest = blake2b(digest_size=16)
        for at in range(self._grid_rows, most + 1, self._grid_rows):
            digest.update(ids[at - self._grid_rows : at].astype("<i4").tobytes())
            yield at, digest.digest()
