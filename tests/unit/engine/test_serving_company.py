"""Requests beside each other: who waits, what he is told, and what side work may not do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.cache.formats import PAGE_ROWS
from engine.protocol import Finished, Progress, Queued
from engine.sampling.keyed import DrawRule
from engine.serving.request import Request
from tests.helpers.fake_runner import Bench, bench, prompt_ids, request

WARM = DrawRule(temperature=1.0, top_k=40, top_p=0.95, min_p=0.05, seed=5)


@pytest.fixture
def served() -> Iterator[Bench]:
    with bench() as made:
        yield made


def side(number: int, ids: list[int], max_tokens: int = 8) -> Request:
    return replace(request(number, ids, rule=WARM, max_tokens=max_tokens), is_side=True)


def alone(ids: list[int], max_tokens: int = 8) -> tuple[int, ...]:
    with bench() as made:
        made.ask(request(1, ids, rule=WARM, max_tokens=max_tokens))
        made.run()
        return made.finished(1).ids


def told(served: Bench, number: int) -> list[Queued]:
    return [m for m in served.sent if isinstance(m, Queued) and m.request == number]


def order(served: Bench) -> list[int]:
    return [m.request for m in served.sent if isinstance(m, Finished)]


# Places ----------------------------------------------------------------------------------------


def test_who_waits_for_a_place_is_told_how_many_are_before_him_and_only_on_change() -> None:
    with bench(streams=1) as made:
        for number in (1, 2, 3):
            made.ask(request(number, prompt_ids(20, number), max_tokens=5))
        made.run()
        assert told(made, 1) == []
        assert [(q.position, q.reason) for q in told(made, 2)] == [(1, "chats-at-once")]
        assert [(q.position, q.reason) for q in told(made, 3)] == [
            (2, "chats-at-once"),
            (1, "chats-at-once"),
        ]
        assert order(made) == [1, 2, 3]


def test_who_waits_for_memory_is_told_how_much() -> None:
    """1,100 rows and 400 more are 6 pages of 8; the second has 2 and needs 6."""
    with bench(pages=(8, 12)) as made:
        made.ask(request(1, prompt_ids(1100, 1), max_tokens=400))
        made.ask(request(2, prompt_ids(1100, 2), max_tokens=400))
        made.ask(request(3, prompt_ids(10, 3), max_tokens=2))
        made.serving.round()
        page = made.device.page_bytes(0)
        assert told(made, 2) == [
            Queued(
                request=2, position=1, reason="memory", needed_bytes=6 * page, free_bytes=2 * page
            )
        ]
        assert told(made, 3) == [Queued(request=3, position=2, reason="memory")]
        made.run()
        assert made.finished(2).stop_reason == "max-tokens"


def test_who_has_a_lane_and_waits_for_another_prompt_is_told_so(served: Bench) -> None:
    served.ask(request(1, prompt_ids(600, 1)))
    served.ask(request(2, prompt_ids(900, 2)))
    served.run()
    assert told(served, 1) == []
    assert told(served, 2) == [Queued(request=2, position=1, reason="another-prompt")]
    first = next(m for m in served.sent if isinstance(m, Progress) and m.request == 2)
    assert served.sent.index(told(served, 2)[0]) < served.sent.index(first)


def test_a_request_that_nothing_can_ever_hold_does_not_wait_for_others() -> None:
    with bench(pages=(4, 12), context=4096) as made:
        made.ask(request(1, prompt_ids(300, 1), max_tokens=500))
        made.serving.round()
        made.ask(request(2, prompt_ids(1500, 2)))
        made.ask(request(3, prompt_ids(5, 3)))
        made.serving.round()
        failure = made.failure(2)
        page = made.device.page_bytes(0)
        assert failure.code == "memory-refused"
        assert (failure.numbers["needed_bytes"], failure.numbers["needed_pages"]) == (6 * page, 6)
        made.run()
        assert sorted(order(made)) == [1, 3]


# Shares ----------------------------------------------------------------------------------------


def test_a_long_prompt_leaves_a_running_reply_a_fifth_of_the_time(served: Bench) -> None:
    """A chunk takes 100 ms and a step 5: five steps a chunk; the control has no long prompt."""

    def take_time(kind: str) -> None:
        served.now_ns[0] += 100_000_000 if kind == "prompt" else 5_000_000

    served.runner.before = take_time
    served.ask(request(1, prompt_ids(5, 1), max_tokens=60))
    served.serving.round()
    served.ask(request(2, prompt_ids(1900, 2), max_tokens=2))
    while not any(isinstance(m, Finished) for m in served.sent):
        served.serving.round()
    kinds = [kind for kind, _ in served.runner.calls]
    chunks = [place for place, kind in enumerate(kinds) if kind == "prompt"][1:]
    between = [later - earlier - 1 for earlier, later in pairwise(chunks)]
    assert len(between) == 7
    assert set(between) == {5}


def test_an_overtaken_prompt_runs_after_eight_chunks(served: Bench) -> None:
    """Twenty short prompts come one after the other beside a long one."""
    served.ask(request(1, prompt_ids(2000, 1), max_tokens=1))
    number = 2
    places: list[int] = []
    for _ in range(20):
        served.ask(request(number, prompt_ids(30, number), max_tokens=1))
        number += 1
        served.serving.round()
        places = [at for kind, at in served.runner.calls if kind == "prompt"]
    long_chunks = [index for index, at in enumerate(places) if at or index == 8]
    assert long_chunks[:2] == [8, 17]


# Side work -------------------------------------------------------------------------------------


def test_side_work_waits_for_every_chat_even_for_those_that_came_later(served: Bench) -> None:
    served.ask(request(1, prompt_ids(300, 1), rule=WARM, max_tokens=30))
    served.ask(side(2, prompt_ids(20, 2)))
    served.serving.round()
    served.ask(request(3, prompt_ids(600, 3), rule=WARM, max_tokens=30))
    served.run()
    assert order(served) == [1, 3, 2]
    assert served.finished(2).ids == alone(prompt_ids(20, 2))
    assert told(served, 2)


def test_side_work_stands_still_when_a_chat_comes_and_goes_on_after_it(served: Bench) -> None:
    ids = prompt_ids(300, 2)
    served.ask(side(2, ids, max_tokens=20))
    for _ in range(6):
        served.serving.round()
    said = [token for frame in served.tokens(2) for token in frame.ids]
    assert said
    served.ask(request(1, prompt_ids(300, 1), rule=WARM, max_tokens=10))
    served.run()
    assert order(served) == [1, 2]
    assert served.finished(2).ids == alone(ids, 20)
    sent = [token for frame in served.tokens(2) for token in frame.ids]
    assert tuple(sent) == served.finished(2).ids


@pytest.mark.parametrize("why", ["streams", "pages"])
def test_side_work_gives_its_lane_to_a_chat_and_says_nothing_twice(why: str) -> None:
    ids = prompt_ids(300, 2)
    streams, pages = (1, (24, 16)) if why == "streams" else (4, (4, 16))
    with bench(streams=streams, pages=pages) as made:
        made.ask(side(2, ids, max_tokens=20))
        for _ in range(6):
            made.serving.round()
        said = len([token for frame in made.tokens(2) for token in frame.ids])
        made.ask(request(1, prompt_ids(700, 1), rule=WARM, max_tokens=10))
        made.run()
        assert order(made) == [1, 2]
        assert made.finished(2).ids == alone(ids, 20)
        sent = [token for frame in made.tokens(2) for token in frame.ids]
        assert 0 < said < len(sent)
        assert tuple(sent) == made.finished(2).ids
        prompts = [at for kind, at in made.runner.calls if kind == "prompt"]
        assert prompts == [0, 256, 0, 256, 512, 0, 256]


@pytest.mark.usefixtures("caplog")
def test_side_work_that_says_something_else_the_second_time_fails() -> None:
    """A control: what was sent is compared, not trusted."""
    with bench(streams=1) as made:
        made.ask(side(2, prompt_ids(30, 2), max_tokens=20))
        for _ in range(6):
            made.serving.round()
        made.ask(request(1, prompt_ids(30, 1), max_tokens=2))
        while order(made) != [1]:
            made.serving.round()

        def turn_around(row: NDArray[np.float32], _position: int) -> None:
            row *= -1.0

        made.runner.edit = turn_around
        made.run()
        assert made.failure(2).code == "internal"


def test_side_work_leaves_the_kept_states_as_they_were() -> None:
    """The next turn resumes as if there had been none; the control had none."""
    ids = prompt_ids(700, 1)
    found = []
    for titled in (True, False):
        with bench() as made:
            made.ask(replace(request(1, ids, rule=WARM), conversation="a chat"))
            made.run()
            before = made.states.census()
            if titled:
                made.ask(side(2, [*ids, *prompt_ids(900, 3)]))
                made.run()
                assert made.finished(2).stop_reason == "max-tokens"
            assert made.states.census() == before
            longer = [*ids, *prompt_ids(40, 4)]
            made.ask(replace(request(3, longer, rule=WARM), conversation="a chat"))
            made.run()
            found.append((made.finished(3).ids, made.finished(3).resumed_tokens))
    assert found[0] == found[1]
    assert found[0][1] == 512


def test_side_work_displaces_no_state_and_says_that_there_is_no_room() -> None:
    with bench(pages=(5, 16)) as made:
        made.ask(request(1, prompt_ids(1100, 1), max_tokens=1))
        made.run()
        before = made.states.census()
        assert before.pages
        made.ask(side(2, prompt_ids(900, 2)))
        made.run()
        failure = made.failure(2)
        assert failure.code == "memory-refused"
        assert failure.numbers["free_bytes"] == made.device.page_bytes(0)
        assert made.states.census() == before


def test_a_request_of_no_chat_keeps_no_state(served: Bench) -> None:
    asked = replace(request(1, prompt_ids(3 * PAGE_ROWS)), conversation=None)
    served.ask(asked)
    served.run()
    assert served.states.census().states == 0
