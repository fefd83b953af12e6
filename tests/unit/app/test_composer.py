"""The composer sends when it should, keeps what it may not send, and is quick with long text."""

from __future__ import annotations

import time

import pytest
from PySide6.QtCore import QEvent, QMimeData, Qt
from PySide6.QtGui import QGuiApplication, QInputMethodEvent, QKeyEvent
from PySide6.QtWidgets import QApplication

from app.chat.composer import Composer, queued_hint
from app.widgets.message_field import mended
from tests.helpers.qt import press, settle
from tests.unit.app.conftest import Stage

MEGABYTE = "\n".join(
    f"line {n} of a log that somebody pasted in one go, whole" for n in range(20_000)
)


class Heard:
    """A composer on the stage, and what it said."""

    def __init__(self, stage: Stage) -> None:
        self.composer = Composer(stage.look, stage.icons, stage.window)
        self.field = self.composer.field
        self.sent: list[str] = []
        self.stops = 0
        self.composer.submitted.connect(self.sent.append)
        self.composer.stopped.connect(self._stop)
        self.composer.set_tallest(240)
        self.composer.resize(744, 88)
        self.composer.show()
        self.composer.accept()
        self.field.setFocus()
        settle()

    def _stop(self) -> None:
        self.stops += 1

    def type(self, text: str) -> None:
        for letter in text:
            press(self.field, Qt.Key.Key_A, letter)

    def enter(self, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        press(self.field, Qt.Key.Key_Return, "\r", modifiers)


@pytest.fixture
def heard(stage: Stage) -> Heard:
    return Heard(stage)


def test_enter_sends_and_clears_and_shift_enter_breaks_the_line(heard: Heard) -> None:
    heard.type("one")
    heard.enter(Qt.KeyboardModifier.ShiftModifier)
    heard.type("two")
    assert heard.sent == []
    heard.enter()
    assert heard.sent == ["one\ntwo"]
    assert heard.composer.draft() == ""


@pytest.mark.parametrize("blank", ["", "   ", "\n", "\t \n "])
def test_blank_text_is_not_sent_and_the_button_says_so(heard: Heard, blank: str) -> None:
    heard.field.insertPlainText(blank)
    assert not heard.composer.button.isEnabled()
    heard.enter()
    heard.composer.button.click()
    assert heard.sent == []


@pytest.mark.parametrize("preedit", ["ni hao", "にほん", "한"])
def test_enter_does_not_send_while_an_input_method_composes(heard: Heard, preedit: str) -> None:
    heard.type("x")
    QApplication.sendEvent(heard.field, QInputMethodEvent(preedit, []))
    heard.enter()
    assert heard.sent == []
    commit = QInputMethodEvent("", [])
    commit.setCommitString(preedit)
    QApplication.sendEvent(heard.field, commit)
    heard.field.setPlainText(heard.field.toPlainText().replace("\n", ""))
    heard.enter()
    assert len(heard.sent) == 1 and preedit in heard.sent[0]


def test_the_same_button_sends_and_stops(heard: Heard) -> None:
    heard.type("hello")
    heard.composer.button.click()
    assert heard.sent == ["hello"]
    heard.composer.set_answering(True)
    assert heard.composer.button.stops and heard.composer.button.isEnabled()
    heard.composer.button.click()
    assert heard.stops == 1
    heard.composer.set_answering(False)
    assert not heard.composer.button.stops


def test_a_message_entered_while_a_reply_comes_goes_out_at_its_end(heard: Heard) -> None:
    heard.composer.set_answering(True)
    heard.type("next")
    heard.enter()
    assert heard.sent == [] and heard.composer.draft() == "next"
    assert heard.composer.shown_hint() == queued_hint()
    heard.composer.set_answering(False)
    assert heard.sent == ["next"] and heard.composer.draft() == ""


def test_a_message_that_was_typed_but_not_entered_stays(heard: Heard) -> None:
    heard.composer.set_answering(True)
    heard.type("half")
    heard.composer.set_answering(False)
    assert heard.sent == [] and heard.composer.draft() == "half"


def test_a_kept_message_is_forgotten_when_its_text_is_deleted_or_the_reply_fails(
    heard: Heard,
) -> None:
    heard.composer.set_answering(True)
    heard.type("a")
    heard.enter()
    heard.field.clear()
    heard.type("b")
    heard.composer.set_answering(False)
    assert heard.sent == []
    heard.composer.set_answering(True)
    heard.enter()
    heard.composer.forget_queue()
    heard.composer.set_answering(False)
    assert heard.sent == [] and heard.composer.draft() == "b"


def test_it_grows_with_its_text_up_to_the_tallest(heard: Heard) -> None:
    low = heard.composer.wanted_height()
    assert low == 88
    heard.field.setPlainText("one\ntwo\nthree")
    assert low < heard.composer.wanted_height() < 240
    heard.field.setPlainText("\n".join("line" for _ in range(100)))
    assert heard.composer.wanted_height() == 240


def test_it_begins_at_the_side_of_its_first_strong_letter(heard: Heard) -> None:
    for text, side in (
        ("سلام hello", Qt.AlignmentFlag.AlignRight),
        ("hello سلام", Qt.AlignmentFlag.AlignLeft),
        ("", Qt.AlignmentFlag.AlignLeft),
    ):
        heard.field.setPlainText(text)
        assert heard.field.document().defaultTextOption().alignment() == side


def test_pasting_takes_plain_text_and_nothing_else(heard: Heard) -> None:
    rich = QMimeData()
    rich.setHtml("<b>bold</b>")
    rich.setText("plain\u00a0text")
    QGuiApplication.clipboard().setMimeData(rich)
    heard.field.paste()
    assert heard.composer.draft() == "plain\u00a0text"


def test_a_megabyte_is_pasted_in_a_blink_and_each_key_after_it_is_quick(heard: Heard) -> None:
    QGuiApplication.clipboard().setText(MEGABYTE)
    began = time.process_time()
    heard.field.paste()
    settle()
    assert time.process_time() - began < 0.3
    slowest = 0.0
    for _ in range(20):
        began = time.process_time()
        heard.type("k")
        settle()
        slowest = max(slowest, time.process_time() - began)
    assert slowest < 0.05
    heard.enter()
    assert heard.sent == [MEGABYTE + 20 * "k"]


def test_the_keys_for_undo_are_the_windows_while_there_is_nothing_to_undo(heard: Heard) -> None:
    def wants_undo() -> bool:
        kind = QEvent.Type.ShortcutOverride
        event = QKeyEvent(kind, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier, "")
        event.ignore()
        QApplication.sendEvent(heard.field, event)
        return event.isAccepted()

    assert not wants_undo()
    heard.type("x")
    assert wants_undo()


def test_half_a_pair_that_the_binding_drops_is_marked_in_its_place() -> None:
    assert mended("hi  x", b"hi ? x") == "hi \ufffd x"
    assert mended("hi  x", "hi \ufffd x".encode()) == "hi \ufffd x"
    assert mended("a?b", b"a??b") == "a?\ufffdb"
    assert mended("plain", b"plain") == "plain"
    assert mended("other", b"something else") == "other"
    assert mended("😀", "😀".encode()) == "😀"
