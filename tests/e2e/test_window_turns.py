"""Turns in the whole window: continue, versions, thoughts, what can be done with each of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.chat.blocks.inline_error import InlineError
from app.chat.turns.deeds import TurnVerb
from app.library.loaded import ModelPhase
from engine.protocol import Sampling
from tests.helpers.fake_engine import Script
from tests.helpers.qt import press, wait_until
from tests.helpers.turns import chat, do, path, rows, session, stop_after, thoughts
from tests.helpers.window import TestWindow

OpenWindow = Callable[..., TestWindow]
COUNTING = " ".join(str(number) for number in range(120))


# Continue --------------------------------------------------------------------------------------


def test_a_stopped_reply_goes_on_in_its_own_turn_and_loses_nothing(
    open_window: OpenWindow,
) -> None:
    window = open_window(Script(reply=COUNTING, words_per_s=150)).started()
    stop_after(window, "Count", 40)
    (user, cut), ids = path(window), path(window)[1].ids
    assert COUNTING.startswith(cut.text) and len(cut.text) < len(COUNTING)
    window.page.continue_reply()
    wait_until(lambda: len(window.reply_so_far()) > len(cut.text) + 20)
    assert window.shown()[-1] == f"reply: {window.reply_so_far()}"
    wait_until(window.idle)
    assert window.shown()[:2] == ["user: Count", f"reply: {COUNTING}"]
    assert len(window.shown()) == 3 and window.shown()[2].endswith("finished")
    whole = path(window)[1]
    assert (whole.id, whole.parent, whole.text) == (cut.id, user.id, COUNTING)
    assert whole.ids[: len(ids)] == ids and len(whole.ids) == 120
    assert whole.reply is not None and whole.reply.completion_tokens == 120


def test_a_reply_at_its_limit_goes_on_and_one_that_ended_does_not(
    open_window: OpenWindow,
) -> None:
    window = open_window(Script(reply=COUNTING)).started()
    services = session(window)._services
    limited = Sampling(max_tokens=30)
    object.__setattr__(services, "sampling", limited)
    window.ask("Count")
    assert window.shown()[-1].endswith("reached the limit")
    button = rows(window)[-1].buttons[2]
    assert button.accessibleName() == "Continue" and button.isEnabled()
    for tokens in (60, 90, 120):
        window.page.continue_reply()
        wait_until(window.idle)
        assert len(path(window)[1].ids) == tokens
    object.__setattr__(services, "sampling", Sampling())
    window.page.continue_reply()
    wait_until(window.idle)
    assert path(window)[1].text == COUNTING and window.shown()[-1].endswith("finished")
    assert not rows(window)[-1].buttons[2].isEnabled()
    window.page.continue_reply()
    assert window.idle()


def test_a_reply_that_the_app_s_end_cut_goes_on_after_the_next_start(
    open_window: OpenWindow,
) -> None:
    first = open_window(Script(reply=COUNTING, words_per_s=100)).started()
    first.write("Count")
    wait_until(lambda: len(first.reply_so_far()) > 60)
    first.close()
    second = open_window(Script(reply=COUNTING)).started()
    begun = path(second)[1].text
    assert second.shown()[-1] == "status: Hearth was closed before this reply ended"
    assert COUNTING.startswith(begun) and begun
    second.page.continue_reply()
    wait_until(second.idle)
    assert path(second)[1].text == COUNTING
    assert second.shown()[-1].endswith("finished")


def test_what_a_reply_had_before_it_went_on_is_kept_when_the_app_ends_in_between(
    open_window: OpenWindow,
) -> None:
    first = open_window(Script(reply=COUNTING, words_per_s=100)).started()
    stop_after(first, "Count", 40)
    begun = path(first)[1].text
    first.page.continue_reply()
    wait_until(lambda: len(first.reply_so_far()) > len(begun) + 30)
    first.close()
    second = open_window(Script(reply=COUNTING)).started()
    text = path(second)[1].text
    assert COUNTING.startswith(text) and len(text) > len(begun) + 20


def test_after_the_engine_died_a_reply_can_go_on_from_the_card(
    open_window: OpenWindow, tmp_path: Path
) -> None:
    once = str(tmp_path / "killed")
    script = Script(reply=COUNTING, words_per_s=200, end_at="reply", end_after=9, once=once)
    window = open_window(script).started()
    window.ask("Count")
    card = window.page.transcript.column.blocks[-1]
    assert isinstance(card, InlineError)
    assert [choice.text for choice in card.facts.choices] == ["Continue", "Answer again"]
    wait_until(lambda: window.model().phase is ModelPhase.READY)
    card.buttons[0].click()
    wait_until(window.idle)
    assert window.shown()[:2] == ["user: Count", f"reply: {COUNTING}"]


def test_a_reply_that_waits_to_go_on_is_shown_as_it_was_when_that_is_given_up(
    open_window: OpenWindow,
) -> None:
    window = open_window(Script(reply=COUNTING, words_per_s=150, load_s=3)).start()
    wait_until(lambda: window.idle() and window.model().phase is ModelPhase.READY)
    stop_after(window, "Count", 40)
    before = window.shown()
    window.whole.workshop.model.unload()
    wait_until(lambda: window.model().phase is ModelPhase.UNLOADED)
    window.page.continue_reply()
    wait_until(lambda: bool(window.waiting()))
    assert window.shown()[1] == before[1]
    window.page.stop()
    assert window.idle() and window.shown() == before
    assert window.page.composer.draft() == ""


# Versions --------------------------------------------------------------------------------------


def test_answers_to_one_message_are_versions_between_which_one_goes_by_arrows(
    open_window: OpenWindow,
) -> None:
    window = open_window(Script(reply="{seed} said")).started()
    window.ask("Say")
    assert all(row.versions is None for row in rows(window))
    first = path(window)[1].id
    for count in (2, 3):
        window.page.answer_again()
        wait_until(window.idle)
        assert len(chat(window).siblings(first)) == count
        assert len(window.shown()) == 3
    arrows = rows(window)[-1].versions
    assert arrows is not None and arrows.accessibleName() == "Version 3 of 3"
    assert arrows.earlier.isEnabled() and not arrows.later.isEnabled()
    arrows.earlier.click()
    arrows = rows(window)[-1].versions
    assert arrows is not None and arrows.accessibleName() == "Version 2 of 3"
    assert arrows.earlier.hasFocus() or not window.window.isActiveWindow()
    arrows.earlier.click()
    assert path(window)[1].id == first
    window.close()
    again = open_window().started()
    assert path(again)[1].id == first


def test_another_version_of_an_earlier_message_shows_what_followed_it(
    open_window: OpenWindow,
) -> None:
    window = open_window(Script(reply="{echo}!")).started()
    for text in ("one", "two"):
        window.ask(text)
    first = path(window)[0].id
    do(window, TurnVerb.EDIT, first)
    assert window.page.composer.draft() == "one"
    window.page.composer.set_draft("uno")
    press(window.page.composer.field, Qt.Key.Key_Return, "\r")
    wait_until(lambda: not window.idle())
    wait_until(window.idle)
    assert window.shown()[:2] == ["user: uno", "reply: uno!"] and len(window.shown()) == 3
    arrows = rows(window)[0].versions
    assert arrows is not None
    arrows.earlier.click()
    texts = [words for words in window.shown() if not words.startswith("status")]
    assert texts == ["user: one", "reply: one!", "user: two", "reply: two!"]


def test_a_version_is_shown_where_the_other_one_was(open_window: OpenWindow) -> None:
    window = open_window(Script(reply="{echo}\n" * 12)).started()
    for number in range(6):
        window.ask(f"message {number}")
    third = path(window)[5].id
    do(window, TurnVerb.AGAIN, third)
    for number in range(3):
        window.ask(f"other {number}")
    transcript = window.page.transcript
    new = path(window)[5].id
    row = next(row for row in rows(window) if row.facts.turn == new)
    transcript.verticalScrollBar().setValue(row.y() - 200)
    assert row.versions is not None
    row.versions.earlier.click()
    old = next(row for row in rows(window) if row.facts.turn == third)
    assert old.y() - transcript.verticalScrollBar().value() == 200
    assert not transcript.following


def test_what_was_typed_comes_back_after_an_edit(open_window: OpenWindow) -> None:
    window = open_window(Script(reply="{echo}!")).started()
    window.ask("one")
    composer = window.page.composer
    composer.set_draft("half a thought")
    do(window, TurnVerb.EDIT, path(window)[0].id)
    assert composer.draft() == "one"
    press(composer.field, Qt.Key.Key_Return, "\r")
    wait_until(lambda: not window.idle())
    wait_until(window.idle)
    assert composer.draft() == "half a thought"
    do(window, TurnVerb.EDIT, path(window)[0].id)
    composer.field.clear()
    assert composer.draft() == "half a thought"
    do(window, TurnVerb.EDIT, path(window)[0].id)
    window.chats().new()
    window.chats().open(window.chats().entries[0].id)
    wait_until(lambda: composer.draft() == "half a thought")


# Thoughts --------------------------------------------------------------------------------------


def test_thoughts_are_folded_and_laid_out_only_once_they_are_opened(
    open_window: OpenWindow,
) -> None:
    window = open_window(Script(reply="Yes.", thinking=COUNTING, words_per_s=200)).started()
    window.write("Think")
    wait_until(lambda: any(w.startswith("thoughts") for w in window.shown()))
    fold = thoughts(window)
    assert fold.head.text().startswith("Thinking") and not fold.is_open
    wait_until(window.idle)
    kinds = [words.partition(":")[0] for words in window.shown()]
    assert kinds == ["user", "thoughts", "reply", "status"]
    assert fold.text == COUNTING and not fold.is_open
    closed = fold.height()
    fold.head.click()
    assert fold.is_open and fold.height() > closed
    fold.head.click()
    assert not fold.is_open and fold.height() == closed


def test_open_thoughts_grow_while_they_come(open_window: OpenWindow) -> None:
    window = open_window(Script(reply="Yes.", thinking=COUNTING, words_per_s=100)).started()
    window.write("Think")
    wait_until(lambda: any(w.startswith("thoughts") for w in window.shown()))
    fold = thoughts(window)
    fold.head.click()
    tall = fold.height()
    wait_until(lambda: fold.height() > tall)
    wait_until(window.idle)
    assert fold.is_open


def test_a_reply_that_was_stopped_while_it_thought_goes_on_thinking(
    open_window: OpenWindow,
) -> None:
    window = open_window(Script(reply="Yes.", thinking=COUNTING, words_per_s=150)).started()
    window.write("Think")
    wait_until(lambda: any(w.startswith("thoughts") for w in window.shown()))
    window.page.stop()
    wait_until(window.idle)
    cut = path(window)[1]
    assert cut.text == "" and COUNTING.startswith(cut.thinking_text)
    window.page.continue_reply()
    wait_until(window.idle)
    whole = path(window)[1]
    assert (whole.thinking_text, whole.text) == (COUNTING, "Yes.")
    assert window.shown()[1:3] == [f"thoughts: {COUNTING}", "reply: Yes."]


def test_how_long_was_thought_is_told_and_kept(open_window: OpenWindow) -> None:
    window = open_window(Script(reply="Yes.", thinking=COUNTING, words_per_s=200)).started()
    window.ask("Think")
    words = "Thought for 1 s · 120 tokens"
    assert thoughts(window).head.text() == words
    window.close()
    again = open_window().started()
    assert thoughts(again).head.text() == words
    assert thoughts(again).accessibleName() == "Thoughts"


def test_alt_and_enter_in_the_composer_lets_the_reply_go_on(open_window: OpenWindow) -> None:
    window = open_window(Script(reply=COUNTING, words_per_s=150)).started()
    stop_after(window, "Count", 40)
    field = window.page.composer.field
    window.window.activateWindow()
    field.setFocus()
    QTest.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.AltModifier)
    wait_until(lambda: path(window)[1].text == COUNTING)
    assert window.page.composer.draft() == "" and len(path(window)) == 2
    wait_until(window.idle)
