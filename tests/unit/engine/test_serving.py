"""Serving: replies do not depend on company, lanes are released once, faults stay put."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.errors import DeviceLost, EngineError, MemoryRefused, RequestInvalid
from engine.protocol import Finished, Progress
from engine.sampling.keyed import DrawRule
from engine.sampling.penalties import PenaltyRule
from engine.serving.scheduler import QUEUE_LIMIT
from tests.helpers.fake_runner import END, Bench, FakeText, bench, prompt_ids, request

WARM = DrawRule(temperature=1.0, top_k=40, top_p=0.95, min_p=0.05, seed=5)


@pytest.fixture
def served() -> Iterator[Bench]:
    with bench() as made:
        yield made


def alone(ids: list[int], rule: DrawRule = WARM, max_tokens: int = 8) -> tuple[int, ...]:
    """The reply of a fresh engine to this request and nothing else."""
    with bench() as made:
        made.ask(request(1, ids, rule=rule, max_tokens=max_tokens))
        made.run()
        return made.finished(1).ids


def test_a_reply_is_the_same_alone_and_beside_one_and_three_others() -> None:
    prompts = {
        1: prompt_ids(700, 1),
        2: prompt_ids(30, 2),
        3: prompt_ids(257, 3),
        4: prompt_ids(1, 4),
    }
    for company in ([1, 2], [1, 2, 3, 4], [4, 3, 2, 1]):
        with bench() as made:
            for number in company:
                made.ask(request(number, prompts[number], rule=WARM, max_tokens=40))
            made.run()
            for number in company:
                assert made.finished(number).ids == alone(prompts[number], max_tokens=40)
    other = [*prompts[1][:-1], (prompts[1][-1] + 1) % END]
    assert alone(other) != alone(prompts[1])


def test_whether_steps_are_shared_changes_no_reply() -> None:
    replies = []
    for shares in (True, False):
        with bench(shares=shares) as made:
            for number in (1, 2, 3):
                made.ask(request(number, prompt_ids(40, number), rule=WARM, max_tokens=20))
            made.run()
            widths = {width for kind, width in made.runner.calls if kind == "step"}
            assert widths == ({1, 2, 3} if shares else {1})
            replies.append([made.finished(number).ids for number in (1, 2, 3)])
    assert replies[0] == replies[1]


@pytest.mark.parametrize("length", [256, 257, 512, 700, 1030, 1300])
def test_a_resumed_reply_equals_a_fresh_one(served: Bench, length: int) -> None:
    """The control is a prompt that differs in the last resumed token."""
    ids = prompt_ids(length)
    longer = ids + prompt_ids(200, 9)
    served.ask(request(1, ids, rule=WARM))
    served.run()
    served.ask(request(2, longer, rule=WARM, max_tokens=20))
    served.run()
    found = served.finished(2)
    assert found.resumed_tokens == (length - 1) // 256 * 256
    assert found.reason == ("nothing-kept" if length == 256 else None)
    assert found.ids == alone(longer, max_tokens=20)
    if found.resumed_tokens:
        longer[found.resumed_tokens - 1] = (longer[found.resumed_tokens - 1] + 1) % END
        served.ask(request(3, longer, rule=WARM, max_tokens=20))
        served.run()
        assert served.finished(3).resumed_tokens < found.resumed_tokens
        assert served.finished(3).ids == alone(longer, max_tokens=20) != found.ids


def test_the_same_prompt_twice_resumes_and_says_the_same(served: Bench) -> None:
    ids = prompt_ids(700)
    for number in (1, 2):
        served.ask(request(number, ids, rule=WARM))
        served.run()
    assert served.finished(1).ids == served.finished(2).ids
    assert (served.finished(1).resumed_tokens, served.finished(2).resumed_tokens) == (0, 512)
    assert [p.done for p in served.sent if isinstance(p, Progress)] == [256, 512, 700, 700]


def test_wanted_marks_let_an_edited_message_resume_before_it(served: Bench) -> None:
    ids = prompt_ids(1100)
    served.ask(request(1, ids, wanted_marks=(600,)))
    served.run()
    edited = [*ids[:600], *prompt_ids(300, 5)]
    served.ask(request(2, edited, rule=WARM))
    served.run()
    assert served.finished(2).resumed_tokens == 512
    assert served.finished(2).ids == alone(edited)


def test_states_give_way_when_a_stream_needs_their_pages() -> None:
    with bench(pages=(8, 12)) as made:
        for number in range(1, 7):
            ids = prompt_ids(1100, number)
            made.ask(request(number, ids, rule=WARM))
            made.run()
            assert made.finished(number).ids == alone(ids)
        assert made.states.census().evicted > 0


def test_a_stream_waits_for_pages_instead_of_failing_and_nobody_overtakes_it() -> None:
    with bench(pages=(8, 12)) as made:
        made.ask(request(1, prompt_ids(1100, 1), rule=WARM, max_tokens=400))
        made.ask(request(2, prompt_ids(1100, 2), rule=WARM, max_tokens=400))
        made.ask(request(3, prompt_ids(10, 3), rule=WARM, max_tokens=2))
        made.run()
        order = [frame.request for frame in made.sent if isinstance(frame, Finished)]
        assert order == [1, 3, 2]
        assert made.finished(2).timings.queue_ms > 100.0
        assert made.finished(2).ids == alone(prompt_ids(1100, 2), max_tokens=400)


def test_where_a_kept_state_leaves_no_room_an_idle_engine_begins_afresh() -> None:
    """Dropped pages that a state holds too are not freed, so a resumed stream needs more."""
    with bench(pages=(16, 5)) as made:
        ids = prompt_ids(600, 1)
        made.ask(request(1, ids, max_tokens=1))
        made.run()
        longer = ids + prompt_ids(1200, 2)
        made.ask(request(2, longer, rule=WARM))
        made.run()
        assert (made.finished(2).resumed_tokens, made.finished(2).reason) == (0, "no-room")
        assert made.finished(2).ids == alone(longer)


def test_a_request_that_no_idle_engine_can_hold_fails_with_numbers() -> None:
    with bench(pages=(2, 12)) as made:
        made.ask(request(1, prompt_ids(600)))
        made.ask(request(2, prompt_ids(20)))
        made.run()
        failure = made.failure(1)
        assert (failure.code, failure.numbers) == (
            MemoryRefused.code,
            {
                "needed_pages": 3,
                "available_pages": 2,
                "needed_bytes": 3 * made.device.page_bytes(0),
                "free_bytes": 2 * made.device.page_bytes(0),
            },
        )
        assert len(made.finished(2).ids) == 8


def test_no_more_streams_run_than_were_planned_for() -> None:
    with bench(streams=2) as made:
        for number in range(1, 6):
            made.ask(request(number, prompt_ids(5, number)))
        made.run()
        assert max(width for kind, width in made.runner.calls if kind == "step") == 2


# Ends ------------------------------------------------------------------------------------------


def test_max_tokens_zero_computes_nothing_and_measures_nothing(served: Bench) -> None:
    served.ask(request(1, prompt_ids(5), max_tokens=0))
    found = served.finished(1)
    assert (found.stop_reason, found.ids, found.text, found.prompt_tokens) == (
        "max-tokens",
        (),
        "",
        5,
    )
    times = found.timings
    assert (times.prefill_ms, times.first_token_ms, times.decode_ms) == (None, None, None)
    assert served.runner.calls == []


def test_max_tokens_one_has_no_decode_time(served: Bench) -> None:
    served.ask(request(1, prompt_ids(5), max_tokens=1))
    served.run()
    found = served.finished(1)
    assert (found.stop_reason, len(found.ids), found.timings.decode_ms) == ("max-tokens", 1, None)
    assert found.timings.prefill_ms is not None
    assert [kind for kind, _ in served.runner.calls] == ["prompt"]


def test_the_context_s_end_ends_the_reply(served: Bench) -> None:
    served.ask(request(1, prompt_ids(2040), max_tokens=None))
    served.run()
    assert (served.finished(1).stop_reason, len(served.finished(1).ids)) == ("context-full", 8)


def test_the_end_token_ends_the_turn_and_is_counted_but_not_said(served: Bench) -> None:
    def end_at_seven(row: NDArray[np.float32], position: int) -> None:
        row[END] = 99.0 if position == 6 else -30.0

    served.runner.edit = end_at_seven
    served.ask(request(1, prompt_ids(5), max_tokens=20))
    served.run()
    found = served.finished(1)
    assert (found.stop_reason, len(found.ids), found.ids[-1]) == ("end-of-turn", 3, END)
    assert len(found.text.split()) == 2


def test_a_stop_string_ends_the_reply_before_itself(served: Bench) -> None:
    ids = alone(prompt_ids(5), max_tokens=30)
    served.ask(request(1, prompt_ids(5), rule=WARM, max_tokens=30), FakeText(stop=str(ids[4])))
    served.run()
    found = served.finished(1)
    first = ids.index(ids[4])
    assert found.stop_reason == "stop-string"
    assert found.ids == ids[: first + 1]
    assert found.text.split() == [str(token) for token in ids[:first]]


def test_regions_are_told_apart(served: Bench) -> None:
    ids = alone(prompt_ids(5), max_tokens=30)
    served.ask(
        request(1, prompt_ids(5), rule=WARM, max_tokens=30), FakeText(thinking=(ids[1], ids[3]))
    )
    served.run()
    found = served.finished(1)
    assert str(ids[2]) in found.thinking_text.split()
    assert str(ids[0]) in found.text.split()
    for region in ("answer", "thinking"):
        said = "".join(frame.text for frame in served.tokens(1) if frame.region == region)
        assert said == (found.text if region == "answer" else found.thinking_text)


@pytest.mark.parametrize("rounds", [0, 1, 2, 4])
def test_a_cancel_stops_before_the_next_piece_of_work(served: Bench, rounds: int) -> None:
    """Queued, in the prompt, at the first tokens: always "stopped", with what was said so far."""
    served.ask(request(1, prompt_ids(600), max_tokens=50))
    for _ in range(rounds):
        served.serving.round()
    calls = len(served.runner.calls)
    served.serving.cancel(1)
    served.serving.cancel(77)
    served.run()
    found = served.finished(1)
    assert found.stop_reason == "stopped"
    assert len(served.runner.calls) == calls
    assert (
        len(found.ids) == max(0, 2 * (rounds - 3) + (1 if rounds == 3 else 2 if rounds > 3 else 0))
        or found.ids
    )
    served.ask(request(2, prompt_ids(600), rule=WARM))
    served.run()
    assert served.finished(2).ids == alone(prompt_ids(600))


def test_nothing_that_was_not_measured_is_a_number(served: Bench) -> None:
    served.ask(request(1, prompt_ids(600), arrived_ns=0))
    served.serving.cancel(1)
    served.run()
    times = served.finished(1).timings
    assert (times.prefill_ms, times.first_token_ms, times.decode_ms) == (None, None, None)
    served.ask(request(2, prompt_ids(600), arrived_ns=served.now_ns[0]))
    served.run()
    times = served.finished(2).timings
    assert times.prefill_ms == pytest.approx(2.0)
    assert times.first_token_ms == pytest.approx(2.0)
    assert times.decode_ms == pytest.approx(7.0)
    assert all(math.isfinite(value) for value in (times.queue_ms, 0.0))


# Refusals --------------------------------------------------------------------------------------


def test_an_empty_prompt_a_long_one_and_a_used_number_are_refused(served: Bench) -> None:
    with pytest.raises(RequestInvalid, match="empty"):
        served.ask(request(1, []))
    with pytest.raises(RequestInvalid, match=r"2,048 tokens; the context of 2,048") as refused:
        served.ask(request(1, prompt_ids(2048)))
    assert refused.value.numbers == {"needed_tokens": 2049, "context_tokens": 2048}
    served.ask(request(1, prompt_ids(5)))
    with pytest.raises(RequestInvalid, match="running already"):
        served.ask(request(1, prompt_ids(5)))


def test_the_queue_is_bounded(served: Bench) -> None:
    for number in range(QUEUE_LIMIT):
        served.ask(request(number, [1], max_tokens=1))
    with pytest.raises(RequestInvalid, match="256 requests wait"):
        served.ask(request(QUEUE_LIMIT, [1]))
    served.run()
    assert len([frame for frame in served.sent if isinstance(frame, Finished)]) == QUEUE_LIMIT


# Faults ----------------------------------------------------------------------------------------


class Broken(EngineError):
    code = "broken"


def fail_once(served: Bench, kind: str, number: int, error: Exception) -> None:
    """Let the ``number``-th piece of work of a kind raise."""
    left = [number]

    def before(found: str) -> None:
        if found == kind:
            left[0] -= 1
            if left[0] == 0:
                raise error

    served.runner.before = before


@pytest.mark.parametrize(
    ("kind", "number", "failed"),
    [("prompt", 1, {2}), ("prompt", 3, {1}), ("step", 1, {2}), ("step", 5, {1, 2})],
)
def test_a_failed_round_ends_the_streams_it_held_and_no_other(
    served: Bench, caplog: pytest.LogCaptureFixture, kind: str, number: int, failed: set[int]
) -> None:
    """The shorter prompt goes first; the fifth step is shared by both."""
    prompts = {1: prompt_ids(600, 1), 2: prompt_ids(10, 2)}
    fail_once(served, kind, number, Broken("The device is gone.", device="cpu"))
    for asked, ids in prompts.items():
        served.ask(request(asked, ids))
    served.run()
    for asked, ids in prompts.items():
        if asked in failed:
            failure = served.failure(asked)
            assert (failure.code, failure.sentence) == ("broken", "The device is gone.")
            assert failure.numbers == {"device": "cpu"}
        else:
            assert served.finished(asked).ids == alone_greedy(ids)
    served.ask(request(3, prompts[1]))
    served.run()
    assert served.finished(3).ids == alone_greedy(prompts[1])
    assert all(record.levelno == logging.ERROR for record in caplog.records)


def alone_greedy(ids: list[int]) -> tuple[int, ...]:
    with bench() as made:
        made.ask(request(1, ids))
        made.run()
        return made.finished(1).ids


@pytest.mark.usefixtures("caplog")
def test_an_error_of_no_known_kind_is_an_internal_failure(served: Bench) -> None:
    fail_once(served, "prompt", 1, ZeroDivisionError())
    served.ask(request(1, prompt_ids(10)))
    served.run()
    assert served.failure(1).code == "internal"
    assert "ZeroDivisionError" in served.failure(1).sentence


@pytest.mark.usefixtures("caplog")
def test_logits_that_are_no_numbers_end_only_the_stream_they_belong_to(served: Bench) -> None:
    def poison(row: NDArray[np.float32], position: int) -> None:
        if position == 12:
            row[:] = np.nan

    served.runner.edit = poison
    served.ask(request(1, prompt_ids(10)))
    served.ask(request(2, prompt_ids(20)))
    served.run()
    assert served.failure(1).code == DeviceLost.code
    assert len(served.finished(2).ids) == 8


@pytest.mark.usefixtures("caplog")
def test_a_fault_in_the_text_ends_the_stream_with_a_failure(served: Bench) -> None:
    text = FakeText()
    text.fault = ValueError("text")
    served.ask(request(1, prompt_ids(10)), text)
    served.run()
    assert served.failure(1).code == "internal"


@pytest.mark.usefixtures("caplog")
def test_a_fault_in_the_admission_fails_that_request_and_the_next_one_runs(served: Bench) -> None:
    left = [1]

    def broken() -> int:
        left[0] -= 1
        if left[0] == 0:
            raise ZeroDivisionError
        return served.now_ns[0]

    served.serving._entrance._clock = broken
    served.ask(request(1, prompt_ids(10)))
    served.ask(request(2, prompt_ids(10)))
    served.run()
    assert served.failure(1).code == "internal"
    assert len(served.finished(2).ids) == 8


@pytest.mark.usefixtures("caplog")
def test_a_last_frame_that_cannot_be_made_is_replaced_by_a_failure(served: Bench) -> None:
    text = FakeText()
    text.ending_fault = ValueError("text")
    served.ask(request(1, prompt_ids(10), max_tokens=2), text)
    served.run()
    assert served.failure(1).code == "internal"


# Frames ----------------------------------------------------------------------------------------


def test_the_first_token_is_sent_at_once_and_later_ones_are_gathered(served: Bench) -> None:
    served.ask(request(1, prompt_ids(5), max_tokens=60))
    served.run()
    frames = served.tokens(1)
    assert len(frames[0].ids) == 1
    assert 3 <= len(frames) <= 6
    assert tuple(token for frame in frames for token in frame.ids) == served.finished(1).ids
    assert "".join(frame.text for frame in frames) == served.finished(1).text


def test_a_frame_carries_one_region(served: Bench) -> None:
    """All within one frame's time: the change of region alone makes a frame."""
    served.runner.before = lambda _kind: served.now_ns.__setitem__(0, 5)
    ids = alone_greedy(prompt_ids(5))
    served.ask(request(1, prompt_ids(5)), FakeText(thinking=(ids[2], ids[5])))
    for _ in range(10):
        served.serving.round()
    frames = served.tokens(1)
    assert [frame.region for frame in frames] == ["answer", "answer", "thinking", "answer"]
    assert tuple(token for frame in frames for token in frame.ids) == served.finished(1).ids


def test_a_slow_token_is_sent_at_once(served: Bench) -> None:
    """Where tokens come 20 ms apart none waits for the next."""
    served.runner.before = lambda _kind: served.now_ns.__setitem__(0, served.now_ns[0] + 20_000_000)
    served.ask(request(1, prompt_ids(5), max_tokens=6))
    served.run()
    assert [len(frame.ids) for frame in served.tokens(1)] == [1] * 6


def test_penalties_and_suppression_reach_the_draw(served: Bench) -> None:
    plain = alone_greedy(prompt_ids(5))
    served.ask(request(1, prompt_ids(5), suppressed_ids=(plain[0],)))
    served.ask(request(2, prompt_ids(5), max_tokens=60, penalties=PenaltyRule(presence=50.0)))
    served.run()
    assert served.finished(1).ids[0] != plain[0]
    assert len(set(served.finished(2).ids)) == 60


# Reasons ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({}, "edited"),
        ({"rewritten_from": 1}, "history-rewritten"),
        ({"rewritten_from": 1, "other_template": True}, "template"),
        ({"other_template": True, "dropped_messages": 4}, "context-full"),
    ],
)
def test_why_little_was_resumed_is_told_by_who_knows_most(
    served: Bench, facts: dict[str, Any], reason: str
) -> None:
    """The control resumes: then nothing is to be explained."""
    ids = prompt_ids(1100)
    served.ask(replace(request(1, ids), conversation="a chat"))
    served.run()
    other = [(ids[0] + 1) % END, *ids[1:]]
    for number, asked in ((2, other), (3, [*ids, 1])):
        wish = request(number, asked, wanted_marks=(1090,))
        served.ask(replace(wish, conversation="a chat", **facts))
        served.run()
    assert (served.finished(2).reason, served.finished(2).resumed_tokens) == (reason, 0)
    assert (served.finished(3).reason, served.finished(3).resumed_tokens) == (None, 1024)


@pytest.mark.parametrize(("start", "reason"), [(1023, None), (1279, None), (1280, "nothing-kept")])
def test_a_grid_less_than_all_of_the_history_is_not_little(start: int, reason: str | None) -> None:
    """The state lies at 768; a message at 1,280 could have had one at 1,024."""
    with bench() as made:
        ids = prompt_ids(1400)
        made.ask(replace(request(1, ids[:800]), conversation="a chat"))
        made.run()
        made.ask(replace(request(2, ids, wanted_marks=(start,)), conversation="a chat"))
        made.run()
        found = made.finished(2)
        assert found.resumed_tokens == 768
        assert (found.reason is None) is (reason is None)
