"""Turns in the whole window: continue, versions, thoughts, what can be done with each of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QGuiApplication, QHoverEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QWidget

from app.chat.blocks.inline_error import InlineError
from app.chat.blocks.remarks import StatusLine
from app.chat.conversation import Conversation, Turn
from app.chat.session import ChatSession
from app.chat.transcript import OpeningMenu
from app.chat.turns.deeds import TurnVerb, TurnWish
from app.chat.turns.parts.info_dialog import InfoDialog
from app.chat.turns.parts.row import ActionRow
from app.chat.turns.parts.thinking import ThinkingFold
from app.library.loaded import ModelPhase
from engine.protocol import Sampling
from tests.helpers.fake_engine import Script
from tests.helpers.qt import press, settle, wait_until
from tests.helpers.window import TestWindow

OpenWindow = Callable[..., TestWindow]
COUNTING = " ".join(str(number) for number in range(120))


def session(window: TestWindow) -> ChatSession:
    found = window.page.session
    assert found is not None
    return found


def chat(window: TestWindow) -> Conversation:
    found = session(window).conversation
    assert found is not None
    return found


def path(window: TestWindow) -> tuple[Turn, ...]:
    return chat(window).path()


def rows(window: TestWindow) -> list[ActionRow]:
    return [b for b in window.page.transcript.column.blocks if isinstance(b, ActionRow)]


def do(window: TestWindow, verb: TurnVerb, turn: int) -> None:
    """Do it as the row's button does, and wait until nothing runs."""
    row = next(row for row in rows(window) if row.facts.turn == turn)
    row.facts.run(TurnWish(verb, turn))
    QTest.qWait(20)
    wait_until(window.idle)


def stop_after(window: TestWindow, text: str, letters: int) -> None:
    window.write(text)
    wait_until(lambda: len(window.reply_so_far()) > letters)
    window.page.stop()
    wait_until(window.idle)


def hover(window: TestWindow, y: int) -> None:
    column = window.page.transcript.column
    place = QPointF(10, y)
    there = QPointF(column.mapToGlobal(place.toPoint()))
    event = QHoverEvent(QHoverEvent.Type.HoverMove, place, there, QPointF(0, 0))
    QApplication.sendEvent(column, event)


def names(row: ActionRow) -> list[str]:
    return [button.accessibleName() for button in row.buttons]


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
    session(window).stop()
    assert window.idle() and window.shown() == before


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


# Thoughts --------------------------------------------------------------------------------------


def thoughts(window: TestWindow) -> ThinkingFold:
    blocks = window.page.transcript.column.blocks
    return next(block for block in blocks if isinstance(block, ThinkingFold))


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


# Rows ------------------------------------------------------------------------------------------


def test_what_can_be_done_shows_under_the_last_turn_under_the_pointer_and_at_the_keyboard(
    open_window: OpenWindow,
) -> None:
    window = open_window().started()
    for text in ("one", "two"):
        window.ask(text)
    user, reply, _, last = rows(window)
    assert [bool(row.buttons) for row in rows(window)] == [False, False, False, True]
    assert names(last) == [
        "Copy as Markdown", "Answer again", "Continue", "Branch into a new chat", "Information",
        "More",
    ]  # fmt: skip
    tall = window.page.transcript.column.height()
    hover(window, user.y() - 5)
    assert names(user) == ["Copy the message", "Edit", "Branch into a new chat", "More"]
    hover(window, reply.y() + 2)
    assert not user.buttons and reply.buttons and last.buttons
    assert window.page.transcript.column.height() == tall
    QApplication.sendEvent(
        window.page.transcript.column,
        QHoverEvent(QHoverEvent.Type.HoverLeave, QPointF(-1, -1), QPointF(-1, -1), QPointF(0, 0)),
    )
    assert not reply.buttons and last.buttons
    window.page.view.rows._on_focus(None, user)
    assert user.buttons and all(button.focusPolicy() for button in user.buttons)


def test_while_a_reply_comes_no_row_offers_what_would_disturb_it(
    open_window: OpenWindow,
) -> None:
    window = open_window(Script(reply=COUNTING, words_per_s=100)).started()
    stop_after(window, "one", 5)
    window.write("two")
    wait_until(lambda: len(window.reply_so_far()) > 5)
    assert not any(row.buttons for row in rows(window))
    row = rows(window)[0]
    hover(window, row.y() - 5)
    enabled = {button.accessibleName(): button.isEnabled() for button in row.buttons}
    assert enabled == {
        "Copy the message": True,
        "Edit": False,
        "Branch into a new chat": False,
        "More": True,
    }
    window.page.stop()
    wait_until(window.idle)


def test_the_exact_text_the_plain_text_and_the_last_code_are_copied(
    open_window: OpenWindow,
) -> None:
    text = "# Title\n\n**bold** `x`\n\n```py\na\n```\n\n~~~\nb < c\n~~~\n"
    window = open_window(Script(reply=text)).started()
    window.ask("Say")
    reply = path(window)[1].id
    clipboard = QGuiApplication.clipboard()
    do(window, TurnVerb.COPY, reply)
    assert clipboard.text() == text
    do(window, TurnVerb.COPY_PLAIN, reply)
    assert clipboard.text().startswith("Title\nbold x\na")
    window.page.copy_last_code()
    assert clipboard.text() == "b < c\n"


def test_the_menu_of_a_turn_holds_everything(open_window: OpenWindow) -> None:
    window = open_window(Script(thinking="Hm")).started()
    window.ask("one")
    menu, row = QMenu(window.page), rows(window)[-1]
    window.page.transcript.menu_opening.emit(OpeningMenu(menu, row.y() - 4))
    assert [action.text() for action in menu.actions()][1:] == [
        "Copy as Markdown (Ctrl+Shift+C)", "Copy as plain text", "Copy the thoughts",
        "Answer again (Ctrl+R)", "Continue (Alt+Return)", "Edit", "Branch into a new chat",
        "Information", "Delete",
    ]  # fmt: skip
    menu.deleteLater()


def test_information_about_a_reply_can_be_read_and_copied(open_window: OpenWindow) -> None:
    window = open_window().started()
    window.ask("one")
    line = rows(window)[-1]
    assert isinstance(line, StatusLine)
    do(window, TurnVerb.INFO, path(window)[1].id)
    (dialog,) = window.page.findChildren(InfoDialog)
    dialog.copy_button.click()
    text = QGuiApplication.clipboard().text()
    for words in ("Model: ", "Chat template: fake-template", "Written: 6 tokens", "Seed: 7"):
        assert words in text
    dialog.close()
    settle()


def test_another_model_is_noted_where_it_begins(open_window: OpenWindow) -> None:
    window = open_window().started()
    window.ask("one")
    other = window.places.models / "Other-1B.gguf"
    other.write_bytes(b"GGUF")
    assert window.whole.choice is not None
    window.whole.choice.choose(str(other))
    wait_until(lambda: window.model().phase is ModelPhase.READY and "Other" in window.model().name)
    window.ask("two")
    note = "note: From here on: Other-1B"
    assert window.shown().count(note) == 1 and window.shown()[4] == note
    before = window.shown()
    window.page.view.show(session(window))
    assert window.shown() == before


def test_a_screen_reader_hears_a_reply_by_the_sentence(open_window: OpenWindow) -> None:
    heard: list[str] = []
    window = open_window(Script(reply="It is so. It was not? Yes", words_per_s=100)).started()
    window.page.view.announcer._tell = heard.append
    window.ask("one")
    assert heard == ["It is so.", "It was not?", "Yes", "The reply is finished"]


def test_every_button_of_a_row_has_a_name(open_window: OpenWindow) -> None:
    window = open_window(Script(thinking="Hm")).started()
    window.ask("one")
    window.page.answer_again()
    wait_until(window.idle)
    for row in rows(window):
        row.reveal()
        assert row.accessibleName()
        children = row.findChildren(QWidget)
        focusable = [one for one in children if one.focusPolicy() is not Qt.FocusPolicy.NoFocus]
        assert focusable and all(widget.accessibleName() for widget in focusable)
    assert thoughts(window).head.accessibleName()


def test_how_long_was_thought_is_told_and_kept(open_window: OpenWindow) -> None:
    window = open_window(Script(reply="Yes.", thinking=COUNTING, words_per_s=200)).started()
    window.ask("Think")
    words = "Thought for 1 s · 120 tokens"
    assert thoughts(window).head.text() == words
    window.close()
    again = open_window().started()
    assert thoughts(again).head.text() == words
    assert thoughts(again).accessibleName() == "Thoughts"


# Trash, branches, other words ------------------------------------------------------------------


def test_a_deleted_turn_takes_what_followed_along_and_undo_brings_both_back(
    open_window: OpenWindow,
) -> None:
    window = open_window(Script(reply="{echo}!")).started()
    for text in ("one", "two", "three"):
        window.ask(text)
    before = window.shown()
    do(window, TurnVerb.DELETE, path(window)[2].id)
    wait_until(lambda: len(window.shown()) == 3)
    assert window.shown() == before[:3]
    toast = window.window.toast
    assert toast.isVisible() and toast.accessibleName() == "Message moved to trash: two"
    toast.button.click()
    wait_until(lambda: window.shown() == before)


def test_a_deleted_reply_leaves_its_message_and_another_version(open_window: OpenWindow) -> None:
    window = open_window(Script(reply="{echo}!")).started()
    window.ask("one")
    window.page.answer_again()
    wait_until(window.idle)
    first, second = chat(window).siblings(path(window)[1].id)
    do(window, TurnVerb.DELETE, second.id)
    wait_until(lambda: path(window)[-1].id == first.id)
    do(window, TurnVerb.DELETE, first.id)
    wait_until(lambda: window.shown() == ["user: one"])
    assert rows(window)[0].buttons
    window.page.answer_again()
    wait_until(lambda: len(window.shown()) == 3 and window.idle())


def test_a_branch_is_a_chat_of_its_own_that_ends_at_the_turn(open_window: OpenWindow) -> None:
    window = open_window(Script(reply="{messages}")).started()
    for text in ("one", "two"):
        window.ask(text)
    old = chat(window).id
    do(window, TurnVerb.BRANCH, path(window)[1].id)
    wait_until(lambda: chat(window).id != old)
    assert chat(window).title == "one (branch)"
    assert window.shown()[:2] == ["user: one", "reply: user:one"] and len(window.shown()) == 3
    window.ask("three")
    assert "reply: user:one|assistant:user:one|user:three" in window.shown()
    window.chats().open(old)
    wait_until(lambda: chat(window).id == old)
    assert "user: two" in window.shown() and "user: three" not in window.shown()


def test_a_reply_that_a_person_wrote_anew_is_what_the_model_is_sent(
    open_window: OpenWindow,
) -> None:
    window = open_window(Script(reply="{messages}")).started()
    window.ask("one")
    do(window, TurnVerb.EDIT, path(window)[1].id)
    assert window.page.composer.shown_hint() == "makes another version of this reply"
    window.page.composer.set_draft("mine")
    press(window.page.composer.field, Qt.Key.Key_Return, "\r")
    wait_until(lambda: "reply: mine" in window.shown() and window.idle())
    assert window.shown() == ["user: one", "reply: mine", "status: written by you"]
    arrows = rows(window)[-1].versions
    assert arrows is not None and arrows.accessibleName() == "Version 2 of 2"
    window.ask("two")
    assert "reply: user:one|assistant:mine|user:two" in window.shown()
