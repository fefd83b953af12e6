"""The store of kept prompt states over three tiers: look up, resume, keep, evict, write back.

A state is the engine's condition after exactly ``at`` prompt tokens: the exact ids, the pages that
hold their K and V, and the recurrent state where the model has one. It resumes at its own position,
for a prompt that begins with the same ids and is longer; where every layer attends to all rows it
serves at each whole page inside it, too. On the device it holds references to pages, so that a
stream and a state share them; below the device lies the archive (``engine.states.border``), which
may be absent. Used from the engine thread only.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from engine.cache.lane import Lane, LaneMemory, LaneRefused
from engine.errors import InvariantBroken
from engine.owner import Owner
from engine.protocol import ChatTier, StateFacts
from engine.states.device.evicting import Eviction
from engine.states.device.held import HeldState, HeldStates
from engine.states.device.keeping import Clocks, Keeping
from engine.states.lookup import Asked, Found, Lookup, LowerTiers
from engine.states.overview import Counts, StoreCensus, chat_tiers, state_facts
from engine.states.records import Role, StateRecord, prefix_digest
from engine.states.resume import Course, Resume, ResumeStatus, course_into
from engine.states.write_back import STEP_BYTES, WriteBack

_LOG = logging.getLogger(__name__)


class StateStore(Owner):
    """Kept states of one loaded model; closed before its archive and its memory are.

    Args:
        grid_rows: at whose multiples a state may be kept.
        lower: None where nothing is kept below the device.
    """

    def __init__(
        self,
        memory: LaneMemory,
        grid_rows: int,
        lower: LowerTiers | None = None,
        clocks: Clocks | None = None,
    ) -> None:
        self._memory = memory
        self._grid_rows = grid_rows
        self._lower = lower
        self._clocks = clocks or Clocks()
        self._held = HeldStates(memory)
        self._lookup = Lookup(memory, grid_rows, self._held, lower)
        self._counts = Counts()
        clock = self._clocks.monotonic_ns
        self._writer = None if lower is None else WriteBack(memory.device, lower.archive, clock)
        losses = self._lookup.losses
        self._room = Eviction(memory, self._held, self._writer, losses, self._counts)
        archive = None if lower is None else lower.archive
        self._keeping = Keeping(memory, self._held, self._room, archive, self._clocks)
        self._told: tuple[tuple[int, int], tuple[ChatTier, ...]] = ((0, 0), ())
        if lower is not None:
            self._rank(pinned={facts.conversation for facts in lower.facts if facts.pinned})

    def find(
        self, ids: NDArray[np.int32], conversation: str | None = None, history_tokens: int = 0
    ) -> Found:
        """The longest state of all tiers that a prompt can resume; the quickest of equal ones.

        Args:
            history_tokens: what of the prompt an earlier turn may have left behind: up to the start
                of its last user message. Less than that is little, and gets a reason.
        """
        return self._lookup.find(Asked(ids, conversation, history_tokens))

    @contextmanager
    def pinned(self, found: Found) -> Iterator[None]:
        """Hold what was found back from eviction until a lane has it."""
        if found.state is None:
            yield
            return
        self._held.pin(found.state)
        try:
            yield
        finally:
            self._held.unpin(found.state)

    def begin_resume(self, found: Found, lane: Lane) -> Resume:
        """Bring what was found into a lane that was opened with ``found.held``.

        To be called for every stream, with nothing found too: it counts. Until the resume is done
        the lane computes nothing; where it is damaged, the lane is to be closed and the prompt
        looked up again. The caller closes the resume before the lane.

        Raises:
            DeviceLost: nothing is left to be closed but the lane.
        """
        if found.reason is not None:
            self._counts.misses[found.reason] += 1
        clock = self._clocks.monotonic_ns
        if found.hit is None:
            if found.state is not None:
                self._counts.hits["device"] += 1
                self._keeping.use(found.state, _owner(found, found.state.record))
            return Resume(found.at, found.tier, clock=clock)
        assert self._lower is not None
        targets, copies, sources = course_into(lane, self._memory, found, self._held)
        for state in sources:
            self._held.pin(state)
        fetch = self._lower.archive.fetch(found.hit.record, tuple(targets))
        ended = partial(self._resumed, found, lane, sources)
        course = Course(self._memory.device, fetch, targets, copies, ended)
        return Resume(found.at, "device", course, clock)

    def reserve(self, ids: NDArray[np.int32], marks: Mapping[int, Role]) -> dict[int, Role]:
        """Those of a prompt's marks for which there can be room; the others are refused now.

        Room is given to ends of histories first, then to starts of user messages.
        """
        order = sorted(marks.items(), key=lambda mark: (list(Role).index(mark[1]), mark[0]))
        kept = [at for at, _ in order if self._held.equal_to(ids[:at], prefix_digest(ids[:at]))]
        found = self._room.roomy((at, role) for at, role in order if at not in kept)
        self._counts.refused += len(order) - len(kept) - len(found)
        return dict(sorted([*found, *((at, marks[at]) for at in kept)]))

    def keep(
        self,
        lane: Lane,
        ids: NDArray[np.int32],
        role: Role = Role.END,
        conversation: str | None = None,
    ) -> bool:
        """Keep the state after ``ids``, which the lane has computed; False where it cannot be.

        Where a state holds the same pages already, the lane takes those and gives up its own.

        Args:
            ids: the prompt's first tokens, a multiple of the grid long; where the model has a
                recurrent state, all that the lane has computed.

        Raises:
            DeviceLost: the lane could not be given a kept state's pages; it has its own still.
        """
        if len(ids) % self._grid_rows or not len(ids):
            raise InvariantBroken(f"A state of {len(ids)} tokens is not on the grid.")
        return self._keeping.keep(lane, ids, role, conversation) is not None

    def reclaim(self, refused: LaneRefused, *, only_spare: bool = False) -> bool:
        """Evict until there is what a request was refused; nothing where that cannot succeed.

        Args:
            only_spare: at no conversation's cost: evict only what the lower tiers hold too.
        """
        if only_spare:
            return self._room.reclaim_spare(refused)
        return self._room.reclaim(refused, for_request=True)

    def write_step(self, most_bytes: int = STEP_BYTES) -> bool:
        """Copy a bounded piece of what the lower tiers lack; False where nothing can be done now.

        Conversations of which a request runs wait; see ``set_running``.
        """
        if self._writer is None:
            return False
        return self._writer.step(tuple(self._held), self._room.standing.running, most_bytes)

    def set_open(self, conversations: Iterable[str]) -> None:
        """States of these go only where no other can."""
        self._room.standing = replace(self._room.standing, open=frozenset(conversations))

    def set_running(self, conversations: Iterable[str]) -> None:
        """Requests or background passes of these run: neither evict nor write their states yet."""
        self._room.standing = replace(self._room.standing, running=frozenset(conversations))

    def pin(self, conversation: str, *, pinned: bool) -> None:
        """A person pins a conversation, or no more; the library is told apart from this."""
        before = self._room.standing.pinned
        self._rank(pinned=before | {conversation} if pinned else before - {conversation})

    def clear(self, conversations: Iterable[str] | None) -> None:
        """Forget the states of conversations on the device, None of all."""
        gone = None if conversations is None else frozenset(conversations)
        for state in self._held:
            if gone is None:
                self._held.drop(state)
            elif state.conversations & gone:
                self._held.leave(state, gone)
                if not state.conversations and state.record.role is not Role.SHARED:
                    self._held.drop(state)

    def tiers(self) -> tuple[ChatTier, ...] | None:
        """From where each conversation can be resumed; None where that is as it was told last."""
        archive = None if self._lower is None else self._lower.archive
        revisions = (self._held.revision, 0 if archive is None else archive.revision)
        if revisions == self._told[0]:
            return None
        found = chat_tiers(self._held, () if archive is None else archive.chats())
        before, self._told = self._told[1], (revisions, found)
        return None if found == before else found

    def facts(self, below: Iterable[StateFacts] = ()) -> tuple[StateFacts, ...]:
        """What is kept of every conversation, the device's states among the library's."""
        states = tuple(self._held)
        sizes = [self._held.bytes_of(state) for state in states]
        model = "" if self._lower is None else self._lower.model
        return state_facts(states, sizes, below, model, self._room.standing.pinned)

    def census(self) -> StoreCensus:
        """The store as it stands."""
        counts = self._counts
        below = None if self._lower is None else self._lower.archive.census()
        waiting = 0 if below is None else below.waiting_bytes
        if self._writer is not None:
            waiting += self._writer.waiting_bytes(tuple(self._held))
        return StoreCensus(
            states=len(self._held),
            pages=self._held.page_count(),
            slots=self._held.slot_count(),
            pinned=sum(1 for state in self._held if state.pins),
            device_bytes=self._held.held_bytes(),
            host_bytes=0 if below is None else below.host_bytes,
            disk_bytes=0 if below is None else below.disk_bytes,
            waiting_bytes=waiting,
            kept=counts.kept,
            evicted=counts.evicted,
            refused=counts.refused,
            failed=counts.failed + (0 if self._writer is None else self._writer.failed),
            damaged=counts.damaged,
            hits=tuple(sorted(counts.hits.items())),
            misses=tuple(sorted(counts.misses.items())),
        )

    def close(self) -> None:
        """Copy down what waits, then release every state; may be repeated."""
        if self._writer is not None:
            self._writer.flush(tuple(self._held))
        self._held.close()

    def _resumed(
        self, found: Found, lane: Lane, sources: tuple[HeldState, ...], status: ResumeStatus
    ) -> None:
        """A resume from below the device ended: keep on the device what it brought, or note why."""
        for state in sources:
            self._held.unpin(state)
        assert self._lower is not None and found.hit is not None
        archive, record = self._lower.archive, found.hit.record
        ids = found.asked.ids[: found.at]
        match status:
            case ResumeStatus.DONE:
                self._counts.hits[found.tier] += 1
                owner = _owner(found, record)
                archive.touch(record, owner)
                if found.at == record.at:
                    self._keep_resumed(lane, record, owner)
            case ResumeStatus.DAMAGED:
                self._counts.damaged += 1
                archive.drop(record.key)
                self._lookup.losses.add(prefix_digest(ids), "damaged")
                _LOG.info("state damaged tokens=%d tier=%s", record.at, found.tier)
            case ResumeStatus.FAILED:
                self._counts.failed += 1
            case _:
                pass

    def _keep_resumed(self, lane: Lane, record: StateRecord, owner: str | None) -> None:
        """Hold on the device, too, what just came from below."""
        owner = owner or record.conversation
        state = self._keeping.keep(lane, record.ids, record.role, owner)
        if state is not None:
            state.written = True

    def _rank(self, pinned: Iterable[str | None]) -> None:
        names = frozenset(name for name in pinned if name is not None)
        self._room.standing = replace(self._room.standing, pinned=names)


def _owner(found: Found, record: StateRecord) -> str | None:
    """The conversation that begins with all of a state; a shared beginning is nobody's."""
    is_whole = found.at == record.at and record.role is not Role.SHARED
    return found.asked.conversation if is_whole else None
