"""The ledger refuses to the byte, charges several pools or none, and ends at zero."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.errors import InvariantBroken, MemoryRefused
from engine.memory.ledger import Ledger


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    ledger = Ledger({"ram": 1000, "disk": 500})
    yield ledger
    ledger.close()
    assert all(pool.held_bytes == 0 for pool in ledger.census())


def test_the_last_byte_fits_and_one_more_is_refused_with_all_numbers(ledger: Ledger) -> None:
    with ledger.reserve("weights", {"ram": 700}):
        with pytest.raises(MemoryRefused) as refused:
            ledger.reserve("KV pages", {"ram": 301})
        assert refused.value.numbers == {
            "pool": "ram",
            "needed_bytes": 301,
            "free_bytes": 300,
            "capacity_bytes": 1000,
            "holders": "weights 700",
        }
        assert refused.value.sentence == (
            "KV pages need 0.1 GiB of RAM; 0.0 of 0.0 GiB are free. Held: weights 0.1."
        )
        with ledger.reserve("KV pages", {"ram": 300}):
            assert ledger.pool("ram").free_bytes == 0


def test_a_reservation_over_several_pools_takes_all_or_none(ledger: Ledger) -> None:
    with pytest.raises(MemoryRefused):
        ledger.reserve("state", {"ram": 10, "disk": 501})
    assert [pool.held_bytes for pool in ledger.census()] == [0, 0]
    with ledger.reserve("state", {"ram": 10, "disk": 500}):
        assert [pool.held_bytes for pool in ledger.census()] == [10, 500]


def test_commit_refunds_what_was_not_needed(ledger: Ledger) -> None:
    with ledger.reserve("weights", {"ram": 600, "disk": 100}) as lease:
        assert ledger.pool("ram").reserved_bytes == 600
        lease.commit({"ram": 450})
        assert lease.is_committed
        assert (ledger.pool("ram").reserved_bytes, ledger.pool("ram").committed_bytes) == (0, 450)
        assert ledger.pool("disk").held_bytes == 0


@pytest.mark.parametrize("real", [{"ram": 601}, {"disk": 1}, {"ram": -1}])
def test_committing_more_than_was_reserved_breaks_a_promise(
    ledger: Ledger, real: dict[str, int]
) -> None:
    with ledger.reserve("weights", {"ram": 600}) as lease:
        with pytest.raises(InvariantBroken, match="had reserved"):
            lease.commit(real)
        assert ledger.pool("ram").reserved_bytes == 600


def test_a_lease_commits_once_and_only_while_open(ledger: Ledger) -> None:
    lease = ledger.reserve("weights", {"ram": 5})
    lease.commit()
    with pytest.raises(InvariantBroken, match="twice"):
        lease.commit()
    lease.close()
    lease.close()
    late = ledger.reserve("weights", {"ram": 5})
    late.close()
    with pytest.raises(InvariantBroken, match="after its end"):
        late.commit()


@pytest.mark.parametrize(("pool", "size"), [("gpu0", 1), ("ram", -1)])
def test_a_senseless_reservation_breaks_a_promise(ledger: Ledger, pool: str, size: int) -> None:
    with pytest.raises(InvariantBroken, match="asked for"):
        ledger.reserve("weights", {pool: size})


def test_holders_are_summed_by_owner_largest_first(ledger: Ledger) -> None:
    with (
        ledger.reserve("b", {"ram": 5}),
        ledger.reserve("a", {"ram": 5}),
        ledger.reserve("b", {"ram": 6}),
        ledger.reserve("nothing", {"ram": 0}),
    ):
        assert ledger.pool("ram").holders == (("b", 11), ("a", 5))


def test_a_smaller_capacity_revokes_nothing_but_admits_nothing(ledger: Ledger) -> None:
    with ledger.reserve("weights", {"ram": 700}):
        ledger.set_capacity("ram", 600)
        assert ledger.pool("ram").free_bytes == 0
        with pytest.raises(MemoryRefused):
            ledger.reserve("more", {"ram": 1})
    ledger.reserve("again", {"ram": 600}).close()
    with pytest.raises(InvariantBroken, match="no pool"):
        ledger.set_capacity("gpu0", 1)


def test_closing_while_something_is_held_names_the_holder() -> None:
    ledger = Ledger({"ram": 10})
    lease = ledger.reserve("KV pages", {"ram": 3})
    with pytest.raises(InvariantBroken, match="KV pages"):
        ledger.close()
    lease.close()
    ledger.close()
