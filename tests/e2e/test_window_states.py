"""What the window tells the engine of its chats, and a person of kept states, over a script."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from app.chat.blocks.remarks import StatusLine
from app.chat.kept.words import left_out_note
from app.chat.session import ChatSession
from app.chat.session_facts import ChatState
from app.library.loaded import ModelPhase
from engine.protocol import ChatTier
from tests.helpers.fake_engine import DEFAULT_REPLY, Script
from tests.helpers.fake_script import Resume, Wait
from tests.helpers.qt import press, wait_until
from tests.helpers.window import TestWindow

OpenWindow = Callable[..., TestWindow]
COUNTING = " ".join(str(number) for number in range(400))
FROM_DISK = Resume(tokens=8192, tier="disk", bytes=590_000_000, ms=204.0)
GIB = 2**30


@pytest.fixture
def heard(tmp_path: Path) -> Path:
    return tmp_path / "heard"


def said(heard: Path, kind: str) -> list[list[str]]:
    """The conversations that each message of a kind named."""
    lines = heard.read_text().splitlines() if heard.exists() else []
    found = [json.loads(line) for line in lines]
    return [line["conversations"] for line in found if line["type"] == kind]


def loads(heard: Path) -> list[dict[str, object]]:
    """The loads that were asked for."""
    found = [json.loads(line) for line in heard.read_text().splitlines()]
    return [line for line in found if line["type"] == "Load"]


# What the engine is told -------------------------------------------------------------------------


def test_the_engine_knows_every_chat_and_which_are_open(
    open_window: OpenWindow, heard: Path
) -> None:
    first = open_window().started()
    first.ask("one")
    first.chats().new()
    first.ask("two")
    one = first.chats().entries[1].id
    first.chats().trash(one)
    wait_until(lambda: len(first.chats().entries) == 1)
    first.close()
    second = open_window(Script(heard=str(heard))).started()
    wait_until(lambda: said(heard, "KnownChats") == [["1", "2"]])
    wait_until(lambda: bool(said(heard, "OpenChats")))
    assert said(heard, "OpenChats")[-1] == ["2"]
    second.chats().new()
    wait_until(lambda: said(heard, "OpenChats")[-1] == [])
    second.ask("three")
    wait_until(lambda: said(heard, "OpenChats")[-1] == ["3"])


def test_a_chat_that_answers_in_the_background_is_open_too(
    open_window: OpenWindow, heard: Path
) -> None:
    window = open_window(Script(reply=COUNTING, words_per_s=100, heard=str(heard))).started()
    window.write("Count")
    wait_until(lambda: len(window.reply_so_far()) > 10)
    window.chats().new()
    window.write("Count again")
    wait_until(lambda: bool(said(heard, "OpenChats")) and len(said(heard, "OpenChats")[-1]) == 2)
    assert said(heard, "OpenChats")[-1] == ["1", "2"]


def test_the_next_engine_is_told_again(open_window: OpenWindow, heard: Path) -> None:
    window = open_window(Script(heard=str(heard))).started()
    window.ask("one")
    heard.unlink()
    window.whole.workshop.client.kill()
    wait_until(lambda: window.model().phase is not ModelPhase.READY)
    wait_until(lambda: window.model().phase is ModelPhase.READY)
    wait_until(lambda: said(heard, "KnownChats") == [["1"]])
    assert said(heard, "OpenChats") == [["1"]]


def test_what_is_kept_of_a_chat_goes_when_it_is_removed_for_good_and_not_before(
    open_window: OpenWindow, heard: Path
) -> None:
    window = open_window(Script(heard=str(heard))).started()
    window.ask("one")
    chat = window.chats().entries[0].id
    window.chats().trash(chat)
    wait_until(lambda: window.chats().entries == ())
    window.ask("two")
    assert said(heard, "ClearStates") == []
    window.chats().erase(chat)
    wait_until(lambda: said(heard, "ClearStates") == [[str(chat)]])


def test_without_an_engine_a_chat_can_still_be_removed_for_good(open_window: OpenWindow) -> None:
    window = open_window(Script(end_at="start", end_how="exit")).start()
    wait_until(lambda: window.page.session is not None)
    window.write("one")
    wait_until(lambda: len(window.chats().entries) == 1)
    chat = window.chats().entries[0].id
    window.chats().trash(chat)
    window.chats().erase(chat)
    removed: list[int] = []
    window.chats().erased.connect(removed.append)
    wait_until(lambda: removed == [chat])
    assert window.chats().entries == ()


def test_another_model_cannot_resume_what_the_one_before_could(open_window: OpenWindow) -> None:
    window = open_window(Script(resume=FROM_DISK)).started()
    kept = window.whole.workshop.kept
    window.ask("one")
    wait_until(lambda: {chat: t.tier for chat, t in kept.tiers.items()} == {1: "device"})
    other = window.places.data / "other.gguf"
    other.write_bytes(b"GGUF")
    assert window.whole.choice is not None
    window.whole.choice.choose(str(other))
    assert kept.tiers == {}
    wait_until(lambda: window.model().phase is ModelPhase.READY)


def test_from_where_each_chat_goes_on_is_known_until_the_engine_dies(
    open_window: OpenWindow,
) -> None:
    tiers = (ChatTier(conversation="1", tier="disk", tokens=9),)
    window = open_window(Script(tiers=tiers, resume=FROM_DISK)).started()
    kept = window.whole.workshop.kept
    wait_until(lambda: {chat: t.tier for chat, t in kept.tiers.items()} == {1: "disk"})
    window.ask("one")
    wait_until(lambda: {chat: t.tier for chat, t in kept.tiers.items()} == {1: "device"})
    seen: list[object] = []
    kept.changed.connect(seen.append)
    window.whole.workshop.client.kill()
    wait_until(lambda: seen == [{}] or len(seen) > 1)
    assert seen[0] == {}


# What a person is told ---------------------------------------------------------------------------


def test_how_a_reply_was_resumed_stands_under_it_and_is_kept(open_window: OpenWindow) -> None:
    window = open_window(Script(resume=FROM_DISK)).started()
    window.ask("one")
    words = "resumed 8,192 of 1 tokens from disk, 590 MB in 0.2 s"
    assert window.chips() == [words]
    line = window.page.transcript.column.blocks[-1]
    assert isinstance(line, StatusLine) and line.chip is not None
    assert line.chip.isVisible() and line.chip.toolTip().startswith("Resumed 8,192")
    assert line.chip.geometry().right() <= line.width()
    window.close()
    assert open_window().started().chips() == [words]


def test_why_little_was_resumed_is_told_but_not_of_a_first_message(
    open_window: OpenWindow,
) -> None:
    window = open_window(Script(resume=Resume(reason="nothing-kept"))).started()
    window.ask("one")
    assert window.chips() == [""]
    window.ask("two more words")
    assert window.chips() == ["", "read 10: nothing was kept"]
    window.close()
    edited = open_window(Script(resume=Resume(tokens=5, reason="edited"))).started()
    edited.ask("three")
    assert edited.chips()[-1] == "read 12 again: message edited"


def test_in_a_narrow_window_the_chip_stands_below_the_facts(open_window: OpenWindow) -> None:
    window = open_window(Script(resume=FROM_DISK)).started()
    window.ask("one")
    line = window.page.transcript.column.blocks[-1]
    assert isinstance(line, StatusLine) and line.chip is not None
    assert line.chip.y() == 0
    tall = line.height()
    window.window.resize(480, 600)
    wait_until(lambda: line.height() > tall)
    assert line.chip.y() > 0 and line.chip.geometry().right() <= line.width()


@pytest.mark.parametrize(
    ("wait", "words"),
    [
        (Wait(seconds=30, position=2), "Waiting: number 2 in line, 4 chats answer at once"),
        (Wait(seconds=30, reason="loading"), "Waiting: the model is loading"),
        (
            Wait(seconds=30, reason="memory", needed_bytes=5 * GIB // 4, free_bytes=GIB),
            "Waiting for 1.3 GiB of memory, 1.0 GiB are free",
        ),
    ],
)
def test_what_a_message_waits_for_is_told_also_after_coming_back_to_its_chat(
    open_window: OpenWindow, wait: Wait, words: str
) -> None:
    window = open_window(Script(wait=wait)).started()
    window.write("one")
    wait_until(lambda: window.waiting() == words)
    session = window.page.session
    assert session is not None and session.conversation is not None
    window.chats().new()
    assert window.waiting() == ""
    window.chats().open(session.conversation.id)
    assert window.waiting() == words
    window.page.stop()
    wait_until(window.idle)
    assert window.waiting() == ""


def test_a_message_brings_a_model_back_that_was_unloaded(open_window: OpenWindow) -> None:
    window = open_window(Script(load_s=0.5)).started()
    window.whole.workshop.model.unload()
    assert window.model().phase is ModelPhase.UNLOADED
    window.write("one")
    wait_until(lambda: window.waiting().startswith("Waiting for"))
    wait_until(lambda: f"reply: {DEFAULT_REPLY}" in window.shown() and window.idle())
    assert window.model().phase is ModelPhase.READY


def test_two_chats_answer_at_the_same_time(open_window: OpenWindow) -> None:
    window = open_window(Script(reply=COUNTING, words_per_s=100, at_once=4)).started()
    sessions: list[ChatSession] = []
    for _ in range(2):
        window.chats().new()
        assert window.page.session is not None
        sessions.append(window.page.session)
        window.write("Count")
        wait_until(lambda: len(window.reply_so_far()) > 10)
    before = [len(session.reply_so_far) for session in sessions]
    wait_until(
        lambda: all(
            len(session.reply_so_far) > length + 20
            for session, length in zip(sessions, before, strict=True)
        )
    )
    assert all(session.state is ChatState.ANSWERING for session in sessions)
    first = sessions[0].conversation
    assert first is not None
    window.page.stop()
    wait_until(window.idle)
    window.chats().open(first.id)
    wait_until(lambda: len(window.reply_so_far()) > before[0] + 40)
    assert window.shown()[-1] == f"reply: {window.reply_so_far()}"
    window.page.stop()
    wait_until(window.idle)


# The full context --------------------------------------------------------------------------------


def test_what_no_longer_fits_is_marked_at_its_place_and_not_sent_again(
    open_window: OpenWindow,
) -> None:
    first = open_window().started()
    first.ask("one")
    first.ask("two")
    first.close()
    full = open_window(Script(resume=Resume(dropped_messages=2))).started()
    full.ask("three")
    note = f"note: {left_out_note()}"
    kinds = [words if words == note else words.partition(" ")[0] for words in full.shown()]
    turn = ["user:", "reply:", "status:"]
    assert kinds == [*turn, note, *turn, *turn]
    full.close()
    again = open_window(Script(reply="{messages}")).started()
    assert again.shown().count(note) == 1
    assert again.shown()[3:5] == [note, "user: two"]
    again.ask("four")
    sent = f"user:two|assistant:{DEFAULT_REPLY}|user:three|assistant:{DEFAULT_REPLY}|user:four"
    assert f"reply: {sent}" in again.shown()
    assert again.shown().count(note) == 1


def test_an_edit_before_the_full_context_sees_all_of_its_own_path(
    open_window: OpenWindow,
) -> None:
    first = open_window().started()
    first.ask("one")
    first.close()
    script = Script(reply="{messages}", resume=Resume(dropped_messages=2))
    window = open_window(script).started()
    window.ask("two")
    assert window.shown()[3:5] == [f"note: {left_out_note()}", "user: two"]
    window.page.edit_last()
    window.page.composer.set_draft("two, edited")
    press(window.page.composer.field, Qt.Key.Key_Return, "\r")
    wait_until(lambda: not window.idle())
    wait_until(window.idle)
    sent = f"user:one|assistant:{DEFAULT_REPLY}|user:two, edited"
    assert f"reply: {sent}" in window.shown()


# Refusals ----------------------------------------------------------------------------------------


def refused(heard: Path) -> Script:
    return Script(
        load_failure="memory-refused",
        refusal={
            "needed_bytes": 14 * GIB,
            "free_bytes": 9 * GIB,
            "pool": "gpu0",
            "others_bytes": 3 * GIB,
            "fitting_context_tokens": 16384,
        },
        heard=str(heard),
    )


def test_a_model_that_does_not_fit_is_told_in_gib_and_loads_with_a_shorter_context(
    open_window: OpenWindow, heard: Path
) -> None:
    window = open_window(refused(heard)).start()
    wait_until(lambda: window.model().phase is ModelPhase.FAILED)
    state = window.model()
    assert state.sentence == (
        "Needs 14.0 GiB; 9.0 GiB is free on GPU 0. Other programs hold 3.0 GiB. "
        "A context of 16,384 tokens would fit."
    )
    assert state.refusal is not None and state.refusal.fitting_context_tokens == 16384
    window.whole.workshop.model.shorten(16384)
    wait_until(lambda: window.model().phase is ModelPhase.READY)
    assert [(load["context_tokens"], load["spends_headroom"]) for load in loads(heard)] == [
        (None, False),
        (16384, False),
    ]
    facts = window.model().facts
    assert facts is not None and facts.context_tokens == 16384


def test_a_model_that_does_not_fit_can_be_loaded_anyway_and_stays_so_after_a_death(
    open_window: OpenWindow, heard: Path
) -> None:
    window = open_window(refused(heard)).start()
    wait_until(lambda: window.model().phase is ModelPhase.FAILED)
    window.whole.workshop.model.load_anyway()
    wait_until(lambda: window.model().phase is ModelPhase.READY)
    assert loads(heard)[-1]["spends_headroom"] is True
    window.whole.workshop.client.kill()
    wait_until(lambda: window.model().phase is not ModelPhase.READY)
    wait_until(lambda: window.model().phase is ModelPhase.READY)
    assert [load["spends_headroom"] for load in loads(heard)] == [False, True, True]


def test_another_model_is_loaded_in_the_usual_way_again(
    open_window: OpenWindow, heard: Path
) -> None:
    window = open_window(refused(heard)).start()
    wait_until(lambda: window.model().phase is ModelPhase.FAILED)
    window.whole.workshop.model.load_anyway()
    wait_until(lambda: window.model().phase is ModelPhase.READY)
    other = window.places.data / "other.gguf"
    other.write_bytes(b"GGUF")
    assert window.whole.choice is not None
    window.whole.choice.choose(str(other))
    wait_until(lambda: window.model().phase is ModelPhase.FAILED)
    assert loads(heard)[-1]["spends_headroom"] is False
    began = time.monotonic()
    window.close()
    assert time.monotonic() - began < 5
