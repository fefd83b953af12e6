"""The scheduler decides by facts alone: who is next, what others are owed, where chunks end."""

from __future__ import annotations

import random

import pytest

from engine.serving.request import Phase
from engine.serving.scheduler import (
    DECODE_SHARE,
    OVERTAKEN_CHUNKS,
    Round,
    StreamFacts,
    chunk_end,
    may_admit,
    next_round,
    owed_after,
)

FILLING, DECODING, RESUMING = Phase.FILLING, Phase.DECODING, Phase.RESUMING


@pytest.mark.parametrize("shares", [True, False])
def test_a_round_has_one_prompt_chunk_and_a_step_of_everybody_who_decodes(shares: bool) -> None:
    facts = [
        StreamFacts(4, DECODING),
        StreamFacts(3, FILLING, 500),
        StreamFacts(2, FILLING, 400),
        StreamFacts(1, DECODING),
        StreamFacts(5, RESUMING, 900),
        StreamFacts(6, RESUMING, 900),
    ]
    steps = ((4, 1),) if shares else ((4,), (1,))
    assert next_round(facts, shares_steps=shares) == Round(2, steps, (5, 6))
    assert next_round(facts[1:3], shares_steps=shares) == Round(2, ())
    assert next_round([], shares_steps=shares) == Round(None, ())


def test_the_shortest_rest_goes_first_and_the_first_that_came_among_equals() -> None:
    facts = [StreamFacts(n, FILLING, left) for n, left in ((1, 300), (2, 257), (3, 257))]
    assert next_round(facts, shares_steps=True).prompt == 2


def test_a_prompt_that_was_overtaken_often_enough_runs_whatever_it_has_left() -> None:
    facts = [
        StreamFacts(1, FILLING, 90_000, OVERTAKEN_CHUNKS - 1),
        StreamFacts(2, FILLING, 10, 0),
    ]
    assert next_round(facts, shares_steps=True).prompt == 2
    facts[0] = StreamFacts(1, FILLING, 90_000, OVERTAKEN_CHUNKS)
    assert next_round(facts, shares_steps=True).prompt == 1
    facts.append(StreamFacts(3, FILLING, 80_000, OVERTAKEN_CHUNKS + 1))
    assert next_round(facts, shares_steps=True).prompt == 3


@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_no_prompt_waits_longer_than_the_bound_however_many_short_ones_come(count: int) -> None:
    """Ever new short prompts beside ``count - 1`` long ones; the control is the bound less one."""
    longs = dict.fromkeys(range(1, count), 0)
    worst = 0
    for chunk in range(400):
        facts = [StreamFacts(n, FILLING, 10_000 + n, waited) for n, waited in longs.items()]
        short = 1000 + chunk
        chosen = next_round([*facts, StreamFacts(short, FILLING, 1)], shares_steps=True).prompt
        longs = {n: 0 if n == chosen else waited + 1 for n, waited in longs.items()}
        worst = max(worst, *longs.values())
    assert worst == OVERTAKEN_CHUNKS + count - 2


def test_side_work_stands_still_while_a_chat_runs() -> None:
    side = [
        StreamFacts(1, DECODING, is_side=True),
        StreamFacts(2, FILLING, 5, is_side=True),
        StreamFacts(3, RESUMING, is_side=True),
    ]
    chat = StreamFacts(4, FILLING, 900)
    assert next_round([*side, chat], shares_steps=True) == Round(4, ())
    assert next_round(side, shares_steps=True) == Round(2, ((1,),), (3,))


def test_no_chunk_runs_while_decoding_streams_are_owed_time() -> None:
    facts = [StreamFacts(1, FILLING, 900), StreamFacts(2, DECODING)]
    assert next_round(facts, shares_steps=True, owed_ns=1) == Round(None, ((2,),))
    assert next_round(facts, shares_steps=True, owed_ns=0) == Round(1, ((2,),))
    assert next_round(facts[:1], shares_steps=True, owed_ns=10**9) == Round(1, ())


def test_decoding_streams_are_owed_a_quarter_of_a_chunk_s_time() -> None:
    assert owed_after(0, 1000, 0, decodes=True) == 1000 * DECODE_SHARE == 250
    assert owed_after(250, 0, 100, decodes=True) == 150
    assert owed_after(150, 0, 400, decodes=True) == 0
    assert owed_after(250, 1000, 0, decodes=False) == 0


@pytest.mark.parametrize(("chunk_ns", "step_ns"), [(1000, 10), (1000, 900), (70, 3), (5, 50)])
def test_a_long_prompt_leaves_running_replies_their_share_of_the_time(
    chunk_ns: int, step_ns: int
) -> None:
    """Over a long run decoding gets a fifth of all time or more: 0.25 to each 1 of a chunk."""
    owed = spent_chunks = spent_steps = 0
    for _ in range(5000):
        facts = [StreamFacts(1, FILLING, 10**6), StreamFacts(2, DECODING)]
        work = next_round(facts, shares_steps=True, owed_ns=owed)
        chunk = chunk_ns if work.prompt is not None else 0
        owed = owed_after(owed, chunk, step_ns, decodes=True)
        spent_chunks += chunk
        spent_steps += step_ns
    assert spent_steps >= 0.2 * (spent_steps + spent_chunks) - chunk_ns
    least = max(DECODE_SHARE * chunk_ns, step_ns)
    assert spent_chunks / chunk_ns >= 5000 * step_ns / (least + step_ns) - 1


def test_a_chunk_ends_at_its_rows_the_next_mark_or_the_prompt_s_end() -> None:
    assert chunk_end(0, 256, (), 1000) == 256
    assert chunk_end(0, 256, (64, 128), 1000) == 64
    assert chunk_end(64, 256, (64, 128), 1000) == 128
    assert chunk_end(128, 256, (64, 128), 1000) == 384
    assert chunk_end(896, 256, (960,), 1000) == 960
    assert chunk_end(960, 256, (960,), 1000) == 1000


@pytest.mark.parametrize("seed", range(30))
def test_chunks_cover_a_prompt_once_and_stop_at_every_mark(seed: int) -> None:
    draw = random.Random(seed)
    grid = draw.choice((64, 256))
    total = draw.randint(1, 5000)
    marks = {draw.randrange(0, total) // grid * grid for _ in range(draw.randint(0, 5))} - {0}
    ends, at = [], 0
    while at < total:
        end = chunk_end(at, 256, tuple(sorted(marks)), total)
        assert 0 < end - at <= 256
        assert end == total or end % grid == 0
        ends.append(end)
        at = end
    assert marks <= set(ends)


def test_only_the_head_of_the_queue_may_ask_and_only_below_the_limit() -> None:
    assert may_admit(1, 3, 4)
    assert not may_admit(1, 4, 4)
    assert not may_admit(0, 0, 4)
