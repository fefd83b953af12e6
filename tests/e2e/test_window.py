"""The window over a real child process that follows a script: what a person does and sees."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from app.chat.blocks.inline_error import InlineError
from app.chat.session_facts import ChatState
from app.library.loaded import ModelPhase
from app.look.theme import Preference
from app.look.tokens import DARK, LIGHT
from app.settings.file import SettingsFile
from tests.fuzz.window_kills import kill_many
from tests.helpers.fake_engine import DEFAULT_REPLY, Script
from tests.helpers.qt import left_of_qt, press, run_for, wait_until
from tests.helpers.window import TestWindow

OpenWindow = Callable[..., TestWindow]
QUESTION = "What is the capital of France?"
COUNTING = " ".join(str(number) for number in range(400))


def stored(window: TestWindow) -> list[tuple[str, str, str]]:
    """(role, state, text) of every turn on disk, as another process reads it."""
    with sqlite3.connect(f"file:{window.places.store_file}?mode=ro", uri=True) as connection:
        return connection.execute("SELECT role, state, text FROM turn ORDER BY id").fetchall()


def test_a_question_is_answered_in_the_transcript_and_kept(open_window: OpenWindow) -> None:
    window = open_window().started()
    window.ask(QUESTION)
    user, reply, status = window.shown()
    assert user == f"user: {QUESTION}"
    assert reply == f"reply: {DEFAULT_REPLY}"
    assert status.startswith("status: ") and status.endswith("finished")
    assert "6 tokens" in status
    assert stored(window) == [("user", "whole", QUESTION), ("assistant", "whole", DEFAULT_REPLY)]


def test_what_should_be_known_of_the_model_is_said_once_in_a_chat(open_window: OpenWindow) -> None:
    window = open_window(Script(model_notes=("The tokenizer rule is unknown.",))).started()
    for question in (QUESTION, "And again?"):
        window.ask(question)
    said = "note: The tokenizer rule is unknown."
    assert window.shown().count(said) == 1 and window.shown()[2] == said
    window.close()
    assert open_window().started().shown().count(said) == 1


def test_a_second_start_shows_the_conversation_and_sends_all_of_it(
    open_window: OpenWindow,
) -> None:
    first = open_window().started()
    first.ask(QUESTION)
    first.close()
    second = open_window(Script(reply="{messages}")).started()
    assert second.shown()[:2] == [f"user: {QUESTION}", f"reply: {DEFAULT_REPLY}"]
    second.ask("And of Spain?")
    sent = f"user:{QUESTION}|assistant:{DEFAULT_REPLY}|user:And of Spain?"
    assert f"reply: {sent}" in second.shown()


def test_a_stopped_reply_keeps_its_text_and_the_next_one_comes(open_window: OpenWindow) -> None:
    window = open_window(Script(reply=COUNTING, words_per_s=100)).started()
    window.write("Count")
    wait_until(lambda: len(window.reply_so_far()) > 20)
    began = time.monotonic()
    window.page.composer.button.click()
    wait_until(window.idle)
    assert time.monotonic() - began < 2
    reply, status = window.shown()[1:]
    assert COUNTING.startswith(reply.removeprefix("reply: ")) and len(reply) > 20
    assert status.endswith("stopped by you")
    assert stored(window)[1][:2] == ("assistant", "stopped")
    window.write("hi")
    wait_until(lambda: len(window.reply_so_far()) > 5)


def test_a_message_written_while_the_model_loads_is_on_disk_and_goes_out_when_it_is_ready(
    open_window: OpenWindow,
) -> None:
    window = open_window(Script(load_s=1.5, load_steps=10)).start()
    wait_until(lambda: window.model().phase is ModelPhase.LOADING and window.idle())
    window.write(QUESTION)
    wait_until(lambda: bool(stored(window)))
    assert stored(window) == [("user", "whole", QUESTION)]
    assert window.page.session is not None
    assert window.page.session.state in (ChatState.SAVING, ChatState.WAITING)
    wait_until(lambda: window.shown()[-1].startswith("status"))
    assert window.shown()[:2] == [f"user: {QUESTION}", f"reply: {DEFAULT_REPLY}"]


def test_a_message_that_waits_for_the_model_can_be_taken_back_and_changed(
    open_window: OpenWindow,
) -> None:
    window = open_window(Script(load_s=2, load_steps=10, reply="{messages}")).start()
    wait_until(lambda: window.model().phase is ModelPhase.LOADING and window.idle())
    window.write("frist")
    wait_until(lambda: bool(stored(window)) and window.page.session is not None)
    wait_until(lambda: window.page.session.state is ChatState.WAITING)  # type: ignore[union-attr]
    window.page.composer.button.click()
    assert window.idle() and window.page.composer.draft() == "frist"
    window.page.composer.set_draft("first")
    press(window.page.composer.field, Qt.Key.Key_Return, "\r")
    wait_until(lambda: window.shown()[-1].startswith("status"))
    assert window.shown()[:2] == ["user: first", "reply: user:first"]


def test_a_message_may_be_written_while_a_reply_comes_and_goes_out_at_its_end(
    open_window: OpenWindow,
) -> None:
    window = open_window(Script(reply="{echo} heard", words_per_s=20)).started()
    window.write("first one two three four five")
    wait_until(lambda: len(window.reply_so_far()) > 2)
    window.write("second")
    assert window.page.composer.draft() == "second"
    wait_until(lambda: "reply: second heard" in window.shown() and window.idle())
    kinds = [words.partition(":")[0] for words in window.shown()]
    assert kinds == ["user", "reply", "status", "user", "reply", "status"]


def test_after_the_engine_is_killed_the_text_stays_and_the_next_answer_comes(
    open_window: OpenWindow, tmp_path: Path
) -> None:
    once = str(tmp_path / "killed")
    script = Script(reply=COUNTING, words_per_s=200, end_at="reply", end_after=9, once=once)
    window = open_window(script).started()
    window.ask("Count")
    assert window.shown()[:2] == ["user: Count", "reply: " + COUNTING[:17]]
    assert window.shown()[-1] == "card: The engine stopped and was restarted."
    assert stored(window)[1] == ("assistant", "failed", COUNTING[:17])
    wait_until(lambda: window.model().phase is ModelPhase.READY)
    window.page.answer_again()
    wait_until(lambda: len(window.reply_so_far()) > 40)


def test_an_engine_that_dies_while_idle_is_told_by_a_note(open_window: OpenWindow) -> None:
    window = open_window().started()
    window.ask(QUESTION)
    window.whole.workshop.client.kill()
    wait_until(lambda: window.model().phase is not ModelPhase.READY)
    wait_until(lambda: window.model().phase is ModelPhase.READY)
    assert window.shown()[-1].startswith("note: The engine stopped and was started again")
    window.ask("Still there?")
    assert window.shown()[-2] == f"reply: {DEFAULT_REPLY}"


def test_a_reply_goes_on_while_another_chat_is_shown(open_window: OpenWindow) -> None:
    window = open_window(Script(reply=COUNTING, words_per_s=150)).started()
    window.write("Count")
    wait_until(lambda: len(window.reply_so_far()) > 10)
    first = window.page.session
    window.chats().new()
    assert window.page.session is not first and window.shown() == []
    run_for(0.3)
    assert first is not None and first.conversation is not None
    window.chats().open(first.conversation.id)
    before = window.reply_so_far()
    assert window.shown()[-1] == f"reply: {before}" and len(before) > 40
    wait_until(lambda: len(window.reply_so_far()) > len(before) + 10)
    assert window.shown()[-1] == f"reply: {window.reply_so_far()}"
    window.page.stop()
    wait_until(window.idle)


def test_what_is_typed_and_not_sent_stays_with_its_chat(open_window: OpenWindow) -> None:
    window = open_window().started()
    window.ask(QUESTION)
    chat = window.chats().entries[0].id
    window.page.composer.set_draft("half a thought")
    window.chats().new()
    assert window.page.composer.draft() == ""
    window.chats().open(chat)
    wait_until(lambda: window.page.composer.draft() == "half a thought")
    window.close()
    again = open_window().started()
    assert again.page.composer.draft() == "half a thought"


def test_the_chat_and_the_place_of_the_window_are_found_again(open_window: OpenWindow) -> None:
    first = open_window().started()
    first.ask("one")
    chat = first.chats().entries[0].id
    first.chats().new()
    first.ask("two")
    first.chats().open(chat)
    wait_until(lambda: first.shown()[:1] == ["user: one"])
    first.window.toggle_sidebar()
    first.window.resize(780, 700)
    first.close()
    second = open_window().started()
    assert second.shown()[0] == "user: one"
    assert (second.window.width(), second.window.height()) == (780, 700)
    assert not second.window.place().sidebar_shown


def test_a_refused_reply_is_told_in_a_card_and_the_chat_stays_usable(
    open_window: OpenWindow,
) -> None:
    window = open_window(Script(reply_failure="memory-refused")).started()
    window.ask(QUESTION)
    assert window.shown() == [f"user: {QUESTION}", "card: This does not fit into memory"]
    window.close()
    again = open_window().started()
    assert again.shown() == [f"user: {QUESTION}", "note: Not finished: The fake engine refuses."]
    again.ask("Again?")
    assert f"reply: {DEFAULT_REPLY}" in again.shown()


def test_an_edited_message_replaces_the_last_one_on_the_path_and_loses_nothing(
    open_window: OpenWindow,
) -> None:
    window = open_window(Script(reply="{messages}")).started()
    window.ask("first")
    window.ask("secnod")
    press(window.page.composer.field, Qt.Key.Key_Up)
    assert window.page.composer.draft() == "secnod"
    window.page.composer.set_draft("second")
    assert window.page.composer.shown_hint() == "replaces your last message"
    press(window.page.composer.field, Qt.Key.Key_Return, "\r")
    wait_until(lambda: not window.idle())
    wait_until(window.idle)
    sent = "user:first|assistant:user:first|user:second"
    assert [words for words in window.shown() if not words.startswith("status")] == [
        "user: first", "reply: user:first", "user: second", f"reply: {sent}",
    ]  # fmt: skip
    assert "secnod" in [text for _, _, text in stored(window)]


def test_a_message_that_cannot_be_answered_can_be_edited(open_window: OpenWindow) -> None:
    window = open_window(Script(reply_failure="request-invalid")).started()
    window.ask("far too long")
    card = window.page.transcript.column.blocks[-1]
    assert isinstance(card, InlineError)
    assert [choice.text for choice in card.facts.choices] == ["Edit the message", "Answer again"]
    card.buttons[0].click()
    assert window.page.composer.draft() == "far too long"
    window.page.composer.field.clear()
    assert window.page.composer.shown_hint() == ""


def test_a_model_that_does_not_load_is_told_above_the_composer(open_window: OpenWindow) -> None:
    window = open_window(Script(load_failure="checkpoint-unreadable")).start()
    wait_until(lambda: window.model().phase is ModelPhase.FAILED)
    notice = window.page.notice
    assert notice is not None and notice.facts.sentence == "The fake engine refuses."
    assert [choice.text for choice in notice.facts.choices] == ["Try again", "Choose another file"]


def test_without_a_model_the_window_says_how_to_get_one(open_window: OpenWindow) -> None:
    window = open_window(model=False).start()
    wait_until(lambda: window.page.notice is not None and window.idle())
    notice = window.page.notice
    assert notice is not None and notice.facts.title == "There is no model yet"
    window.write(QUESTION)
    wait_until(lambda: bool(stored(window)))
    chosen = window.places.data / "mine.gguf"
    chosen.write_bytes(b"GGUF")
    assert window.whole.choice is not None
    window.whole.choice.choose(str(chosen))
    wait_until(lambda: f"reply: {DEFAULT_REPLY}" in window.shown())
    assert window.page.notice is None
    wait_until(window.idle)


def test_a_file_of_a_published_model_stands_for_its_folder(open_window: OpenWindow) -> None:
    window = open_window().started()
    folder = window.places.data / "Tiny-0.6B"
    folder.mkdir()
    for name in ("config.json", "model-00001-of-00002.safetensors"):
        (folder / name).write_bytes(b"{}")
    assert window.whole.choice is not None
    window.whole.choice.choose(str(folder / "model-00001-of-00002.safetensors"))
    assert window.model().name == "Tiny-0.6B"
    wait_until(lambda: window.model().phase is ModelPhase.READY)
    assert SettingsFile(window.places.settings_file).settings.default_model == str(folder)
    wait_until(window.idle)


def test_half_a_surrogate_pair_is_replaced_stored_and_sent(open_window: OpenWindow) -> None:
    window = open_window(Script(reply="{echo}")).started()
    assert window.page.session is not None
    window.page.session.send("hi \ud83d x")
    wait_until(lambda: not window.idle())
    wait_until(window.idle)
    assert window.shown()[:2] == ["user: hi \ufffd x", "reply: hi \ufffd x"]
    assert window.chats().entries[0].title == "hi \ufffd x"


def test_signs_that_look_like_markup_are_shown_and_copied_letter_for_letter(
    open_window: OpenWindow,
) -> None:
    text = "Keep <exact lines> and <div class=x>y</div>, &lt; too.  It costs $5, then $7.\n\n\tEnd"
    window = open_window(Script(reply="{echo}")).started()
    window.ask(text)
    assert window.shown()[:2] == [f"user: {text}", f"reply: {text}"]
    window.page.transcript.selection.everything()
    window.page.transcript.copy()
    assert QGuiApplication.clipboard().text() == f"{text}\n\n{text}"
    window.page.copy_last_reply()
    assert QGuiApplication.clipboard().text() == text


def test_a_chat_in_the_trash_leaves_the_list_and_comes_back(open_window: OpenWindow) -> None:
    window = open_window().started()
    window.ask(QUESTION)
    chat = window.chats().entries[0].id
    window.chats().trash(chat)
    wait_until(lambda: window.chats().entries == ())
    assert window.shown() == [] and window.window.toast.isVisible()
    window.window.toast.button.click()
    wait_until(lambda: len(window.chats().entries) == 1 and len(window.shown()) == 3)


def test_the_details_of_a_dead_engine_hold_the_end_of_its_log(
    open_window: OpenWindow, tmp_path: Path
) -> None:
    once = str(tmp_path / "killed")
    script = Script(reply=COUNTING, end_at="reply", once=once, log_line="about to work")
    window = open_window(script).started()
    window.ask("Count")
    wait_until(lambda: window.shown()[-1].startswith("card"))
    card = window.page.transcript.column.blocks[-1]
    assert isinstance(card, InlineError)
    assert "SIGKILL" in card.facts.details and "about to work" in card.facts.details


def test_a_model_that_stopped_the_engine_twice_is_not_loaded_by_itself_again(
    open_window: OpenWindow,
) -> None:
    window = open_window(Script(end_at="load")).start()
    wait_until(lambda: window.model().phase is ModelPhase.FAILED)
    assert "twice" in window.model().sentence
    notice = window.page.notice
    assert notice is not None and notice.facts.choices[0].text == "Try again"


def test_the_theme_changes_in_mid_reply_and_every_part_follows(open_window: OpenWindow) -> None:
    window = open_window(Script(reply=COUNTING, words_per_s=150)).started()
    window.write("Count")
    wait_until(lambda: len(window.reply_so_far()) > 20)
    for preference, tokens in (
        (Preference.DARK, DARK),
        (Preference.LIGHT, LIGHT),
        (Preference.DARK, DARK),
    ):
        before = len(window.reply_so_far())
        window.whole.look.prefer(preference)
        run_for(0.1)
        picture = window.window.grab().toImage()
        composer = window.page.composer
        inside = composer.mapTo(window.window, composer.rect().center())
        seen = {
            "window": picture.pixelColor(20, 700),
            "base": picture.pixelColor(300, 400),
            "surface": picture.pixelColor(inside),
        }
        for token, colour in seen.items():
            assert colour.name().upper() == getattr(tokens, token), token
        wait_until(lambda: len(window.reply_so_far()) > before)  # noqa: B023
    window.page.stop()
    wait_until(window.idle)


def test_the_window_lives_through_ten_kills_at_random_moments(tmp_path: Path) -> None:
    """The rest of the two hundred is run by hand: ``python -m tests.fuzz.window_kills``."""
    assert sum(kill_many(tmp_path / "data", 10, 3).values()) == 10
    assert left_of_qt() == []


def test_the_window_closes_cleanly_at_twenty_random_moments(open_window: OpenWindow) -> None:
    moments = random.Random(20)
    script = Script(reply=COUNTING, words_per_s=300, load_s=0.05, prompt_s=0.02)
    for _ in range(20):
        window = open_window(script).start()
        run_for(moments.uniform(0, 0.1))
        window.write("Count")
        run_for(moments.uniform(0, 1.0))
        began = time.monotonic()
        window.close()
        assert time.monotonic() - began < 5
    turns = stored(window)
    assert {state for role, state, _ in turns if role == "user"} <= {"whole"}
    replies = [(state, text) for role, state, text in turns if role == "assistant"]
    assert any(state == "cut" and text for state, text in replies)
    assert all(COUNTING.startswith(text) for _, text in replies)
