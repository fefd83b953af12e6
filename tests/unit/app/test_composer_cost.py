"""The composer tells what a message costs, refuses what cannot fit, and sends by the chosen key."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QInputMethodEvent
from PySide6.QtWidgets import QApplication

from app.chat.composer import Composer
from app.chat.options.cost import Before, Cost, Fit, cost_text, estimate
from tests.helpers.qt import press, settle
from tests.unit.app.conftest import Stage

CTRL = Qt.KeyboardModifier.ControlModifier


def made(stage: Stage) -> tuple[Composer, list[str]]:
    composer, sent = Composer(stage.look, stage.icons, stage.window), list[str]()
    composer.submitted.connect(sent.append)
    composer.set_tallest(240)
    composer.resize(744, 88)
    composer.show()
    composer.accept()
    settle()
    return composer, sent


def test_the_cost_names_tokens_share_and_time() -> None:
    cost = Cost(9, exact=True, before=Before(8_796, 32_768, 90.0))
    assert cost_text(cost) == "9 tokens · 27 % of context · first token in about 0.1 s"
    assert cost_text(Cost(9, exact=False, before=Before(0, 32_768))).startswith(
        "about 9 tokens · < 1"
    )


def test_what_is_left_out_and_what_is_too_long_are_told_apart() -> None:
    before = Before(used=8_000, context=8_192)
    assert Cost(100, exact=True, before=before).fit is Fit.FITS
    assert Cost(192, exact=True, before=before).fit is Fit.LEAVES_OUT
    assert Cost(8_192, exact=True, before=before).fit is Fit.TOO_LONG
    assert Cost(8_192, exact=False, before=before).fit is Fit.LEAVES_OUT
    assert Cost(20_000, exact=False, before=before).fit is Fit.TOO_LONG
    assert "8,192 fit into the context" in cost_text(Cost(9_000, exact=True, before=before))
    assert estimate(4_000) == 1_000


def test_a_message_that_is_too_long_is_not_sent_and_says_why(stage: Stage) -> None:
    composer, sent = made(stage)
    composer.field.insertPlainText("much")
    composer.set_hint("something else")
    composer.show_cost(Cost(9_000, exact=True, before=Before(0, 8_192)))
    press(composer.field, Qt.Key.Key_Return, "\r")
    assert sent == []
    assert not composer.button.isEnabled()
    assert composer.shown_hint().startswith("9,000 tokens · too long")
    composer.show_cost(Cost(9, exact=True, before=Before(0, 8_192)))
    press(composer.field, Qt.Key.Key_Return, "\r")
    assert sent == ["much"]


def test_by_choice_enter_breaks_the_line_and_ctrl_enter_sends(stage: Stage) -> None:
    composer, sent = made(stage)
    composer.send_with("ctrl+enter")
    composer.field.insertPlainText("one")
    press(composer.field, Qt.Key.Key_Return, "\r")
    assert sent == []
    assert composer.draft() == "one\n"
    press(composer.field, Qt.Key.Key_Return, "\r", CTRL)
    assert sent == ["one\n"]
    assert composer.button.accessibleName() == "Send (Ctrl+Enter)"
    composer.send_with("enter")
    composer.field.insertPlainText("two")
    press(composer.field, Qt.Key.Key_Return, "\r")
    assert sent == ["one\n", "two"]


@pytest.mark.parametrize(
    ("steps", "committed"),
    [
        (("n", "ni", "ni h", "ni hao"), "你好"),
        (("k", "か", "かn", "かな"), "仮名"),
        (("ㅎ", "하", "한"), "한"),
    ],
)
def test_no_key_sends_while_an_input_method_composes(
    stage: Stage, steps: tuple[str, ...], committed: str
) -> None:
    composer, sent = made(stage)
    for preedit in steps:
        QApplication.sendEvent(composer.field, QInputMethodEvent(preedit, []))
        press(composer.field, Qt.Key.Key_Return, "\r")
        press(composer.field, Qt.Key.Key_Return, "\r", CTRL)
        assert sent == []
    done = QInputMethodEvent("", [])
    done.setCommitString(committed)
    QApplication.sendEvent(composer.field, done)
    press(composer.field, Qt.Key.Key_Return, "\r")
    assert [text.strip() for text in sent] == [committed]


def test_thinking_is_offered_only_where_the_model_can(stage: Stage) -> None:
    composer, _ = made(stage)
    chosen: list[object] = []
    composer.think.chosen.connect(chosen.append)
    assert not composer.think.isVisible()
    composer.show_thinking(None, can_think=True)
    assert composer.think.isVisible()
    menu = composer.think.menu()
    assert [action.isChecked() for action in menu.actions()] == [True, False, False]
    menu.actions()[2].trigger()
    assert chosen == [False]
    assert composer.think.accessibleName() == "Think: off"
    menu.deleteLater()
