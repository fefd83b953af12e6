"""A text that grows at its end is laid out as if it had come at once, and costs only its end."""

from __future__ import annotations

import random
import time

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QFont

from app.chat.blocks.text_flow import OPEN_LINES, TextFlow, direction_of
from tests.helpers.qt import application, plain_font

WORDS = ["the", "clock", "itself", "wakes", "machines", "before", "any", "😀", "naïve", "über"]
TEXTS = (
    "",
    "one",
    "\n",
    "\n\nafter two empty lines",
    "ends with a newline\n",
    "a\nb\n\nc",
    "\tindented\n    deeper  with  spaces",
    "سلام hello سلام " * 40,
    " ".join(WORDS * 90),
    "x" * 9000,
    "\n".join(" ".join(WORDS[: 1 + n % 11]) for n in range(300)),
)


@pytest.fixture
def font() -> QFont:
    application()
    return plain_font()


def flow_of(font: QFont, text: str, width: float = 400) -> TextFlow:
    flow = TextFlow(font, 23)
    flow.set_width(width)
    flow.set_text(text)
    return flow


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_text_that_came_in_pieces_stands_where_text_at_once_does(font: QFont, number: int) -> None:
    text = TEXTS[number]
    whole = flow_of(font, text)
    grown = flow_of(font, "")
    chance = random.Random(number)
    at = 0
    while at < len(text):
        step = chance.choice((1, 2, 7, 40, 333))
        grown.append(text[at : at + step])
        at += step
    assert grown.text == text
    assert grown.height == whole.height
    for y in range(5, int(whole.height), 37):
        for x in (0.0, 57.0, 399.0):
            point = QPointF(x, y)
            assert grown.offset_at(point) == whole.offset_at(point), (x, y)


def test_a_piece_that_is_closed_is_never_laid_out_again(font: QFont) -> None:
    flow = flow_of(font, "\n".join("line" for _ in range(100)))
    closed = [piece.layout for piece in flow.pieces[:-1]]
    assert len(closed) == 99
    for _ in range(50):
        flow.append(" more words")
    now = [piece.layout for piece in flow.pieces[:99]]
    assert all(a is b for a, b in zip(now, closed, strict=True))


def test_a_paragraph_without_an_end_keeps_its_open_piece_small(font: QFont) -> None:
    flow = flow_of(font, "")
    for _ in range(1200):
        flow.append(" token")
    assert flow.pieces[-1].layout.lineCount() <= OPEN_LINES
    assert len(flow.pieces) >= 2


def test_the_thousandth_token_costs_no_more_than_ten_times_the_tenth(font: QFont) -> None:
    flow = flow_of(font, "")
    costs = []
    for _ in range(1500):
        began = time.perf_counter()
        flow.append(" token")
        costs.append(time.perf_counter() - began)
    early, late = sorted(costs[100:400])[150], sorted(costs[-300:])[150]
    assert late < 10 * early


def test_every_place_in_a_text_is_found_by_its_point(font: QFont) -> None:
    text = "first line 😀 with a face\nsecond\nthird 𝔘𝔫𝔦 letters"
    flow = flow_of(font, text)
    assert flow.offset_at(QPointF(-5, -5)) == 0
    assert flow.offset_at(QPointF(0, 30)) == text.index("second")
    assert flow.offset_at(QPointF(399, 60)) == len(text)
    assert flow.offset_at(QPointF(399, 5)) == text.index("\n")
    assert flow.offset_at(QPointF(0, 999)) == len(text)


def test_the_word_around_a_place_is_whole_also_beyond_wide_letters(font: QFont) -> None:
    text = "a 😀😀 face\nand (words) here"
    flow = flow_of(font, text)
    for word in ("face", "words", "here"):
        start = text.index(word)
        found = flow.word_at(start + 2)
        assert text[found.start : found.stop] == word


def test_a_paragraph_takes_its_direction_from_its_first_strong_letter() -> None:
    assert direction_of("hello سلام") is Qt.LayoutDirection.LeftToRight
    assert direction_of("سلام hello") is Qt.LayoutDirection.RightToLeft
    assert direction_of('123 "سلام"') is Qt.LayoutDirection.RightToLeft
    assert direction_of("123") is Qt.LayoutDirection.LeftToRight


def test_lines_are_never_lower_than_the_reference_and_may_be_higher(font: QFont) -> None:
    assert flow_of(font, "one\ntwo").height == 46
    tall = TextFlow(font, 3)
    tall.set_width(400)
    tall.set_text("one\ntwo")
    assert tall.height > 20
