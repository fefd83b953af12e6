"""Transfers: a thing is moved through a few staging slots that were reserved beforehand.

The slots exist before any memory is short, so something can be moved out under full pressure. A
transfer moves block by block: it reads a block exactly into a slot, has the slot copied to where
the thing shall lie, and takes the slot back when that copy has ended. The thing is published after
its last block; one that was cut short, cancelled or failed never is, and its target is dropped
only when no copy is under way any more. Where a copy failed, nobody knows that before the device
was reset, so slots and target stay until ``reset``. ``step`` never waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from engine.errors import DeviceLost, InvariantBroken
from engine.memory.leases import Lease
from engine.memory.residency.residents import Completion
from engine.owner import Owner


class TransferSlots(Owner):
    """Staging memory in slots of one size. Owns the slots and the lease they are charged to."""

    def __init__(self, lease: Lease, slots: Sequence[memoryview]) -> None:
        """Take over slots of equal size, and the lease that was reserved for them."""
        self._lease = lease
        self._count = len(slots)
        self._free = list(slots)
        self.slot_bytes = min(slot.nbytes for slot in slots)
        lease.commit()

    @property
    def free_count(self) -> int:
        """Slots that nobody has."""
        return len(self._free)

    def take(self) -> memoryview | None:
        """A slot; None while all are lent."""
        return self._free.pop() if self._free else None

    def give_back(self, slot: memoryview) -> None:
        """A slot that nothing touches any more."""
        self._free.append(slot)

    def close(self) -> None:
        """Free the slots; may be repeated.

        Raises:
            InvariantBroken: a transfer still has one.
        """
        if len(self._free) < self._count:
            lent = self._count - len(self._free)
            raise InvariantBroken(f"{lent} of {self._count} staging slots are still in use.")
        self._free, self._count = [], 0
        self._lease.close()


class Cargo(Protocol):
    """One thing to be moved."""

    @property
    def name(self) -> str:
        """What it is, in sentences."""

    @property
    def size_bytes(self) -> int:
        """All of it."""

    def read(self, offset: int, into: memoryview) -> int:
        """Read from ``offset`` on; returns the bytes read, which may be too few."""

    def copy(self, offset: int, block: memoryview) -> Completion:
        """Begin to copy a block to where it shall lie; may raise DeviceLost."""

    def publish(self) -> None:
        """All of it lies there: it may be used from now on."""

    def drop(self) -> None:
        """It will not come; free what was made for it."""


class TransferStatus(Enum):
    """How far a transfer is; the last three are final."""

    MOVING = "moving"
    ENDING = "ending"
    PUBLISHED = "published"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(slots=True, eq=False)
class _Copying:
    slot: memoryview
    completion: Completion


class Transfer(Owner):
    """Moves one cargo. Owns the slots that it has taken until their copies end."""

    def __init__(self, slots: TransferSlots, cargo: Cargo) -> None:
        self._slots = slots
        self._cargo = cargo
        self._offset = 0
        self._copying: list[_Copying] = []
        self._stuck: list[_Copying] = []
        self._status = TransferStatus.MOVING
        self._end = TransferStatus.PUBLISHED

    @property
    def status(self) -> TransferStatus:
        """How far it is; ENDING waits for copies under way, and is then FAILED or CANCELLED."""
        return self._status

    @property
    def is_over(self) -> bool:
        """Whether the status is final."""
        return self._status not in (TransferStatus.MOVING, TransferStatus.ENDING)

    def step(self) -> TransferStatus:
        """Take back slots, move on by as many blocks as slots are free; never waits."""
        self._take_back()
        while self._status is TransferStatus.MOVING and self._offset < self._cargo.size_bytes:
            slot = self._slots.take()
            if slot is None:
                break
            self._move(slot)
        if not (self._copying or self._stuck or self.is_over):
            self._finish()
        return self._status

    def cancel(self) -> None:
        """Do not publish it; the target is dropped by a ``step`` once no copy is under way."""
        self._give_up(TransferStatus.CANCELLED)

    def reset(self) -> None:
        """The device was reset: no copy runs any more, and what was not published never will be."""
        for each in (*self._copying, *self._stuck):
            self._slots.give_back(each.slot)
        self._copying, self._stuck = [], []
        if not self.is_over:
            self._give_up(TransferStatus.FAILED)
            self._finish()

    def close(self) -> None:
        """Check that it is over; may be repeated."""
        if not self.is_over:
            raise InvariantBroken(f"The transfer of {self._cargo.name} was left under way.")

    def _take_back(self) -> None:
        waiting, self._copying = self._copying, []
        for each in waiting:
            try:
                done = each.completion.is_done()
            except DeviceLost:
                self._stuck.append(each)
                self._give_up(TransferStatus.FAILED)
                continue
            if done:
                self._slots.give_back(each.slot)
            else:
                self._copying.append(each)

    def _move(self, slot: memoryview) -> None:
        """Read one block exactly, and begin its copy."""
        size = min(self._slots.slot_bytes, self._cargo.size_bytes - self._offset)
        block = slot[:size]
        try:
            whole = self._cargo.read(self._offset, block) == size
            completion = self._cargo.copy(self._offset, block) if whole else None
        except (OSError, DeviceLost):
            completion = None
        if completion is None:
            self._slots.give_back(slot)
            self._give_up(TransferStatus.FAILED)
            return
        self._copying.append(_Copying(slot, completion))
        self._offset += size

    def _give_up(self, end: TransferStatus) -> None:
        if self._status is TransferStatus.MOVING:
            self._status, self._end = TransferStatus.ENDING, end

    def _finish(self) -> None:
        if self._status is TransferStatus.ENDING:
            self._status = self._end
            self._cargo.drop()
        elif self._offset >= self._cargo.size_bytes:
            self._status = self._end
            self._cargo.publish()
