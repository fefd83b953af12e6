"""Whatever is asked in whatever order: no pool is over its capacity, nothing is taken in part."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import MemoryRefused
from engine.memory.envelope import Demand, Envelope
from engine.memory.ledger import Lease, Ledger
from tests.helpers.census import lent

CAPACITIES = {"gpu0": 97, "pinned": 41, "ram": 120, "disk": 13}
BEHIND = {"pinned": "ram"}


@dataclass
class Mix:
    """Leases and envelopes in any state, with a count of their bytes that is kept beside."""

    ledger: Ledger
    draw: random.Random
    leases: list[Lease] = field(default_factory=list)
    envelopes: list[Envelope] = field(default_factory=list)

    def wish(self) -> dict[str, int]:
        pools = self.draw.sample(sorted(CAPACITIES), self.draw.randint(1, 3))
        return {pool: self.draw.randint(0, CAPACITIES[pool] // 2) for pool in pools}

    def go_on(self) -> None:
        before = self.held()
        try:
            self.draw.choice((self.reserve, self.open, self.take, self.commit, self.end))()
        except MemoryRefused as refused:
            assert self.held() == before
            numbers = refused.numbers
            assert int(numbers["needed_bytes"]) > int(numbers["free_bytes"]) >= 0
        self.check()

    def reserve(self) -> None:
        self.leases.append(self.ledger.reserve("alone", self.wish()))

    def open(self) -> None:
        demand = Demand(self.wish(), self.wish(), self.wish())
        self.envelopes.append(self.ledger.envelope("whole", demand))

    def take(self) -> None:
        if self.envelopes:
            self.leases.append(self.draw.choice(self.envelopes).reserve("part", self.wish()))

    def commit(self) -> None:
        waiting = [lease for lease in self.leases if not lease.is_committed]
        if waiting:
            lease = self.draw.choice(waiting)
            size = lease.bytes_by_pool.get("gpu0", 0)
            lease.commit({"gpu0": self.draw.randint(0, size)} if size else None)

    def end(self) -> None:
        both: list[Lease | Envelope] = [*self.leases, *self.envelopes]
        if both:
            found = self.draw.choice(both)
            found.close()
            self.leases = [lease for lease in self.leases if lease is not found]
            self.envelopes = [each for each in self.envelopes if each is not found]

    def held(self) -> Mapping[str, int]:
        return {pool.name: pool.held_bytes for pool in self.ledger.census()}

    def check(self) -> None:
        """By an addition of its own, from what each lease and envelope says."""
        for pool in self.ledger.census():
            parts = [each.bytes_by_pool.get(pool.name, 0) for each in self.leases]
            parts += [each.bytes_by_pool.get(pool.name, 0) for each in self.envelopes]
            assert pool.held_bytes == sum(parts) == sum(size for _, size in pool.holders)
            assert 0 <= pool.held_bytes <= pool.capacity_bytes == CAPACITIES[pool.name]
            assert pool.free_bytes == pool.capacity_bytes - pool.held_bytes


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 60))
def test_any_mix_stays_within_every_pool_and_ends_at_zero(seed: int, steps: int) -> None:
    with lent(CAPACITIES, behind=BEHIND) as ledger:
        mix = Mix(ledger, random.Random(seed))
        for _ in range(steps):
            mix.go_on()
        for each in (*mix.leases, *mix.envelopes):
            each.close()


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(CAPACITIES)), st.integers(0, 60), min_size=1))
def test_the_exact_minimum_passes_and_a_byte_less_in_any_pool_is_refused(
    wish: dict[str, int],
) -> None:
    least = Ledger(CAPACITIES, behind=BEHIND).charged(wish)
    exact = {pool: least.get(pool, 0) for pool in CAPACITIES}
    with lent(exact, behind=BEHIND) as ledger, ledger.reserve("all", wish):
        assert all(pool.free_bytes == 0 for pool in ledger.census())
    for short in (pool for pool, size in least.items() if size):
        with lent(exact | {short: exact[short] - 1}, behind=BEHIND) as ledger:
            try:
                ledger.reserve("all", wish)
            except MemoryRefused as refused:
                found = refused.numbers
                assert (found["pool"], found["needed_bytes"]) == (short, exact[short])
                assert found["free_bytes"] == exact[short] - 1
            else:
                raise AssertionError(f"{wish} was taken with a byte less of {short}")
