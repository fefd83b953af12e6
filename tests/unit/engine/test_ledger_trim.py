"""What is given up for a wish goes in a fixed order, and not a byte more than it needs."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from engine.memory.ledger import Ledger
from engine.memory.trim import Trimmers, TrimStep
from tests.helpers.census import lent
from tests.helpers.residency import Spare


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with lent({"ram": 1000, "disk": 100}) as ledger:
        yield ledger


def spare(ledger: Ledger, step: TrimStep, *, count: int = 2, last_used: int = 0) -> Spare:
    leases = [ledger.reserve(step.name, {"ram": 50}) for _ in range(count)]
    return Spare(step, leases, last_used)


def test_the_order_is_the_contract_s_whatever_the_order_of_registration(ledger: Ledger) -> None:
    order: list[TrimStep] = []
    trimmers = Trimmers()
    steps = list(TrimStep)
    random.Random(3).shuffle(steps)
    spares = []
    for step in steps:
        made = spare(ledger, step)
        made.asked = lambda _pool, _size, step=step: order.append(step)  # type: ignore[misc]
        trimmers.register(made)
        spares.append(made)
    held = ledger.pool("ram").held_bytes
    found = trimmers.make_room(ledger, {"ram": 1000})
    assert found.fits
    assert list(found.steps) == order == list(TrimStep)
    assert (held, ledger.pool("ram").held_bytes) == (700, 0)
    assert [step.name for step in TrimStep] == [
        "PREFETCH",
        "IDLE_WORKSPACES",
        "WEIGHT_CACHES",
        "COLD_STATES",
        "SMALLER_CHUNK",
        "QUEUE",
        "PAUSE",
    ]


def test_within_a_step_who_was_used_longest_ago_goes_first(ledger: Ledger) -> None:
    trimmers = Trimmers()
    newer = spare(ledger, TrimStep.WEIGHT_CACHES, last_used=9)
    older = spare(ledger, TrimStep.WEIGHT_CACHES, last_used=4)
    for each in (newer, older):
        trimmers.register(each)
    assert trimmers.make_room(ledger, {"ram": 900}).fits
    assert (len(newer.leases), len(older.leases)) == (2, 0)
    for lease in newer.leases:
        lease.close()


def test_nobody_is_asked_for_a_wish_that_fits_to_the_byte(ledger: Ledger) -> None:
    trimmers = Trimmers()
    kept = spare(ledger, TrimStep.PREFETCH, count=1)
    trimmers.register(kept)
    assert trimmers.make_room(ledger, {"ram": 950, "disk": 100}).steps == ()
    assert trimmers.make_room(ledger, {"ram": 951}).steps == (TrimStep.PREFETCH,)
    assert not kept.leases


def test_a_wish_that_no_trimming_makes_fit_says_what_is_missing(ledger: Ledger) -> None:
    trimmers = Trimmers()
    trimmers.register(spare(ledger, TrimStep.COLD_STATES))
    with ledger.reserve("weights", {"ram": 400}):
        found = trimmers.make_room(ledger, {"ram": 601, "disk": 101})
    assert (found.fits, found.missing) == (False, {"ram": 1, "disk": 1})


def test_a_smaller_chunk_makes_the_wish_smaller(ledger: Ledger) -> None:
    trimmers = Trimmers()
    chunk = Spare(TrimStep.SMALLER_CHUNK, [], smaller=300)
    trimmers.register(chunk)
    with ledger.reserve("weights", {"ram": 800}):
        assert trimmers.make_room(ledger, {"ram": 500}).fits
        assert trimmers.make_room(ledger, {"ram": 501}).missing == {"ram": 1}


def test_a_pool_that_shrank_below_its_owners_comes_down_to_its_capacity_first(
    ledger: Ledger,
) -> None:
    trimmers = Trimmers()
    cache = spare(ledger, TrimStep.WEIGHT_CACHES, count=4)
    trimmers.register(cache)
    ledger.set_capacity("ram", 149)
    assert trimmers.make_room(ledger, {"ram": 0}).fits
    assert ledger.pool("ram").held_bytes == 100
    for lease in cache.leases:
        lease.close()


def test_who_is_withdrawn_is_asked_no_more(ledger: Ledger) -> None:
    trimmers = Trimmers()
    kept = spare(ledger, TrimStep.PREFETCH)
    trimmers.register(kept)
    trimmers.withdraw(kept)
    assert trimmers.make_room(ledger, {"ram": 1000}).missing == {"ram": 100}
    for lease in kept.leases:
        lease.close()


def test_a_wish_for_pinned_memory_trims_ram_where_that_is_what_is_short() -> None:
    with lent({"pinned": 500, "ram": 600}, behind={"pinned": "ram"}) as ledger:
        trimmers = Trimmers()
        cache = spare(ledger, TrimStep.WEIGHT_CACHES, count=3)
        trimmers.register(cache)
        assert trimmers.make_room(ledger, {"pinned": 500}).fits
        assert len(cache.leases) == 2
        for lease in cache.leases:
            lease.close()
