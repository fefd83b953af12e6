"""Resuming: what a kept state has of a prompt comes into a lane, in steps between rounds.

A state on the device is in the lane as soon as that is open. What lies lower is read by the
archive's threads and copied piece by piece into pages that the lane adopted; pages that some state
on the device has already are copied from there and not read. Nothing is computed on a lane, and
nothing of it kept, before its resume is done.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final

from engine.cache.device import PageDevice
from engine.cache.lane import Lane, LaneMemory
from engine.cache.pages import first_reached_page, pages_for
from engine.errors import DeviceLost, InvariantBroken
from engine.owner import Owner
from engine.protocol import Tier
from engine.states.border import Fetch, Piece
from engine.states.device.held import HeldState, HeldStates
from engine.states.lookup import Found
from engine.states.records import SLOT, ExtentName, extent_names

STEP_BYTES: Final = 64 << 20
"""Most bytes that one step copies, but for its first piece: some 10 ms."""
SLOWNESS: Final[tuple[Tier, ...]] = ("none", "device", "host", "disk")


class ResumeStatus(Enum):
    """How a resume stands; READING is the only status that another follows."""

    READING = "reading"
    DONE = "done"
    DAMAGED = "damaged"
    FAILED = "failed"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class PageCopy:
    """A page that a state on the device has, and where it goes."""

    group: int
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Course:
    """What a resume that is not done at once has to do.

    Attributes:
        targets: (part, page or slot) for every extent that ``fetch`` brings.
        ended: told once how it ended, before anybody else learns it.
    """

    device: PageDevice
    fetch: Fetch
    targets: Mapping[ExtentName, tuple[int, int]]
    copies: tuple[PageCopy, ...]
    ended: Callable[[ResumeStatus], None]

    def total_bytes(self) -> int:
        """Of everything that is copied into the lane."""
        parts = [part for part, _ in self.targets.values()]
        parts += [copy.group for copy in self.copies]
        device = self.device
        return sum(device.slot_bytes if part == SLOT else device.page_bytes(part) for part in parts)


class Resume(Owner):
    """One prompt's way to its kept state; closed by who began it, before the lane is.

    Attributes:
        at: rows of the prompt that need not be computed once it is done.
        tier: the slowest from which a part came; "none" where nothing was resumed.
        done_bytes: copied into the lane so far, of ``total_bytes``; 0 where the lane had all as it
            opened.
        read_bytes: those of them that came from host or disk.
        ms: what it took.
    """

    def __init__(
        self,
        at: int,
        tier: Tier,
        course: Course | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.at = at
        self.tier: Tier = tier
        self.status = ResumeStatus.DONE if course is None else ResumeStatus.READING
        self.done_bytes = self.read_bytes = 0
        self.total_bytes = 0 if course is None else course.total_bytes()
        self.ms = 0.0
        self._elapsed_ms = partial(_since_ms, clock, clock())
        self._course = course
        self._copies = deque(() if course is None else course.copies)
        self._missing = {} if course is None else dict(course.targets)
        self._pieces: deque[Piece] = deque()

    def step(self, most_bytes: int = STEP_BYTES) -> bool:
        """Copy what is there, up to ``most_bytes`` but at least one piece; whether there was any.

        Raises:
            DeviceLost: the resume is closed, and the lane good for nothing.
        """
        course = self._course
        if course is None:
            return False
        before = self.done_bytes
        try:
            self._copy(course, before + most_bytes)
        except DeviceLost:
            self._end(course, ResumeStatus.FAILED)
            raise
        if course.fetch.status == "damaged":
            self._end(course, ResumeStatus.DAMAGED)
        elif not self._copies and not self._missing:
            self._end(course, ResumeStatus.DONE)
        return self.done_bytes > before or self._course is None

    def close(self) -> None:
        """Stop reading and let go of what it held; may be repeated."""
        if self._course is not None:
            self._end(self._course, ResumeStatus.CLOSED)

    def _copy(self, course: Course, until_bytes: int) -> None:
        device = course.device
        while self._copies and self.done_bytes < until_bytes:
            copy = self._copies.popleft()
            device.copy_page(copy.group, copy.source, copy.target)
            self.done_bytes += device.page_bytes(copy.group)
        self._pieces.extend(course.fetch.ready())
        while self._pieces and self.done_bytes < until_bytes:
            self._take(course, self._pieces.popleft())

    def _take(self, course: Course, piece: Piece) -> None:
        """Copy one extent to where it belongs, and free its staging."""
        if piece.name not in self._missing:
            raise InvariantBroken("An extent was read that no resume asked for.")
        part, place = self._missing.pop(piece.name)
        if part == SLOT:
            course.device.write_slot(place, piece.content)
        else:
            course.device.write_page(part, place, piece.content)
        size = len(piece.content)
        course.fetch.done(piece.name)
        self.done_bytes += size
        self.read_bytes += size
        self.tier = max(self.tier, piece.tier, key=SLOWNESS.index)

    def _end(self, course: Course, status: ResumeStatus) -> None:
        """Close the fetch, let go of the sources, and tell the store; once."""
        self._course = None
        self.status = status
        self.ms = self._elapsed_ms()
        self._copies.clear()
        self._pieces.clear()
        course.fetch.close()
        course.ended(status)


def course_into(
    lane: Lane, memory: LaneMemory, found: Found, states: HeldStates
) -> tuple[Mapping[ExtentName, tuple[int, int]], tuple[PageCopy, ...], tuple[HeldState, ...]]:
    """Have a lane adopt what was found below the device, and tell how its pages get their bytes.

    Returns:
        Where each extent goes that must be read, what is copied instead, and the states that it is
        copied from.
    """
    ids = found.asked.ids[: found.at]
    have = states.pages_of(ids)
    windows = [pool.window for pool in memory.pools]
    names = iter(extent_names(ids, windows, recurrent=memory.slots is not None))
    targets: dict[ExtentName, tuple[int, int]] = {}
    copies: list[PageCopy] = []
    sources: dict[HeldState, None] = {}
    for group, run in enumerate(lane.adopt(found.at)):
        first = first_reached_page(windows[group], found.at)
        for index, name in zip(range(first, pages_for(found.at)), names, strict=False):
            if index < run.first:
                continue
            target = run.ids[index - run.first]
            if (group, index) in have:
                state, page = have[group, index]
                copies.append(PageCopy(group, page, target))
                sources[state] = None
            else:
                targets[name] = group, target
    if lane.recurrent_slot is not None:
        targets[next(names)] = SLOT, lane.recurrent_slot
    return targets, tuple(copies), tuple(sources)


def _since_ms(clock: Callable[[], int], began_ns: int) -> float:
    return max(0, clock() - began_ns) / 1e6
