"""Serving a model with recurrent layers: streams wait for slots, and resume with a copy's bits."""

from __future__ import annotations

import pytest

from engine.sampling.keyed import DrawRule
from tests.helpers.fake_runner import bench, prompt_ids, request

WARM = DrawRule(temperature=1.0, top_k=40, top_p=0.95, min_p=0.05, seed=5)


def test_a_stream_waits_for_a_recurrent_slot_and_one_slot_keeps_no_state() -> None:
    first, second = prompt_ids(600, 1), prompt_ids(300, 2)
    with bench(slot_count=2) as made:
        made.ask(request(1, first, rule=WARM))
        made.run()
        wanted = made.finished(1).ids
    with bench(slot_count=1) as made:
        made.ask(request(1, first, rule=WARM))
        made.ask(request(2, second, rule=WARM))
        made.serving.round()
        assert (made.runner.calls, made.serving.has_work) == ([("prompt", 0)], True)
        made.run()
        assert made.finished(1).ids == wanted
        assert made.finished(2).resumed_tokens == 0
        census = made.states.census()
        assert (census.states, census.kept, census.refused) == (0, 0, 2)


@pytest.mark.parametrize("slot_count", [2, 3, 9])
def test_a_recurrent_state_resumes_with_the_bits_of_a_fresh_pass(slot_count: int) -> None:
    """The control differs in one token that only the recurrent state and old pages know."""
    ids = prompt_ids(1030, 5)
    longer, other = ids + prompt_ids(80, 6), [*ids, *prompt_ids(80, 7)]
    fresh = []
    for wanted in (longer, other):
        with bench(slot_count=1) as made:
            made.ask(request(1, wanted, rule=WARM))
            made.run()
            fresh.append(made.finished(1).ids)
    with bench(slot_count=slot_count) as made:
        for number, wanted in enumerate((ids, longer, other), start=1):
            made.ask(request(number, wanted, rule=WARM))
            made.run()
        assert [made.finished(number).ids for number in (2, 3)] == fresh
        assert made.finished(2).resumed_tokens == 1024
        assert made.recurrent is not None
        assert made.recurrent.copies >= 3
    assert fresh[0] != fresh[1]


def test_a_request_that_finds_every_slot_taken_in_an_idle_engine_fails_with_numbers() -> None:
    with bench(slot_count=2) as made:
        assert made.slots is not None
        taken = [made.slots.take_cleared() for _ in range(2)]
        made.ask(request(1, prompt_ids(10)))
        made.run()
        failure = made.failure(1)
        numbers = {
            "slot_count": 2,
            "needed_bytes": made.device.slot_bytes,
            "free_bytes": 0,
        }
        assert (failure.code, failure.numbers) == ("memory-refused", numbers)
        for slot in taken:
            assert slot is not None
            made.slots.release(slot)
