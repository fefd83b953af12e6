"""An envelope holds a whole peak before anything is taken, and counts nothing twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.errors import InvariantBroken, MemoryRefused
from engine.memory.envelope import Demand, load_demand
from engine.memory.ledger import Ledger
from engine.protocol import PlanLine
from tests.helpers.census import lent


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with lent({"gpu0": 1000, "ram": 1000}) as ledger:
        yield ledger


DEMAND = Demand(
    persistent={"gpu0": 500, "ram": 10},
    load={"ram": 300},
    prefill={"gpu0": 200},
    decode={"gpu0": 50, "ram": 20},
)


def held(ledger: Ledger, pool: str = "gpu0") -> int:
    return ledger.pool(pool).held_bytes


def test_a_peak_is_what_stays_and_the_widest_phase_of_each_pool() -> None:
    assert DEMAND.peak() == {"gpu0": 700, "ram": 310}
    assert Demand().peak() == {}
    assert Demand(decode={"disk": 3}).peak() == {"disk": 3}


def test_the_exact_peak_passes_and_one_byte_less_is_refused_whole(ledger: Ledger) -> None:
    with ledger.reserve("others", {"gpu0": 300}), ledger.envelope("model", DEMAND):
        assert (held(ledger), held(ledger, "ram")) == (1000, 310)
    with ledger.reserve("others", {"gpu0": 301}):
        with pytest.raises(MemoryRefused) as refused:
            ledger.envelope("model", DEMAND)
        assert refused.value.numbers["needed_bytes"] == 700
        assert refused.value.numbers["free_bytes"] == 699
        assert held(ledger, "ram") == 0


def test_drawing_counts_nothing_twice_and_closing_frees_only_the_rest(ledger: Ledger) -> None:
    envelope = ledger.envelope("model", DEMAND)
    weights = envelope.reserve("weights", {"gpu0": 400})
    assert held(ledger) == 700
    assert ledger.pool("gpu0").holders == (("weights", 400), ("model", 300))
    weights.commit()
    assert (ledger.pool("gpu0").reserved_bytes, ledger.pool("gpu0").committed_bytes) == (300, 400)
    envelope.close()
    envelope.close()
    assert (held(ledger), held(ledger, "ram")) == (400, 0)
    weights.close()


def test_what_a_phase_gives_back_serves_the_next_phase(ledger: Ledger) -> None:
    with ledger.envelope("model", DEMAND) as envelope, ledger.reserve("others", {"gpu0": 300}):
        for owner in ("prefill", "decode", "prefill"):
            with envelope.reserve(owner, {"gpu0": 700}):
                assert held(ledger) == 1000
        with envelope.reserve("prefill", {"gpu0": 700}) as lease:
            lease.commit({"gpu0": 1})
            assert envelope.bytes_by_pool["gpu0"] == 699
            envelope.reserve("decode", {"gpu0": 699}).close()


def test_what_exceeds_an_envelope_is_asked_of_the_ledger_to_the_byte(ledger: Ledger) -> None:
    with ledger.envelope("model", Demand({"gpu0": 100})) as envelope:
        with ledger.reserve("others", {"gpu0": 880}):
            with pytest.raises(MemoryRefused) as refused:
                envelope.reserve("weights", {"gpu0": 121})
            assert refused.value.numbers["free_bytes"] == 120
            with envelope.reserve("weights", {"gpu0": 120}):
                assert held(ledger) == 1000
                assert envelope.bytes_by_pool == {"gpu0": 0}
                with pytest.raises(MemoryRefused):
                    envelope.reserve("more", {"gpu0": 1})
            assert (held(ledger), envelope.bytes_by_pool) == (980, {"gpu0": 100})
        with envelope.reserve("in a pool that was not asked for", {"ram": 1000}):
            assert held(ledger, "ram") == 1000


def test_another_s_envelope_is_not_free_for_anybody_else(ledger: Ledger) -> None:
    with ledger.envelope("one", Demand({"gpu0": 600})), pytest.raises(MemoryRefused) as refused:
        ledger.envelope("other", Demand({"gpu0": 401}))
    assert refused.value.numbers["holders"] == "one 600"


def test_nothing_is_drawn_after_the_end(ledger: Ledger) -> None:
    envelope = ledger.envelope("model", DEMAND)
    envelope.close()
    assert not envelope.is_committed
    with pytest.raises(InvariantBroken, match="after its end"):
        envelope.reserve("late", {"gpu0": 1})


def test_a_plan_s_lines_are_summed_by_pool_and_pinned_bytes_charge_ram_once() -> None:
    lines = [
        PlanLine(pool=pool, owner=owner, bytes=size, reason="a test")
        for pool, owner, size in (("gpu0", "a", 5), ("pinned", "b", 7), ("gpu0", "c", 1))
    ]
    assert load_demand(lines).peak() == {"gpu0": 6, "pinned": 7}
    pools = {"gpu0": 6, "pinned": 7, "ram": 7}
    with (
        lent(pools, behind={"pinned": "ram"}) as ledger,
        ledger.envelope("model", load_demand(lines)) as envelope,
        envelope.reserve("b", {"pinned": 7}),
    ):
        assert [pool.held_bytes for pool in ledger.census()] == [6, 7, 7]
