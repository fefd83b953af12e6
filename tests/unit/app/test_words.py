"""The line under a reply: facts in words, a dash where nothing was measured, never a NaN."""

from __future__ import annotations

import dataclasses

from app.chat.blocks.words import context_tokens, status_text, words_of
from app.chat.conversation import ReplyFacts, Turn, TurnState
from app.chat.session_facts import Problem
from engine.protocol import Timings

FACTS = ReplyFacts(
    stop_reason="end-of-turn",
    prompt_tokens=1200,
    resumed_tokens=0,
    completion_tokens=96,
    timings=Timings(prefill_ms=380.0, first_token_ms=400.0, decode_ms=3047.6),
)


def turn(facts: ReplyFacts | None = FACTS, state: TurnState = TurnState.WHOLE) -> Turn:
    return Turn(2, 1, 0, "assistant", "text", 0, state, reply=facts)


def test_speed_count_first_token_and_end_stand_in_this_order() -> None:
    line = status_text(turn())
    assert line == "31.5 tok/s  ·  96 tokens  ·  first token 0.4 s  ·  finished"


def test_what_was_not_measured_is_a_dash() -> None:
    bare = ReplyFacts(stop_reason="stopped", completion_tokens=0, timings=Timings())
    line = status_text(turn(bare, TurnState.STOPPED))
    assert line == "– tok/s  ·  0 tokens  ·  first token –  ·  stopped by you"
    one = dataclasses.replace(FACTS, completion_tokens=1, timings=Timings(decode_ms=0.0))
    assert status_text(turn(one)).startswith("– tok/s  ·  1 token")
    assert "first token –" in status_text(turn(one))
    assert status_text(turn(ReplyFacts())).startswith("– tok/s  ·  – tokens")


def test_each_way_to_end_has_its_words() -> None:
    for reason, words in (
        ("max-tokens", "reached the limit"),
        ("context-full", "context is full"),
        ("stop-string", "finished at a stop text"),
    ):
        assert status_text(turn(dataclasses.replace(FACTS, stop_reason=reason))).endswith(words)
    assert "closed before" in status_text(turn(state=TurnState.CUT))


def test_high_speeds_have_no_decimals_and_large_numbers_have_separators() -> None:
    fast = dataclasses.replace(
        FACTS, completion_tokens=12000, timings=Timings(decode_ms=10000.0, first_token_ms=42.0)
    )
    assert status_text(turn(fast)).startswith(
        "1,200 tok/s  ·  12,000 tokens  ·  first token 0.04 s"
    )


def test_the_context_in_use_is_prompt_and_reply() -> None:
    assert context_tokens(turn()) == 1296
    assert context_tokens(turn(None)) == 0


def test_a_dead_engine_is_told_without_alarm_and_an_unknown_cause_with_its_own_sentence() -> None:
    assert words_of(Problem("engine-died", "x")).title == "The engine stopped and was restarted."
    other = words_of(Problem("never-heard-of", "It does not go."))
    assert (other.title, other.sentence) == ("There is no reply", "It does not go.")
