"""The transcript follows, lets go, comes back, and gives its text exactly."""

from __future__ import annotations

import time

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from app.chat.blocks.inline_error import Choice, ErrorFacts
from app.chat.blocks.text_blocks import Block
from app.chat.transcript import Transcript
from app.look.theme import Preference
from tests.helpers.qt import press, settle, turn_wheel
from tests.unit.app.conftest import Stage

LINES = "\n".join(f"line {n}" for n in range(60))


@pytest.fixture
def transcript(stage: Stage) -> Transcript:
    made = Transcript(stage.look, stage.icons, stage.window)
    made.setGeometry(0, 0, 800, 400)
    made.show()
    settle()
    return made


def test_new_text_scrolls_into_view_until_one_notch_up(transcript: Transcript) -> None:
    bar = transcript.verticalScrollBar()
    transcript.begin_reply(LINES)
    transcript.grow_reply("\nmore")
    assert bar.value() == bar.maximum() > 0
    turn_wheel(transcript.viewport(), 1)
    assert not transcript.following
    kept = bar.value()
    transcript.grow_reply("\n" + LINES)
    assert bar.value() == kept < bar.maximum()
    transcript.follow()
    assert bar.value() == bar.maximum() and transcript.following


def test_scrolling_back_to_the_end_follows_again(transcript: Transcript) -> None:
    transcript.begin_reply(LINES)
    turn_wheel(transcript.viewport(), 2)
    assert not transcript.following
    turn_wheel(transcript.viewport(), -9)
    assert transcript.following


def test_latest_is_shown_only_while_not_following_and_brings_one_back(
    transcript: Transcript,
) -> None:
    transcript.begin_reply(LINES)
    assert not transcript.latest.isVisible()
    turn_wheel(transcript.viewport(), 3)
    assert transcript.latest.isVisible()
    transcript.latest.click()
    assert transcript.following and not transcript.latest.isVisible()


def test_keys_that_scroll_let_go_too(transcript: Transcript) -> None:
    transcript.begin_reply(LINES)
    press(transcript, Qt.Key.Key_PageUp)
    settle()
    assert not transcript.following


def test_a_drag_from_turn_to_turn_selects_the_exact_text(transcript: Transcript) -> None:
    asked = transcript.make.user_turn("What <b>is</b> it?")
    reply = transcript.make.reply_turn("It\tis  😀 &amp; more\n\nend")
    transcript.column.add([asked, reply])
    start = asked.pos() + asked.flow_origin().toPoint() + QPoint(1, 10)
    end = reply.pos() + QPoint(700, reply.height() - 5)
    QTest.mousePress(transcript.column, Qt.MouseButton.LeftButton, pos=start)
    QTest.mouseMove(transcript.column, end)
    QTest.mouseRelease(transcript.column, Qt.MouseButton.LeftButton, pos=end)
    press(transcript, Qt.Key.Key_C, "\x03", Qt.KeyboardModifier.ControlModifier)
    copied = QGuiApplication.clipboard().text()
    assert copied == "What <b>is</b> it?\n\nIt\tis  😀 &amp; more\n\nend"


def test_a_double_click_selects_a_word(transcript: Transcript) -> None:
    reply = transcript.make.reply_turn("capital of France")
    transcript.column.add([reply])
    place = reply.pos() + QPoint(8, 10)
    QTest.mouseDClick(transcript.column, Qt.MouseButton.LeftButton, pos=place)
    assert transcript.selection.text() == "capital"


def test_a_very_long_message_is_folded_but_copied_whole(transcript: Transcript) -> None:
    long = "\n".join(f"line {n}" for n in range(20_000))
    began = time.process_time()
    turn = transcript.make.user_turn(long)
    transcript.column.add([turn])
    settle()
    assert time.process_time() - began < 0.3
    assert turn.height() < 24 * 23 + 60
    hidden = len(long) - len("\n".join(f"line {n}" for n in range(24)))
    assert turn.folded_words == f"{hidden:,} more characters"
    transcript.selection.everything()
    assert transcript.selection.text() == long


def test_text_from_right_to_left_stands_inside_its_bubble(transcript: Transcript) -> None:
    turn = transcript.make.user_turn("سلام دنیا\nshort")
    transcript.column.add([turn])
    settle()
    picture = turn.grab().toImage()
    bubble = transcript.column.measure() - turn.flow.width - 2 * 14
    ink = [
        x
        for x in range(picture.width())
        for y in range(10, 33)
        if picture.pixelColor(x, y).lightness() < 100
    ]
    assert ink and min(ink) >= bubble and max(ink) <= picture.width() - 13


def test_a_letter_typed_here_belongs_to_the_composer(transcript: Transcript) -> None:
    typed: list[str] = []
    transcript.typed.connect(lambda event: typed.append(event.text()))
    press(transcript, Qt.Key.Key_H, "h")
    press(transcript, Qt.Key.Key_Down)
    assert typed == ["h"]


def test_two_hundred_tokens_a_second_leave_most_of_a_second_free(transcript: Transcript) -> None:
    transcript.begin_reply()
    transcript.grow_reply(" token" * 4000)
    settle()
    began = time.process_time()
    for _ in range(200):
        transcript.grow_reply(" token")
        settle()
    assert time.process_time() - began < 0.5


def test_a_thousand_messages_open_in_half_a_second(transcript: Transcript) -> None:
    began = time.process_time()
    make = transcript.make
    blocks: list[Block] = []
    for number in range(500):
        blocks.append(make.user_turn(f"Question {number}, somewhat longer than a line could be"))
        blocks.append(make.reply_turn(f"Answer {number}. " + "It goes on for a while. " * 12))
    transcript.column.add(blocks)
    settle()
    assert time.process_time() - began < 0.5


def test_what_is_being_read_stays_in_view_when_the_window_becomes_narrow(
    transcript: Transcript,
) -> None:
    make = transcript.make
    texts = [f"Paragraph {n}. " + "It goes on for a while. " * 12 for n in range(30)]
    transcript.column.add([make.reply_turn(text) for text in texts])
    bar = transcript.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    seen = transcript.column.index_at(bar.value())
    for width in (420, 800, 500):
        transcript.resize(width, 400)
        settle()
        assert abs(transcript.column.index_at(bar.value()) - seen) <= 1
        assert not transcript.following


def test_an_empty_reply_leaves_no_block(transcript: Transcript) -> None:
    transcript.begin_reply()
    transcript.end_reply("")
    assert transcript.is_empty


def test_a_card_opens_its_details_and_offers_its_choices(transcript: Transcript) -> None:
    done: list[str] = []
    facts = ErrorFacts(
        "No room", "Needs 13.1 GiB.", "code 7", (Choice("Again", lambda: done.append("again")),)
    )
    card = transcript.make.error(facts)
    transcript.column.add([card])
    closed = card.height()
    (again,) = card.buttons
    again.click()
    assert done == ["again"]
    assert card.fold is not None
    card.fold.click()
    assert card.height() > closed
    card.fold.click()
    assert card.height() == closed


def test_a_change_of_theme_keeps_text_place_and_selection(
    transcript: Transcript, stage: Stage
) -> None:
    transcript.begin_reply(LINES)
    turn_wheel(transcript.viewport(), 4)
    transcript.selection.everything()
    before = transcript.verticalScrollBar().value()
    stage.look.prefer(Preference.DARK)
    settle()
    assert transcript.verticalScrollBar().value() == before
    assert transcript.selection.text() == LINES
