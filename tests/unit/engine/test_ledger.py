"""The ledger refuses to the byte, charges several pools or none, and ends at zero."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.errors import InvariantBroken, MemoryRefused, StillHeld
from engine.memory.ledger import Admits, Ledger, StopAdmitting
from tests.helpers.census import lent

GIBIBYTE = 1 << 30


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with lent({"ram": 1000, "disk": 500}) as ledger:
        yield ledger


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
        with ledger.reserve("KV pages", {"ram": 300}):
            assert ledger.pool("ram").free_bytes == 0


def test_a_refusal_is_told_in_gib_and_never_looks_like_a_fit() -> None:
    with (
        lent({"gpu0": 12 * GIBIBYTE}) as ledger,
        ledger.reserve("weights", {"gpu0": 5 * GIBIBYTE + 1}),
        ledger.reserve("workspace", {"gpu0": GIBIBYTE}),
    ):
        with pytest.raises(MemoryRefused) as refused:
            ledger.reserve("KV pages", {"gpu0": 6 * GIBIBYTE})
        assert refused.value.sentence == (
            "KV pages need 6.0 GiB of GPU memory; 5.9 of 12.0 GiB are free. "
            "Held: weights 5.1, workspace 1.0."
        )
        with pytest.raises(MemoryRefused, match=r"One vision tower needs 6\.1 GiB of GPU memory"):
            ledger.reserve("One vision tower", {"gpu0": 6 * GIBIBYTE + 1})


def test_who_is_refused_although_nobody_holds_anything_is_told_so(ledger: Ledger) -> None:
    with pytest.raises(MemoryRefused) as refused:
        ledger.reserve("state", {"disk": 501})
    assert refused.value.sentence == "state needs 0.1 GiB of disk space; 0.0 of 0.0 GiB are free."
    assert refused.value.numbers["holders"] == "nobody"


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


def test_a_pool_that_is_not_there_is_our_own_mistake(ledger: Ledger) -> None:
    with pytest.raises(InvariantBroken, match="no pool"):
        ledger.set_capacity("gpu0", 1)
    with pytest.raises(InvariantBroken, match="no pool"):
        ledger.pool("gpu0")


def test_closing_while_something_is_held_names_the_holder_and_may_be_repeated() -> None:
    ledger = Ledger({"ram": 10})
    lease = ledger.reserve("KV pages", {"ram": 3})
    for _ in range(2):
        with pytest.raises(StillHeld, match="KV pages"):
            ledger.close()
    assert ledger.pool("ram").held_bytes == 3
    lease.close()
    ledger.close()


@pytest.mark.parametrize(("ceiling", "fits"), [(400, 400), (1000, 1000), (5000, 1000), (0, 0)])
def test_of_the_measured_capacity_and_a_person_s_ceiling_the_smaller_counts(
    ceiling: int, fits: int
) -> None:
    with lent({"ram": 1000}, ceilings={"ram": ceiling}) as ledger:
        assert ledger.pool("ram").capacity_bytes == fits
        with ledger.reserve("weights", {"ram": fits}), pytest.raises(MemoryRefused):
            ledger.reserve("weights", {"ram": 1})
        ledger.set_capacity("ram", 300)
        assert ledger.pool("ram").capacity_bytes == min(300, ceiling)


def test_a_byte_of_pinned_memory_is_a_byte_of_ram_and_takes_both_or_none() -> None:
    with lent({"pinned": 500, "ram": 1000}, behind={"pinned": "ram"}) as ledger:
        with ledger.reserve("kept states", {"pinned": 300, "ram": 50}) as lease:
            assert [pool.held_bytes for pool in ledger.census()] == [300, 350]
            lease.commit({"pinned": 100})
            assert [pool.held_bytes for pool in ledger.census()] == [100, 100]
        with ledger.reserve("weights", {"ram": 900}):
            with pytest.raises(MemoryRefused) as refused:
                ledger.reserve("kept states", {"pinned": 101})
            assert refused.value.numbers["pool"] == "ram"
            assert ledger.pool("pinned").held_bytes == 0


def test_one_allocation_of_unified_memory_charges_every_pool_behind() -> None:
    behind = {"gpu0": "pinned", "pinned": "ram"}
    with lent({"gpu0": 90, "pinned": 90, "ram": 90}, behind=behind) as ledger:
        assert ledger.charged({"gpu0": 7, "ram": 1}) == {"gpu0": 7, "pinned": 7, "ram": 8}
        with ledger.reserve("weights", {"gpu0": 90}), pytest.raises(MemoryRefused):
            ledger.reserve("anything", {"ram": 1})


def test_a_refresh_takes_over_every_pool_and_says_where_nothing_more_may_begin(
    ledger: Ledger,
) -> None:
    with ledger.reserve("weights", {"ram": 700}) as lease:
        lease.commit()
        assert ledger.refresh({"ram": 700, "disk": 1}) == Admits()
        assert ledger.refresh({"ram": 699}) == StopAdmitting(("ram",))
        assert (ledger.pool("ram").held_bytes, ledger.pool("ram").free_bytes) == (700, 0)
    assert ledger.refresh({"ram": 1000}) == Admits()


@pytest.mark.parametrize("wrong", [{"disk": 9, "gpu0": 9}, {"disk": 9, "ram": -1}])
def test_a_refresh_with_one_wrong_pool_changes_none(ledger: Ledger, wrong: dict[str, int]) -> None:
    with pytest.raises(InvariantBroken):
        ledger.refresh(wrong)
    assert [pool.capacity_bytes for pool in ledger.census()] == [1000, 500]


def test_a_refresh_amid_work_is_our_own_mistake_and_changes_nothing(ledger: Ledger) -> None:
    with (
        ledger.reserve("not allocated yet", {"ram": 1}),
        pytest.raises(InvariantBroken, match="amid work on ram"),
    ):
        ledger.refresh({"ram": 5})
    assert ledger.pool("ram").capacity_bytes == 1000
