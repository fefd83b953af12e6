"""The ledger: every byte the engine takes is reserved here before it is allocated.

Owns the accounts of all pools, not the bytes. A lease goes reserve -> commit -> refund; it may
charge several pools, all or none. Used from the engine thread only.

Invariant, for each pool: reserved + committed <= capacity at the time of each reservation. A
later, smaller capacity revokes nothing; it only makes ``free_bytes`` zero until leases end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.errors import InvariantBroken, MemoryRefused
from engine.owner import Owner


@dataclass(frozen=True, slots=True)
class PoolCensus:
    """One pool as it stands; ``holders`` are (owner, bytes), largest first."""

    name: str
    capacity_bytes: int
    reserved_bytes: int
    committed_bytes: int
    holders: tuple[tuple[str, int], ...]

    @property
    def held_bytes(self) -> int:
        """Reserved and committed together."""
        return self.reserved_bytes + self.committed_bytes

    @property
    def free_bytes(self) -> int:
        """What a reservation may still take."""
        return max(0, self.capacity_bytes - self.held_bytes)


class Lease(Owner):
    """Bytes of one owner in one or more pools.

    Owns the credit until ``close``, which comes after the physical free and may be repeated.
    Used from the engine thread.
    """

    def __init__(self, ledger: Ledger, owner: str, bytes_by_pool: Mapping[str, int]) -> None:
        self._ledger = ledger
        self.owner = owner
        self._bytes = dict(bytes_by_pool)
        self._committed = False
        self._open = True

    @property
    def bytes_by_pool(self) -> Mapping[str, int]:
        """What the lease holds in each pool; empty once closed."""
        return self._bytes

    @property
    def is_committed(self) -> bool:
        """Whether the bytes are allocated, not only reserved."""
        return self._committed

    def commit(self, bytes_by_pool: Mapping[str, int] | None = None) -> None:
        """State what was really allocated; None is all that was reserved, the rest is refunded.

        Raises:
            InvariantBroken: committed before, closed, or more than was reserved.
        """
        if self._committed or not self._open:
            raise InvariantBroken(
                f"The lease of {self.owner} was committed twice or after its end."
            )
        real = self._bytes if bytes_by_pool is None else dict(bytes_by_pool)
        for pool, size in real.items():
            if not 0 <= size <= self._bytes.get(pool, 0):
                raise InvariantBroken(
                    f"{self.owner} allocated {size:,} bytes of {pool} "
                    f"but had reserved {self._bytes.get(pool, 0):,}."
                )
        self._bytes = dict(real)
        self._committed = True

    def close(self) -> None:
        """Refund everything; the bytes must be free by now."""
        if self._open:
            self._open = False
            self._bytes = {}
            self._ledger.forget(self)


class Ledger:
    """All pools of one engine. Owns the leases' accounts; closed last, when nothing is held."""

    def __init__(self, capacities: Mapping[str, int]) -> None:
        self._capacities = dict(capacities)
        self._leases: list[Lease] = []

    def reserve(self, owner: str, bytes_by_pool: Mapping[str, int]) -> Lease:
        """Reserve bytes in every named pool, or in none.

        Raises:
            MemoryRefused: a pool has less free; numbers: pool, needed_bytes, free_bytes, holders.
            InvariantBroken: a pool that the ledger does not know, or a negative size.
        """
        for pool, size in bytes_by_pool.items():
            if pool not in self._capacities or size < 0:
                raise InvariantBroken(f"{owner} asked for {size:,} bytes of a pool {pool!r}.")
            facts = self._facts(pool)
            if size > facts.free_bytes:
                raise refusal(owner, size, facts)
        lease = Lease(self, owner, bytes_by_pool)
        self._leases.append(lease)
        return lease

    def forget(self, lease: Lease) -> None:
        """Take a closed lease off the accounts; only ``Lease.close`` calls this."""
        self._leases.remove(lease)

    def set_capacity(self, pool: str, size_bytes: int) -> None:
        """Take over a new measurement; what is held stays held."""
        if pool not in self._capacities:
            raise InvariantBroken(f"The ledger has no pool {pool!r}.")
        self._capacities[pool] = size_bytes

    def pool(self, name: str) -> PoolCensus:
        """One pool as it stands."""
        return self._facts(name)

    def census(self) -> tuple[PoolCensus, ...]:
        """Every pool as it stands."""
        return tuple(self._facts(name) for name in self._capacities)

    def close(self) -> None:
        """Check that nothing is held any more; raises InvariantBroken naming who holds what."""
        held = [f"{lease.owner} {dict(lease.bytes_by_pool)}" for lease in self._leases]
        if held:
            raise InvariantBroken(f"Leases were left open: {'; '.join(held)}.")

    def _facts(self, pool: str) -> PoolCensus:
        reserved = committed = 0
        holders: dict[str, int] = {}
        for lease in self._leases:
            size = lease.bytes_by_pool.get(pool, 0)
            if size:
                holders[lease.owner] = holders.get(lease.owner, 0) + size
            if lease.is_committed:
                committed += size
            else:
                reserved += size
        ordered = sorted(holders.items(), key=lambda pair: (-pair[1], pair[0]))
        return PoolCensus(pool, self._capacities[pool], reserved, committed, tuple(ordered))


def refusal(owner: str, needed_bytes: int, facts: PoolCensus) -> MemoryRefused:
    """The error for a wish that a pool cannot hold, with who holds the rest."""
    holders = ", ".join(f"{name} {size:,}" for name, size in facts.holders) or "nobody"
    return MemoryRefused(
        f"{owner} needs {needed_bytes:,} bytes of {facts.name}; {facts.free_bytes:,} of "
        f"{facts.capacity_bytes:,} are free (held: {holders}).",
        pool=facts.name,
        needed_bytes=needed_bytes,
        free_bytes=facts.free_bytes,
        capacity_bytes=facts.capacity_bytes,
        holders=holders,
    )
