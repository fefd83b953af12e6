"""The ledger: every byte the engine takes is reserved here before it is allocated.

Owns the accounts of all pools, not the bytes. A lease goes reserve -> commit -> refund; it may
charge several pools, all or none. Used from the engine thread only.

Invariant, for each pool: reserved + committed <= capacity at the time of each reservation. A
later, smaller capacity revokes nothing; it only makes ``free_bytes`` zero until leases end.

A pool may stand on another: pinned memory is RAM, and so is a GPU's where both are one. Whatever
charges such a pool charges the one behind it too, so a host mirror and its device copy are two
charges exactly where they are two allocations.

There is one engine process and one thread in it that takes memory. So there is no shared budget
with wake-ups across engines; other programs are seen in the next measurement.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from engine.errors import EngineError, InvariantBroken, MemoryRefused, StillHeld
from engine.memory.envelope import Demand, Envelope
from engine.memory.leases import Bytes, Credit, Holding, Lease
from engine.memory.sizes import gib, pool_words

__all__ = ["Credit", "Demand", "Envelope", "Lease", "Ledger", "PoolCensus", "refusal"]

FREE_FAILURES: Final = (EngineError, InvariantBroken, OSError, RuntimeError, BufferError)
"""What freeing memory may raise; anything else is a mistake of ours and is not held back."""
NONE: Final[Bytes] = MappingProxyType({})

_LOG = logging.getLogger(__name__)


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


@dataclass(frozen=True, slots=True)
class Admits:
    """After a refresh every pool holds what is in it."""


@dataclass(frozen=True, slots=True)
class StopAdmitting:
    """After a refresh these pools hold more than they should; nothing new until that ends."""

    pools: tuple[str, ...]


class Ledger:
    """All pools of one engine. Owns the leases' accounts; closed last, when nothing is held."""

    def __init__(
        self,
        capacities: Bytes,
        *,
        ceilings: Bytes = NONE,
        behind: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Begin with nothing held.

        Args:
            capacities: what may be held in each pool, as measured.
            ceilings: what a person allows besides; the smaller counts, and 0 turns a pool off.
            behind: pool -> the pool that its bytes are part of.
        """
        self._capacities = dict(capacities)
        self._ceilings = dict(ceilings)
        self._behind = dict(behind)
        self._holdings: list[Holding] = []
        self._quarantined: list[tuple[Lease, Callable[[], None]]] = []

    def reserve(self, owner: str, bytes_by_pool: Bytes) -> Lease:
        """Reserve bytes in every named pool, or in none.

        Raises:
            MemoryRefused: a pool has less free; numbers: pool, needed_bytes, free_bytes,
                capacity_bytes, holders.
            InvariantBroken: a pool that the ledger does not know, or a negative size.
        """
        return self.draw(owner, bytes_by_pool, None)

    def envelope(self, owner: str, demand: Demand) -> Envelope:
        """Reserve the whole peak of a piece of work, or nothing; raises as ``reserve``."""
        granted = self._admitted(owner, demand.peak(), {})
        envelope = Envelope(self, owner, granted)
        self._holdings.append(envelope)
        return envelope

    def draw(self, owner: str, bytes_by_pool: Bytes, envelope: Envelope | None) -> Lease:
        """Reserve, at the expense of an envelope's unused credit first; raises as ``reserve``."""
        credit = {} if envelope is None else envelope.bytes_by_pool
        lease = Lease(self, owner, self._admitted(owner, bytes_by_pool, credit))
        self._holdings.append(lease)
        return lease

    def charged(self, bytes_by_pool: Bytes) -> dict[str, int]:
        """The same with the pools that stand behind the named ones."""
        found = dict(bytes_by_pool)
        for pool, size in bytes_by_pool.items():
            while pool in self._behind:
                pool = self._behind[pool]  # noqa: PLW2901 - walks down to the last pool
                found[pool] = found.get(pool, 0) + size
        return found

    def forget(self, holding: Holding) -> None:
        """Take what was closed off the accounts; only leases and envelopes call this."""
        self._holdings.remove(holding)

    def quarantine(self, lease: Lease, free: Callable[[], None]) -> None:
        """Keep a lease whose bytes could not be freed; only ``Lease.release`` calls this."""
        self._quarantined.append((lease, free))
        _LOG.error("memory not freed owner=%r bytes=%s", lease.owner, dict(lease.bytes_by_pool))

    def retry_quarantined(self) -> tuple[str, ...]:
        """Free again what could not be freed, after a model was reset; names who still holds."""
        waiting, self._quarantined = self._quarantined, []
        for lease, free in waiting:
            try:
                free()
            except FREE_FAILURES:
                self.quarantine(lease, free)
            else:
                lease.freed()
        return tuple(lease.owner for lease, _ in self._quarantined)

    def set_capacity(self, pool: str, size_bytes: int) -> None:
        """Take over a new measurement; what is held stays held."""
        self._known(pool)
        self._capacities[pool] = size_bytes

    def refresh(self, capacities: Bytes) -> Admits | StopAdmitting:
        """Take over new measurements of several pools between two pieces of work, all or none.

        Revokes nothing: where owners hold more than the new capacity, the answer says so.

        Raises:
            InvariantBroken: something is reserved and not yet allocated, so that a measurement
                cannot say what is free; an unknown pool; a negative capacity.
        """
        for pool, size in capacities.items():
            self._known(pool)
            if size < 0:
                raise InvariantBroken(f"The capacity of {pool} was measured as {size:,} bytes.")
        waiting = [census.name for census in self.census() if census.reserved_bytes]
        if waiting:
            raise InvariantBroken(f"Capacities were measured amid work on {', '.join(waiting)}.")
        self._capacities |= capacities
        over = tuple(c.name for c in self.census() if c.held_bytes > c.capacity_bytes)
        return StopAdmitting(over) if over else Admits()

    def pool(self, name: str) -> PoolCensus:
        """One pool as it stands."""
        self._known(name)
        return self._facts(name)

    def census(self) -> tuple[PoolCensus, ...]:
        """Every pool as it stands."""
        return tuple(self._facts(name) for name in self._capacities)

    def close(self) -> None:
        """Check that nothing is held any more, after one more attempt at what was not freed.

        Raises:
            StillHeld: names who holds what. Everything stays on the accounts; close again later.
        """
        self.retry_quarantined()
        held = [f"{each.owner} {dict(each.bytes_by_pool)}" for each in self._holdings]
        if held:
            raise StillHeld(f"Leases were left open: {'; '.join(held)}.")

    def _known(self, pool: str) -> None:
        if pool not in self._capacities:
            raise InvariantBroken(f"The ledger has no pool {pool!r}.")

    def _admitted(self, owner: str, wish: Bytes, credit: Bytes) -> dict[str, int]:
        """What a wish charges, once every pool can hold it beside what is held."""
        for pool, size in wish.items():
            if pool not in self._capacities or size < 0:
                raise InvariantBroken(f"{owner} asked for {size:,} bytes of a pool {pool!r}.")
        charged = self.charged(wish)
        for pool, size in charged.items():
            facts = self._facts(pool)
            if size - credit.get(pool, 0) > facts.free_bytes:
                raise refusal(owner, size, facts, credit.get(pool, 0))
        return charged

    def _facts(self, pool: str) -> PoolCensus:
        reserved = committed = 0
        holders: dict[str, int] = {}
        for each in self._holdings:
            size = each.bytes_by_pool.get(pool, 0)
            if size:
                holders[each.owner] = holders.get(each.owner, 0) + size
            if each.is_committed:
                committed += size
            else:
                reserved += size
        ordered = sorted(holders.items(), key=lambda pair: (-pair[1], pair[0]))
        capacity = self._capacities[pool]
        capacity = min(capacity, self._ceilings.get(pool, capacity))
        return PoolCensus(pool, capacity, reserved, committed, tuple(ordered))


def refusal(
    owner: str, needed_bytes: int, facts: PoolCensus, credit_bytes: int = 0
) -> MemoryRefused:
    """The error for a wish that a pool cannot hold, with who holds the rest.

    Args:
        credit_bytes: what is free for this owner besides, in an envelope of its own.
    """
    free = facts.free_bytes + credit_bytes
    needs = "need" if owner.endswith("s") else "needs"
    held = ", ".join(f"{name} {gib(size, up=True)}" for name, size in facts.holders)
    return MemoryRefused(
        f"{owner} {needs} {gib(needed_bytes, up=True)} GiB of {pool_words(facts.name)}; "
        f"{gib(free)} of {gib(facts.capacity_bytes)} GiB are free."
        + (f" Held: {held}." if held else ""),
        pool=facts.name,
        needed_bytes=needed_bytes,
        free_bytes=free,
        capacity_bytes=facts.capacity_bytes,
        holders=", ".join(f"{name} {size:,}" for name, size in facts.holders) or "nobody",
    )
