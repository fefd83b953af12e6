"""A question and its reply on their way to the store, as the command line keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.chat.conversation import TurnState
from app.chat.store import Store, open_store
from app.cli.chat_log import WRITE_S, ReplyLog, open_chat
from app.errors import InputInvalid, StoreFull
from engine.protocol import Failure, Finished, Loaded, ModelFacts, Sampling, Timings, Tokens

MODEL = ModelFacts(
    name="m", path="/m.gguf", architecture="a", context_tokens=1, vocabulary=1, file_bytes=1,
    format="f", has_template=True, template_hash="t",
)  # fmt: skip

LOADED = Loaded(request=1, model=MODEL, load_ms=1.0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "chats.sqlite3").store as opened:
        yield opened


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def log_on(store: Store, clock: Clock) -> ReplyLog:
    chat = open_chat(store, "c", None)
    return ReplyLog(store, chat, "a question", LOADED, Sampling(), clock=clock)


def tokens(text: str, *ids: int) -> Tokens:
    return Tokens(request=1, region="answer", text=text, ids=ids)


def reply_of(store: Store, log: ReplyLog) -> tuple[TurnState, str, tuple[int, ...]]:
    reply = store.conversations.read(log.conversation.id).path()[-1]
    return reply.state, reply.text, reply.ids


def test_the_question_is_stored_before_anything_is_asked(store: Store) -> None:
    log = log_on(store, Clock())
    asked, reply = store.conversations.read(log.conversation.id).path()
    assert (asked.text, reply.state) == ("a question", TurnState.STREAMING)
    assert store.conversations.read(log.conversation.id).model == "/m.gguf"


def test_what_comes_is_on_disk_within_half_a_second(store: Store) -> None:
    clock = Clock()
    log = log_on(store, clock)
    log.add(tokens("one", 1))
    assert reply_of(store, log)[1] == ""
    clock.now = WRITE_S
    log.add(tokens(" two", 2))
    assert WRITE_S < 0.5
    assert reply_of(store, log) == (TurnState.STREAMING, "one two", (1, 2))


@pytest.mark.parametrize(("end", "state"), [("cut", TurnState.STOPPED), ("fail", TurnState.FAILED)])
def test_an_early_end_keeps_what_came(store: Store, end: str, state: TurnState) -> None:
    log = log_on(store, Clock())
    log.add(tokens("one", 1))
    if end == "cut":
        log.cut()
    else:
        log.fail(Failure(code="x", sentence="why"))
    assert reply_of(store, log) == (state, "one", (1,))


def test_a_whole_reply_is_stored_with_how_it_came_to_be(store: Store) -> None:
    log = log_on(store, Clock())
    finished = Finished(
        request=1, text="one", ids=(1, 2), prompt_tokens=5, resumed_tokens=3, seed=2**63,
        timings=Timings(prefill_ms=2.0), stop_reason="max-tokens", template_hash="t",
    )  # fmt: skip
    log.finish(finished)
    reply = store.conversations.read(log.conversation.id).path()[-1]
    assert (reply.state, reply.ids) == (TurnState.WHOLE, (1, 2))
    assert reply.reply is not None
    assert (reply.reply.seed, reply.reply.resumed_tokens) == (2**63, 3)
    assert reply.reply.timings == Timings(prefill_ms=2.0)


def test_the_question_belongs_to_its_chat_and_leaves_out_what_no_longer_fits(store: Store) -> None:
    first = log_on(store, Clock())
    asked = first.question()
    assert (asked.conversation, asked.may_drop) == (str(first.conversation.id), True)
    assert first.left_out == 0
    first.finish(
        Finished(
            request=1, text="one", ids=(1,), prompt_tokens=5, resumed_tokens=3, seed=1,
            resumed_from="disk", resumed_bytes=7, resumed_ms=1.5, reason="edited",
            timings=Timings(), stop_reason="end-of-turn",
        )
    )  # fmt: skip
    second = log_on(store, Clock())
    assert [m.text for m in second.question().messages] == ["a question", "one", "a question"]
    second.finish(
        Finished(
            request=2, text="two", ids=(1,), prompt_tokens=5, resumed_tokens=0, seed=1,
            dropped_messages=2, timings=Timings(), stop_reason="end-of-turn",
        )
    )  # fmt: skip
    assert second.left_out == 2
    third = log_on(store, Clock())
    assert [m.text for m in third.question().messages] == ["a question", "two", "a question"]
    facts = [t.reply for t in store.conversations.read(first.conversation.id).path() if t.reply]
    assert [f.dropped_messages for f in facts] == [0, 2, 2]
    kept = facts[0]
    assert (kept.resumed_from, kept.resumed_bytes, kept.resumed_ms) == ("disk", 7, 1.5)
    assert (kept.reason, kept.on_gpu) == ("edited", False)


def test_a_full_disk_is_told_while_the_reply_comes(store: Store) -> None:
    clock = Clock()
    log = log_on(store, clock)
    database = store.turns._database
    database.read(f"PRAGMA max_page_count = {database.pragma('page_count')}")
    clock.now = 1.0
    with pytest.raises(StoreFull):
        log.add(tokens("x" * 100_000, 1))


def test_a_name_begins_a_conversation_once(store: Store) -> None:
    first = open_chat(store, "trip", "S")
    assert open_chat(store, "trip", None).id == first.id
    assert open_chat(store, "trip", None).system == "S"
    assert open_chat(store, "trip", "").system == ""
    store.conversations.create(title="trip")
    with pytest.raises(InputInvalid, match="2 conversations"):
        open_chat(store, "trip", None)
