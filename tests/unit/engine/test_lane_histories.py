"""Random histories of requests over lanes whose states end inside pages, on a device that fails.

The rules and what must hold in the end are those of ``test_serving_machine``; here a state is kept
at finer steps than a page's, and any call to the device may fail, those of an admission too.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from engine.cache.formats import PAGE_ROWS
from engine.protocol import Failure, Finished
from tests.helpers.fake_runner import bench, prompt_ids, request
from tests.unit.engine.test_serving_machine import Histories


class FineHistories(Histories):
    """A small engine that keeps states at multiples of 16, 64 or 256 rows."""

    @initialize(
        shares=st.booleans(),
        streams=st.integers(1, 4),
        recurrent_slots=st.sampled_from((0, 1, 3, 9)),
    )
    def start(self, shares: bool, streams: int, recurrent_slots: int) -> None:
        self.open(16 if shares else 64, streams, recurrent_slots)

    def open(self, grid: int, streams: int, slot_count: int) -> None:
        self.recurrent = slot_count > 0
        made = bench(pages=(12, 11), streams=streams, slot_count=slot_count, grid=grid)
        self.bench = self.stack.enter_context(made)
        assert PAGE_ROWS % grid == 0

    @rule(call=st.integers(1, 12))
    def break_a_call_to_the_device(self, call: int) -> None:
        self.faults += 1
        self.bench.device.fail_at(call)


FineHistories.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
TestFineHistories = FineHistories.TestCase


@pytest.mark.parametrize("slot_count", [0, 6])
def test_every_call_of_a_resumed_request_fails_in_turn_and_the_next_request_is_served(
    slot_count: int,
) -> None:
    """The request that met the failure ends with it or does without; the census is the bench's."""
    first, second = prompt_ids(700), prompt_ids(740)
    assert second[:700] == first
    outcomes: list[type] = []
    wanted: tuple[int, ...] = ()
    for call in range(100):
        with bench(grid=64, slot_count=slot_count) as made:
            made.ask(request(1, first))
            made.run()
            made.device.fail_at(call or None)
            made.ask(request(2, second))
            made.run()
            failed = made.device.failed
            made.device.fail_at(None)
            made.ask(request(3, second))
            made.run()
            (ended,) = [
                m for m in made.sent if isinstance(m, Finished | Failure) and m.request == 2
            ]
            if call == 0:
                wanted = made.finished(2).ids
                assert made.finished(2).resumed_tokens == 640
            assert made.finished(3).ids == wanted
            if isinstance(ended, Finished):
                assert ended.ids == wanted
            outcomes.append(type(ended))
        if call and not failed:
            break
    assert outcomes[0] is outcomes[-1] is Finished
    assert outcomes.count(Failure) >= 4, "tables, copies of partly filled pages, slots"
