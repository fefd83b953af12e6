"""What is asked for a reply that goes on, what is kept of it, what can be done with a turn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.chat.conversation import (
    Conversation,
    ReplyContent,
    ReplyFacts,
    Turn,
    TurnState,
    with_turns,
)
from app.chat.store import open_store
from app.chat.turns.asking import Asking, finished_facts, may_go_on, question_of
from app.chat.turns.code import last_code
from app.chat.turns.deeds import TurnVerb, Version, deeds_of, version_of, versions_of
from app.chat.turns.desk import plain_text
from app.chat.turns.info import info_of, info_text
from app.chat.turns.parts.announcer import LONGEST, Announcer
from app.chat.turns.parts.thinking_words import thinking_words, thought_words
from engine.protocol import Finished, Sampling, Timings
from tests.helpers.qt import application

FACTS = ReplyFacts(
    model_name="Qwen3.5 4B",
    template_hash="t",
    sampling=Sampling(temperature=0.7, repetition_penalty=1.1, stop=("\n\n",)),
    seed=11,
    stop_reason="stopped",
    prompt_tokens=100,
    completion_tokens=20,
    timings=Timings(queue_ms=1.0, prefill_ms=50.0, first_token_ms=60.0, decode_ms=400.0),
    notes=("A note.",),
)
USER = Turn(1, None, 0, "user", "Why?", 0)
REPLY = Turn(2, 1, 0, "assistant", "Because", 0, TurnState.STOPPED, "Hm", tuple(range(20)), FACTS)


def chat(*turns: Turn) -> Conversation:
    made = with_turns(Conversation(7, "title", 0, 0, date="2026-01-01"), turns)
    return replace(made, leaf=turns[-1].id)


def finished(**facts: object) -> Finished:
    return Finished(
        **{
            "request": 1,
            "text": "Because it is",
            "ids": tuple(range(50)),
            "prompt_tokens": 120,
            "resumed_tokens": 115,
            "begun_tokens": 20,
            "timings": Timings(queue_ms=2.0, prefill_ms=5.0, first_token_ms=6.0, decode_ms=600.0),
            "stop_reason": "end-of-turn",
            "seed": 11,
            **facts,
        }  # type: ignore[arg-type]
    )


# Going on --------------------------------------------------------------------------------------


def test_a_reply_that_goes_on_is_asked_for_with_its_beginning_and_its_own_number() -> None:
    other = replace(REPLY, id=3, sibling=1)
    there = chat(USER, REPLY, other)
    question = question_of(there, USER, REPLY)
    assert question.begun is not None
    assert (question.begun.text, question.begun.thinking_text) == ("Because", "Hm")
    assert (question.begun.ids, question.begun.template_hash) == (tuple(range(20)), "t")
    assert (question.sibling, len(question.messages)) == (0, 1)
    new = question_of(there, USER)
    assert (new.begun, new.sibling) == (None, 2)


def test_ids_without_a_template_are_not_sent() -> None:
    bare = replace(REPLY, reply=replace(FACTS, template_hash=None))
    question = question_of(chat(USER, bare), USER, bare)
    assert question.begun is not None and question.begun.ids == ()


def test_what_is_measured_of_a_reply_in_two_parts_is_of_the_whole() -> None:
    facts = finished_facts(ReplyFacts(model_name="m"), finished(), FACTS)
    assert (facts.prompt_tokens, facts.resumed_tokens, facts.completion_tokens) == (100, 100, 50)
    assert facts.timings == Timings(
        queue_ms=1.0, prefill_ms=50.0, first_token_ms=60.0, decode_ms=1000.0
    )
    one = finished_facts(ReplyFacts(), finished(begun_tokens=0))
    assert (one.prompt_tokens, one.resumed_tokens) == (120, 115)


def test_a_speed_is_not_made_up_where_the_first_part_was_not_measured() -> None:
    cut = replace(FACTS, timings=None)
    facts = finished_facts(ReplyFacts(), finished(), cut)
    assert facts.timings is not None
    assert (facts.timings.decode_ms, facts.timings.first_token_ms) == (None, None)


@pytest.mark.parametrize(
    ("state", "reason", "goes_on"),
    [
        (TurnState.STOPPED, "stopped", True),
        (TurnState.CUT, None, True),
        (TurnState.FAILED, "failed", True),
        (TurnState.WHOLE, "max-tokens", True),
        (TurnState.WHOLE, "context-full", True),
        (TurnState.WHOLE, "end-of-turn", False),
        (TurnState.WHOLE, "stop-string", False),
        (TurnState.WHOLE, "edited", False),
        (TurnState.STREAMING, None, False),
    ],
)
def test_only_what_its_model_did_not_end_goes_on(
    state: TurnState, reason: str | None, goes_on: bool
) -> None:
    turn = replace(REPLY, state=state, reply=replace(FACTS, stop_reason=reason))
    assert may_go_on(turn) is goes_on
    assert not may_go_on(replace(turn, text="", thinking_text=""))
    assert not may_go_on(USER)


def test_a_new_reply_begins_with_nothing() -> None:
    asking = Asking(7, 1, question_of(chat(USER), USER), Sampling(), FACTS)
    assert asking.begun.text == "" and asking.begun.ids == ()


# Deeds and versions ----------------------------------------------------------------------------


def test_versions_are_counted_from_one_among_the_turns_of_one_parent() -> None:
    other = replace(REPLY, id=3, sibling=4)
    there = chat(USER, REPLY, other)
    assert version_of(there, USER) is None
    assert version_of(there, other) == Version(2, 2)
    assert versions_of(there) == {1: None, 2: Version(1, 2), 3: Version(2, 2)}


def test_only_the_last_reply_goes_on_and_only_while_nothing_runs() -> None:
    def enabled(there: Conversation, *, busy: bool) -> set[TurnVerb]:
        return {deed.verb for deed in deeds_of(there, REPLY, busy=busy) if deed.enabled}

    last = chat(USER, REPLY)
    assert TurnVerb.CONTINUE in enabled(last, busy=False)
    reading = {TurnVerb.COPY, TurnVerb.COPY_PLAIN, TurnVerb.COPY_THOUGHTS, TurnVerb.INFO}
    assert enabled(last, busy=True) == reading
    followed = chat(USER, REPLY, Turn(3, 2, 0, "user", "And?", 0))
    assert TurnVerb.CONTINUE not in enabled(followed, busy=False)
    assert TurnVerb.AGAIN in enabled(followed, busy=False)


# Words -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("no code `here`", None),
        ("```py\na\n```", "a\n"),
        ("```\na\n```\n\n~~~\nb\n```\n~~~\n", "b\n```\n"),
        ("````\n```\nx\n```\n````", "```\nx\n```\n"),
        ("text\n```sh\nstill written", "still written"),
        ("```", ""),
        ("a ``` b\n", None),
    ],
)
def test_the_last_block_of_code_is_found(text: str, code: str | None) -> None:
    assert last_code(text) == code


def test_plain_text_has_no_signs_of_markdown_and_a_huge_one_stays() -> None:
    application()
    assert plain_text("# One\n\n**two** [three](http://x.invalid)") == "One\ntwo three"
    huge = "**a** " * 100_000
    assert plain_text(huge) == huge


def test_thinking_is_told_with_its_time_and_afterwards_with_its_tokens() -> None:
    assert thinking_words(0) == "Thinking"
    assert thinking_words(6) == "Thinking, 6 s"
    assert thinking_words(65) == "Thinking, 1 min 5 s"
    assert thought_words(4200.0, 212) == "Thought for 4 s · 212 tokens"
    assert thought_words(10.0, 3) == "Thought for 1 s · 3 tokens"
    assert thought_words(None, None) == "Thoughts"


def test_all_that_is_known_of_a_reply_is_told_and_nothing_else() -> None:
    text = info_text(info_of(chat(USER, REPLY), REPLY))
    for line in (
        "Model: Qwen3.5 4B", "Chat template: t", "Read: 100 tokens", "Written: 20 tokens",
        "Temperature: 0.7", "Repetition penalty: 1.1", "Stop texts: '\\n\\n'", "Seed: 11",
        "First token after: 0.06 s", "Note: A note.",
    ):  # fmt: skip
        assert line in text.splitlines()
    assert "Digest" not in text and "top-k" not in text and "penalty: 0" not in text
    assert info_of(chat(USER), USER) == ()


def test_a_reply_is_told_by_the_sentence_and_a_long_one_in_parts() -> None:
    heard: list[str] = []
    announcer = Announcer(None, heard.append)  # type: ignore[arg-type]
    for piece in ("It costs 3.", "50 euros. Th", "en\nmore", " 中文。还有"):
        announcer.hear(piece)
    assert heard == ["It costs 3.50 euros.", "Then", "more 中文。"]
    announcer.hear("x" * (LONGEST + 1))
    assert heard[-1] == "还有" + "x" * (LONGEST - 2)
    announcer.hear(" the end")
    announcer.finish()
    assert heard[-2:] == ["xxx the end", "The reply is finished"]


def test_a_reply_that_goes_on_is_cut_and_not_lost_where_the_app_is_killed(tmp_path: Path) -> None:
    """A process that ends without a word leaves what was written last."""
    file = tmp_path / "chats.sqlite3"
    with open_store(file).store as store:
        made = store.conversations.create()
        user = store.turns.add_user(made.id, None, "Why?")
        reply = store.turns.begin_reply(made.id, user.id, FACTS)
        content = ReplyContent("Because", "Hm", (1, 2))
        store.turns.end_reply(reply.id, TurnState.STOPPED, content, FACTS)
        store.turns.write_reply(reply.id, content)
        store.turns.write_reply(reply.id, replace(content, text="Because it", ids=(1, 2, 3)))
    with open_store(file).store as store:
        store.turns.mark_cut()
        found = store.turns.read(reply.id)
    assert (found.state, found.text, found.ids) == (TurnState.CUT, "Because it", (1, 2, 3))
    assert found.reply == FACTS and may_go_on(found)
