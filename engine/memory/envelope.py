"""Envelopes: the whole peak of one piece of work, reserved before anything of it is allocated.

The peak of a pool is persistent + max(load, prefill, decode): what stays, and the widest of the
phases that never overlap. Leases drawn from an envelope use its credit, so nothing is counted
twice; what exceeds the credit is asked of the ledger like any other wish. Closing frees only what
is unused then, and the leases that were drawn stay charged.

Loading a model goes through one envelope. A request's own memory needs none: its pages are
promised from the page pools, its lane's slot and its rows of workspace were allocated at load.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from engine.errors import InvariantBroken
from engine.memory.leases import Accounts, Bytes, Lease
from engine.owner import Owner
from engine.protocol import PlanLine


@dataclass(frozen=True, slots=True)
class Demand:
    """What a piece of work needs, in bytes by pool.

    Attributes:
        persistent: what stays after it.
        load: beside that while it is being made.
        prefill, decode: beside that while it runs.
    """

    persistent: Bytes = field(default_factory=dict)
    load: Bytes = field(default_factory=dict)
    prefill: Bytes = field(default_factory=dict)
    decode: Bytes = field(default_factory=dict)

    def peak(self) -> dict[str, int]:
        """Persistent and the widest phase, for each pool."""
        phases = (self.load, self.prefill, self.decode)
        pools = dict.fromkeys([*self.persistent, *(pool for phase in phases for pool in phase)])
        return {
            pool: self.persistent.get(pool, 0) + max(phase.get(pool, 0) for phase in phases)
            for pool in pools
        }


def load_demand(lines: Sequence[PlanLine]) -> Demand:
    """What loading a plan needs: its lines, each charged to the pool that it names.

    A line of pinned memory names that pool only; the ledger charges RAM beside it.
    """
    taken: dict[str, int] = {}
    for line in lines:
        taken[line.pool] = taken.get(line.pool, 0) + line.bytes
    return Demand(persistent=taken)


class EnvelopeAccounts(Accounts, Protocol):
    """What an envelope asks of the ledger."""

    def draw(self, owner: str, bytes_by_pool: Bytes, envelope: Envelope | None) -> Lease:
        """Reserve, at the expense of an envelope's unused credit first."""


class Envelope(Owner):
    """Credit for one piece of work; ``reserve`` draws leases from it.

    Owns the unused rest until ``close``. Used from the engine thread.
    """

    def __init__(self, accounts: EnvelopeAccounts, owner: str, granted: Mapping[str, int]) -> None:
        self._accounts = accounts
        self._granted = dict(granted)
        self._drawn: list[Lease] = []
        self._open = True
        self.owner = owner

    @property
    def is_committed(self) -> bool:
        """Never: credit is only reserved."""
        return False

    @property
    def bytes_by_pool(self) -> Bytes:
        """The unused rest in each pool; nothing once closed.

        What a drawn lease gives back while the envelope is open comes back to it.
        """
        return {
            pool: max(0, size - sum(lease.bytes_by_pool.get(pool, 0) for lease in self._drawn))
            for pool, size in self._granted.items()
        }

    def reserve(self, owner: str, bytes_by_pool: Bytes) -> Lease:
        """Draw a lease.

        Raises:
            MemoryRefused: credit and the pool's free bytes together are less.
            InvariantBroken: the envelope is closed.
        """
        if not self._open:
            raise InvariantBroken(f"{owner} drew from the envelope of {self.owner} after its end.")
        lease = self._accounts.draw(owner, bytes_by_pool, self)
        self._drawn = [*(each for each in self._drawn if each.bytes_by_pool), lease]
        return lease

    def close(self) -> None:
        """Give back what is unused; may be repeated."""
        if self._open:
            self._open = False
            self._granted = {}
            self._drawn = []
            self._accounts.forget(self)
