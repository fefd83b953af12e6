"""Write-back: what of the device tier is worth keeping lower down, and its way there.

Worth keeping are, of each conversation, the newest end of its history; the start of its latest user
message where that costs little beside it; and each shared beginning once. A conversation of which a
request runs waits, since a newer state of it is about to come. Used from the engine thread only;
only copies to buffers, never waits for a file.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Final

from engine.cache.device import PageDevice
from engine.errors import DeviceLost
from engine.states.border import StateArchive
from engine.states.device.held import HeldState
from engine.states.records import SLOT, ExtentName, Role

STEP_BYTES: Final = 32 << 20
"""Most bytes that one step copies, but for its first extent: some 5 ms."""
CHEAP_REWIND_BYTES: Final = 32 << 20
PATIENCE_NS: Final = 1_000_000_000
"""How long a buffer is waited for although nothing is being written."""
FLUSH_S: Final = 2.0
PAUSE_S: Final = 0.005

_LOG = logging.getLogger(__name__)


class WriteBack:
    """Copies states of one loaded model to its archive.

    Attributes:
        failed: states that were given up because they could not be copied.
    """

    def __init__(
        self,
        device: PageDevice,
        archive: StateArchive,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._device = device
        self._archive = archive
        self._clock = clock
        self._refused_ns: int | None = None
        self._lost_once: set[bytes] = set()
        self.failed = 0

    def step(
        self,
        states: Collection[HeldState],
        running: frozenset[str],
        most_bytes: int = STEP_BYTES,
    ) -> bool:
        """Copy some of what the archive lacks; False where nothing waits or its queue is full."""
        left, worked = most_bytes, False
        for state in self._worth_writing(states, running):
            copied = self._copy(state, left)
            worked = worked or state.written or copied > 0
            left -= copied
            if not state.written or left <= 0:
                break
        return worked

    def has(self, state: HeldState) -> bool:
        """Whether the lower tiers hold a state."""
        return self._archive.tier(state.record) != "none"

    def save(self, state: HeldState, states: Collection[HeldState]) -> None:
        """Copy a state that is about to go, where it is worth it and there are buffers."""
        if any(state is one for one in self._worth_writing(states, frozenset())):
            self._copy(state, self._lacking_bytes(state))

    def flush(self, states: Collection[HeldState], limit_s: float = FLUSH_S) -> None:
        """Copy all that is worth it, waiting for buffers so long; for the model's end only."""
        until = time.monotonic() + limit_s
        while self._worth_writing(states, frozenset()):
            if self.step(states, frozenset()):
                continue
            if time.monotonic() >= until:
                return
            time.sleep(PAUSE_S)

    def waiting_bytes(self, states: Collection[HeldState]) -> int:
        """What of all states is still to be copied, those of running conversations too."""
        return sum(map(self._lacking_bytes, self._worth_writing(states, frozenset())))

    def _copy(self, state: HeldState, most_bytes: int) -> int:
        """Copy extents of a state, the last one beyond ``most_bytes``, and commit it when whole."""
        copied = 0
        for name, part, place in self._lacking(state):
            if copied and copied >= most_bytes:
                return copied
            size = self._size(part)
            buffer = self._archive.buffer(size)
            if buffer is None:
                self._refused(state)
                return copied
            self._refused_ns = None
            try:
                self._read(part, place, buffer)
            except DeviceLost as error:
                self._archive.withdraw(buffer)
                self._give_up(state, error.sentence)
                return copied
            self._archive.put(name, buffer)
            copied += size
        self._commit(state)
        return copied

    def _commit(self, state: HeldState) -> None:
        """Have the archive keep a state; once more from its pages where an extent went meanwhile.

        An extent that another state had may be deleted with that one between two steps.
        """
        for conversation in state.conversations or (None,):
            self._archive.commit(replace(state.record, conversation=conversation))
        key = state.record.key
        if self._archive.tier(state.record) != "none":
            state.written = True
            self._lost_once.discard(key)
        elif key in self._lost_once:
            self._lost_once.discard(key)
            self._give_up(state, "its extents go before it is whole")
        else:
            self._lost_once.add(key)

    def _refused(self, state: HeldState) -> None:
        """Wait, but not for ever for a buffer that nothing on its way to the disk holds back."""
        now_ns = self._clock()
        if self._refused_ns is None or self._archive.census().waiting_bytes:
            self._refused_ns = now_ns
        elif now_ns - self._refused_ns >= PATIENCE_NS:
            self._refused_ns = None
            self._give_up(state, "no buffer")

    def _give_up(self, state: HeldState, why: str) -> None:
        state.written = True
        self.failed += 1
        _LOG.info("state not written tokens=%d reason=%r", state.at, why)

    def _read(self, part: int, place: int, out: memoryview) -> None:
        if part == SLOT:
            self._device.read_slot(place, out)
        else:
            self._device.read_page(part, place, out)

    def _lacking(self, state: HeldState) -> Iterator[tuple[ExtentName, int, int]]:
        """(name, part, page or slot) of what the archive has not."""
        for name, (part, place) in zip(state.record.extents, state.places(), strict=True):
            if not self._archive.has(name):
                yield name, part, place

    def _lacking_bytes(self, state: HeldState) -> int:
        return sum(self._size(part) for _, part, _ in self._lacking(state))

    def _size(self, part: int) -> int:
        return self._device.slot_bytes if part == SLOT else self._device.page_bytes(part)

    def _worth_writing(
        self, states: Collection[HeldState], running: frozenset[str]
    ) -> list[HeldState]:
        """What is still to be written, the ends of histories first."""
        ends = _newest(states, Role.END, running)
        shared = [state for state in states if state.record.role is Role.SHARED]
        rewinds = [
            state
            for conversation, state in _newest(states, Role.REWIND, running).items()
            if conversation in ends and self._is_cheap(state, ends[conversation])
        ]
        found = dict.fromkeys([*ends.values(), *shared, *rewinds])
        return [state for state in found if not state.written]

    def _is_cheap(self, rewind: HeldState, end: HeldState) -> bool:
        theirs = frozenset(end.record.extents)
        own = [name.part for name in rewind.record.extents if name not in theirs]
        return sum(map(self._size, own)) <= CHEAP_REWIND_BYTES


def _newest(
    states: Collection[HeldState], role: Role, running: frozenset[str]
) -> dict[str, HeldState]:
    """The newest state of a role of each conversation that does not run."""
    found: dict[str, HeldState] = {}
    for state in states:
        if state.record.role is role:
            for conversation in state.conversations - running:
                if conversation not in found or state.born > found[conversation].born:
                    found[conversation] = state
    return found
