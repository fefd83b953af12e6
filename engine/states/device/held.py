"""The device tier: kept states whose pages and slots are held in the loaded model's own memory.

Owns page references and slots, never bytes: where a running stream and a state hold the same page,
it is one page. Used from the engine thread only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.cache.formats import PAGE_ROWS
from engine.cache.lane import LaneMemory, LaneState
from engine.cache.pages import PageRun
from engine.errors import InvariantBroken
from engine.owner import Owner
from engine.states.records import SLOT, StateRecord


@dataclass(slots=True, eq=False)
class HeldState:
    """A state on the device, and who wants it.

    Attributes:
        hold: what it holds of the lane it was cut from.
        conversations: the chats that begin with it; empty for a shared beginning.
        born, used: of the store's clock, when it was last kept and last resumed.
        used_s: when it was last used, seconds since 1970.
        written: whether the lower tiers were given it.
        pins: resumes that are about to take it or copy from it.
    """

    record: StateRecord
    hold: LaneState
    conversations: set[str] = field(default_factory=set)
    born: int = 0
    used: int = 0
    used_s: float = 0.0
    written: bool = False
    pins: int = 0

    @property
    def at(self) -> int:
        """Tokens that a stream which resumes here need not compute."""
        return self.record.at

    def places(self) -> list[tuple[int, int]]:
        """(part, page or slot) of every extent, in the record's order."""
        pages = [(group, page) for group, run in enumerate(self.hold.runs) for page in run.ids]
        return pages if self.hold.slot is None else [*pages, (SLOT, self.hold.slot)]


def common_rows(one: NDArray[np.int32], other: NDArray[np.int32]) -> int:
    """Ids that both begin with."""
    most = min(len(one), len(other))
    unequal = one[:most] != other[:most]
    return int(unequal.argmax()) if unequal.any() else most


def first_pages(hold: LaneState, page_count: int) -> LaneState:
    """A view of those of a state's pages that come before page ``page_count``, without its slot."""
    runs = tuple(PageRun(run.first, run.ids[: max(0, page_count - run.first)]) for run in hold.runs)
    return LaneState(page_count * PAGE_ROWS, runs)


class HeldStates(Owner):
    """Every kept state on the device, by key.

    Attributes:
        revision: another number whenever a state or a conversation came or went.
    """

    def __init__(self, memory: LaneMemory) -> None:
        self._memory = memory
        self._states: dict[bytes, HeldState] = {}
        self._leaving: list[HeldState] = []
        self.revision = 0

    def __iter__(self) -> Iterator[HeldState]:
        return iter(tuple(self._states.values()))

    def __len__(self) -> int:
        return len(self._states)

    def equal_to(self, ids: NDArray[np.int32], key: bytes) -> HeldState | None:
        """The state after exactly these ids."""
        found = self._states.get(key)
        return found if found is not None and np.array_equal(found.record.ids, ids) else None

    def add(self, state: HeldState) -> None:
        """Hold a state, whose memory is this tier's from now on."""
        if state.record.key in self._states:
            raise InvariantBroken(f"A state of {state.at} tokens was kept twice.")
        self._states[state.record.key] = state
        self.revision += 1

    def join(self, state: HeldState, conversation: str | None) -> bool:
        """One more conversation begins with a state; whether it is new to it."""
        if conversation is None or conversation in state.conversations:
            return False
        state.conversations.add(conversation)
        self.revision += 1
        return True

    def leave(self, state: HeldState, conversations: frozenset[str]) -> None:
        """Some conversations want a state no more."""
        state.conversations -= conversations
        self.revision += 1

    def drop(self, state: HeldState) -> None:
        """Keep a state no longer; its memory is free once no resume needs it."""
        del self._states[state.record.key]
        self.revision += 1
        if state.pins:
            self._leaving.append(state)
        else:
            self._release(state)

    def pin(self, state: HeldState) -> None:
        """Hold a state's memory until ``unpin``."""
        state.pins += 1

    def unpin(self, state: HeldState) -> None:
        """One resume less that needs the state."""
        state.pins -= 1
        if not state.pins and state in self._leaving:
            self._leaving.remove(state)
            self._release(state)

    def longest(self, ids: NDArray[np.int32], *, can_cut: bool) -> tuple[HeldState, int] | None:
        """The state that spares a prompt most rows, and how many; one row stays to be computed.

        Args:
            can_cut: whether a state also serves at each whole page inside it.
        """
        best: tuple[HeldState, int] | None = None
        for state in self._states.values():
            common = min(common_rows(state.record.ids, ids), len(ids) - 1)
            at = state.at if common == state.at else common // PAGE_ROWS * PAGE_ROWS * can_cut
            if at > (0 if best is None else best[1]):
                best = state, at
        return best

    def pages_of(self, ids: NDArray[np.int32]) -> dict[tuple[int, int], tuple[HeldState, int]]:
        """Who holds whole pages of a prefix: (group, page's index) -> (state, page)."""
        found: dict[tuple[int, int], tuple[HeldState, int]] = {}
        for state in self._states.values():
            pages = common_rows(state.record.ids, ids) // PAGE_ROWS
            for group, run in enumerate(first_pages(state.hold, pages).runs):
                for index, page in enumerate(run.ids, run.first):
                    found.setdefault((group, index), (state, page))
        return found

    def freed_by(self, group: int, states: Collection[HeldState]) -> int:
        """Pages of a group that would be free without ``states``."""
        held = Counter(page for state in states for page in state.hold.runs[group].ids)
        pool = self._memory.pools[group]
        return sum(1 for page, count in held.items() if count == pool.references(page))

    def page_count(self) -> int:
        """Pages held, each counted once."""
        return len({place for state in self._all() for place in state.places() if place[0] != SLOT})

    def slot_count(self) -> int:
        """Slots held."""
        return sum(state.hold.slot is not None for state in self._all())

    def held_bytes(self) -> int:
        """Bytes of all that is held, each page counted once."""
        return self._bytes({place for state in self._all() for place in state.places()})

    def bytes_of(self, state: HeldState) -> int:
        """Bytes of all that a state holds, shared with others or not."""
        return self._bytes(state.places())

    def close(self) -> None:
        """Release every state; may be repeated."""
        for state in self._all():
            self._release(state)
        self._states.clear()
        self._leaving.clear()

    def _bytes(self, places: Iterable[tuple[int, int]]) -> int:
        device = self._memory.device
        return sum(
            device.slot_bytes if part == SLOT else device.page_bytes(part) for part, _ in places
        )

    def _all(self) -> tuple[HeldState, ...]:
        return (*self._states.values(), *self._leaving)

    def _release(self, state: HeldState) -> None:
        state.hold.release(self._memory.pools, self._memory.slots)
