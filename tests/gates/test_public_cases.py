"""Cases that others got wrong, on the real models: sampling extremes, empty prompts, stop."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterator

import msgspec
import pytest

from engine.models.native_limits import NATIVE_GRID_ROWS as GRID
from engine.protocol import EngineMessage, Finished, Progress, Sampling
from tests.helpers.live_engine import LiveEngine
from tests.helpers.models import gemma_path, smol_path

QUESTION = "What is the capital of France?"
PLAIN = Sampling(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, max_tokens=6)


@pytest.fixture(scope="module")
def smol() -> Iterator[LiveEngine]:
    with LiveEngine() as made:
        made.load(smol_path(), streams=2)
        yield made


def with_values(**values: float | int) -> Sampling:
    return msgspec.structs.replace(PLAIN, **values)


def test_a_vanishing_temperature_top_p_or_full_min_p_is_greedy(smol: LiveEngine) -> None:
    greedy = smol.ask(QUESTION, with_values(temperature=0.0)).finished().ids
    for values in ({"temperature": 1e-7}, {"temperature": 1e-38}, {"top_p": 0.0}, {"min_p": 1.0}):
        found = [smol.ask(QUESTION, with_values(seed=seed, **values)) for seed in (1, 20)]
        assert [one.finished().ids for one in found] == [greedy, greedy], values


def test_top_k_zero_is_off_and_a_huge_temperature_still_gives_valid_ids(smol: LiveEngine) -> None:
    asked = [smol.ask(QUESTION, with_values(seed=seed)) for seed in range(1, 21)]
    assert len({one.finished().ids for one in asked}) > 5
    hot = smol.ask(QUESTION, with_values(seed=1, temperature=1e6)).finished()
    assert all(0 <= token < 49152 for token in hot.ids)
    assert len(set(hot.ids)) > 3


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_a_senseless_temperature_is_one_sentence(smol: LiveEngine, value: float) -> None:
    failure = smol.ask(QUESTION, with_values(temperature=value)).failure()
    assert failure.code == "request-invalid"
    assert failure.sentence.startswith("The temperature must be 0 or more")


def test_an_empty_prompt_is_refused_and_the_next_question_works(smol: LiveEngine) -> None:
    assert "empty" in smol.ask("", raw=True).failure().sentence
    assert smol.ask("x", with_values(), raw=True).finished().prompt_tokens == 1
    assert "Paris" in smol.ask(QUESTION, Sampling(temperature=0.0)).finished().text


def test_a_model_with_a_start_token_continues_an_empty_prompt() -> None:
    with LiveEngine() as gemma:
        gemma.load(gemma_path(), streams=1)
        found = gemma.ask("", with_values(temperature=0.0), raw=True).finished()
        assert (found.prompt_tokens, len(found.ids)) == (1, 6)


def test_stop_in_a_long_prompt_takes_effect_at_the_next_chunk(smol: LiveEngine) -> None:
    """7,000 tokens; the next question is answered at once and says what it says alone."""
    alone = smol.ask(QUESTION, Sampling(temperature=0.0)).finished().text
    for turn in range(2):
        begun, seen = threading.Event(), list[EngineMessage]()

        def on_frame(
            frame: EngineMessage,
            seen: list[EngineMessage] = seen,
            begun: threading.Event = begun,
        ) -> None:
            seen.append(frame)
            begun.set()

        long = smol.ask(f"Story {turn}. " + "one two three " * 2300, on_frame=on_frame)
        assert begun.wait(60)
        smol.cancel(long)
        cancelled = time.monotonic()
        found = long.finished()
        chunks = [frame for frame in seen if isinstance(frame, Progress)]
        assert (found.stop_reason, found.ids, found.text) == ("stopped", (), "")
        assert len(chunks) <= 3
        assert time.monotonic() - cancelled < 5.0
        assert smol.ask(QUESTION, Sampling(temperature=0.0)).finished().text == alone


def test_no_number_of_a_reply_is_nan_or_infinite(smol: LiveEngine) -> None:
    """A full hit, one token, no token, and a reply that was stopped before its first token."""
    replies: list[Finished] = []
    for limit in (0, 1, 4, 4):
        wish = Sampling(temperature=0.0, max_tokens=limit)
        replies.append(smol.ask("one two three " * 120, wish).finished())
    stopped = smol.ask("four five six " * 400)
    smol.cancel(stopped)
    replies.append(stopped.finished())
    for found in replies:
        text = msgspec.json.encode(found).decode()
        json.loads(text, parse_constant=pytest.fail)
    assert [len(found.ids) for found in replies[:4]] == [0, 1, 4, 4]
    assert replies[3].resumed_tokens == (replies[3].prompt_tokens - 1) // GRID * GRID > 0
    assert (replies[0].timings.prefill_ms, replies[0].timings.first_token_ms) == (None, None)
    assert replies[1].timings.decode_ms is None
    assert replies[4].timings.first_token_ms is None
