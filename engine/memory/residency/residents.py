"""Residents: what lies in memory by name, who uses it now, and in which version.

A resident is registered once under (owner, name); after its removal the same pair gets a new
epoch, so that an old key never means a new thing. It is used through holds: any number that read,
or one that writes. A hold ends at once or when a device's work has really ended (``Completion``);
where that work failed, nobody knows whether it still touches the bytes, so the hold stays until
the device was reset.

Everything runs on the engine thread, so nobody blocks: who cannot have a hold is told who has it
and comes again later. Copies of one thing in several pools are residents of their own; only
weights are copied, and those are never written, so there are no stale copies to drop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from engine.errors import DeviceLost, InvariantBroken
from engine.memory.leases import Lease
from engine.owner import Owner


class Access(Enum):
    """What a hold allows."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class ResidentKey:
    """One registration of one thing."""

    owner: str
    epoch: int
    name: str

    def __str__(self) -> str:
        return f"{self.owner}/{self.name} ({self.epoch})"


@dataclass(frozen=True, slots=True)
class Busy:
    """Somebody else has it: so many read it, or one writes."""

    key: ResidentKey
    readers: int
    is_written: bool


class Completion(Protocol):
    """Work on a device that was begun, such as an event recorded after a kernel."""

    def is_done(self) -> bool:
        """Whether it has ended; raises DeviceLost where that will never be known."""


@dataclass(slots=True, eq=False)
class _Resident:
    lease: Lease
    free: Callable[[], None]
    version: int = 0
    holds: list[Hold] = field(default_factory=list)

    def busy(self, key: ResidentKey, access: Access) -> Busy | None:
        written = any(hold.access is Access.WRITE for hold in self.holds)
        if written or (access is Access.WRITE and self.holds):
            return Busy(key, 0 if written else len(self.holds), written)
        return None


class Hold(Owner):
    """The right to read or write one resident, until ``close`` or until its work has ended."""

    def __init__(self, residents: Residents, key: ResidentKey, access: Access) -> None:
        self._residents = residents
        self._open = True
        self.key = key
        self.access = access

    def close(self) -> None:
        """Nothing touches the bytes any more; may be repeated."""
        if self._open:
            self._open = False
            self._residents.end(self)

    def withdraw(self) -> None:
        """End a hold that was not used: what was to be written is as it was."""
        if self._open:
            self._open = False
            self._residents.end(self, used=False)

    def close_after(self, completion: Completion) -> None:
        """End it when ``Residents.settle`` finds the work done."""
        if not self._open:
            raise InvariantBroken(f"A hold on {self.key} was closed twice.")
        self._open = False
        self._residents.end_after(self, completion)


class Residents(Owner):
    """Everything that is resident. Owns the leases and how to free their bytes."""

    def __init__(self) -> None:
        self._epochs: dict[tuple[str, str], int] = {}
        self._residents: dict[ResidentKey, _Resident] = {}
        self._ending: list[tuple[Hold, Completion]] = []
        self._failed: list[Hold] = []

    def register(
        self, owner: str, name: str, lease: Lease, free: Callable[[], None]
    ) -> ResidentKey:
        """Take over the bytes of a lease; ``free`` gives them back to the system.

        Raises:
            InvariantBroken: the owner has something of this name already.
        """
        epoch = self._epochs.get((owner, name), 0)
        if (key := ResidentKey(owner, epoch, name)) in self._residents:
            raise InvariantBroken(f"{key} was registered twice.")
        self._epochs[owner, name] = epoch
        self._residents[key] = _Resident(lease, free)
        return key

    def remove(self, key: ResidentKey) -> Busy | None:
        """Free a resident, unless somebody has it; a failure to free leaves its lease charged."""
        found = self._found(key)
        if (busy := found.busy(key, Access.WRITE)) is not None:
            return busy
        del self._residents[key]
        self._epochs[key.owner, key.name] = key.epoch + 1
        found.lease.release(found.free)
        return None

    def hold(self, key: ResidentKey, access: Access) -> Hold | Busy:
        """The right to use a resident, or who has it."""
        found = self._found(key)
        busy = found.busy(key, access)
        if busy is not None:
            return busy
        found.holds.append(Hold(self, key, access))
        return found.holds[-1]

    def version(self, key: ResidentKey) -> int:
        """How often a resident was written."""
        return self._found(key).version

    def end(self, hold: Hold, *, used: bool = True) -> None:
        """Take a hold off the books; only ``Hold`` calls this."""
        found = self._found(hold.key)
        found.holds.remove(hold)
        found.version += used and hold.access is Access.WRITE

    def end_after(self, hold: Hold, completion: Completion) -> None:
        """End a hold once its work has ended; only ``Hold`` calls this."""
        self._ending.append((hold, completion))

    def settle(self) -> tuple[ResidentKey, ...]:
        """End the holds whose work has ended; names those whose work has failed so far."""
        ending, self._ending = self._ending, []
        for hold, completion in ending:
            try:
                done = completion.is_done()
            except DeviceLost:
                self._failed.append(hold)
                continue
            if done:
                self.end(hold)
            else:
                self._ending.append((hold, completion))
        return tuple(hold.key for hold in self._failed)

    def reset(self) -> None:
        """The device was reset: nothing that was begun on it runs any more."""
        ended = [*(hold for hold, _ in self._ending), *self._failed]
        self._ending, self._failed = [], []
        for hold in ended:
            self.end(hold)

    def close(self) -> None:
        """Free everything; may be repeated.

        Raises:
            InvariantBroken: somebody still has something; nothing more is freed then.
        """
        self.settle()
        for key in list(self._residents):
            if self.remove(key) is not None:
                raise InvariantBroken(f"{key} is still in use.")

    def _found(self, key: ResidentKey) -> _Resident:
        if key not in self._residents:
            raise InvariantBroken(f"{key} is not there any more.")
        return self._residents[key]
