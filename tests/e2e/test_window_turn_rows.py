"""What can be done with a turn in the whole window: rows, menus, copies, trash, branches."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QHoverEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QWidget

from app.chat.blocks.remarks import StatusLine
from app.chat.rendered.reply import Reply
from app.chat.transcript import OpeningMenu
from app.chat.turns.deeds import TurnVerb
from app.chat.turns.parts.info_dialog import InfoDialog
from app.chat.turns.parts.row import ActionRow
from app.library.loaded import ModelPhase
from tests.helpers.fake_engine import Script
from tests.helpers.qt import press, settle, wait_until
from tests.helpers.turns import chat, do, hover, names, path, rows, session, stop_after, thoughts
from tests.helpers.window import TestWindow

OpenWindow = Callable[..., TestWindow]
COUNTING = " ".join(str(number) for number in range(120))


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
        "Answer again (Ctrl+R)", "Continue (Alt+Enter)", "Edit", "Branch into a new chat",
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


def test_a_real_pointer_over_a_reply_brings_its_row(open_window: OpenWindow) -> None:
    window = open_window().started()
    for text in ("one", "two"):
        window.ask(text)
    first = rows(window)[1]
    blocks = window.page.transcript.column.blocks
    reply = next(block for block in blocks if isinstance(block, Reply))
    assert not first.buttons
    QTest.mouseMove(reply, QPoint(3, 3))
    QTest.mouseMove(reply, QPoint(5, 5))
    wait_until(lambda: bool(first.buttons))


def test_every_row_is_reached_with_tab_and_shows_its_buttons(open_window: OpenWindow) -> None:
    window = open_window().started()
    window.ask("one")
    window.window.activateWindow()
    window.page.composer.setFocus()
    reached: set[ActionRow] = set()
    for _ in range(60):
        focus = QApplication.focusWidget()
        assert focus is not None and focus.accessibleName()
        around = focus.parentWidget()
        if isinstance(around, ActionRow):
            reached.add(around)
        QTest.keyClick(focus, Qt.Key.Key_Tab)
    assert reached == set(rows(window))


def test_a_turn_is_brought_into_view_also_beside_the_shown_path(open_window: OpenWindow) -> None:
    window = open_window(Script(reply="{echo}\n\n" * 12)).started()
    for number in range(4):
        window.ask(f"message {number}")
    bar = window.page.transcript.verticalScrollBar()
    second, old = path(window)[2].id, path(window)[5].id
    window.page.view.go_to(second)
    row = next(row for row in rows(window) if row.facts.turn == second)
    assert bar.value() <= row.y() < bar.value() + window.page.transcript.height()
    do(window, TurnVerb.AGAIN, path(window)[3].id)
    assert len(path(window)) == 4
    window.page.view.go_to(old)
    assert len(path(window)) == 8 and path(window)[5].id == old


def test_the_keyboard_is_never_nowhere_after_a_turn_was_changed(open_window: OpenWindow) -> None:
    window = open_window().started()
    window.ask("one")
    window.window.activateWindow()
    again = rows(window)[-1].buttons[1]
    again.setFocus()
    assert QApplication.focusWidget() is again
    QTest.keyClick(again, Qt.Key.Key_Space)
    wait_until(lambda: window.idle() and len(chat(window).turns) == 3)
    assert QApplication.focusWidget() is window.page.transcript
