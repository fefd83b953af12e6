"""The frame puts its parts where the reference has them, also when there is little room."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QAbstractButton, QAbstractItemView, QAbstractScrollArea, QWidget

from app.look.icons import Icons
from app.look.theme import Look, Preference
from app.window import Window, WindowPlace
from tests.helpers.qt import application, left_of_qt, plain_font, settle


@pytest.fixture
def window() -> Iterator[Window]:
    look = Look(application(), Preference.LIGHT, plain_font())
    made = Window(look, Icons())
    made.resize(1280, 800)
    made.show()
    settle()
    yield made
    made.close()
    made.deleteLater()
    look.deleteLater()
    assert left_of_qt() == []


def test_proportions_are_those_of_the_reference(window: Window) -> None:
    assert window.sidebar.geometry().getRect() == (0, 0, 264, 800)
    assert window.bar.geometry().getRect() == (264, 0, 1016, 52)
    assert window.page.geometry().getRect() == (264, 52, 1016, 748)
    column = window.page.transcript.column
    assert (264 + column.left(), column.measure()) == (412, 720)
    composer = window.page.composer.geometry()
    assert (264 + composer.x(), composer.width(), composer.height()) == (400, 744, 88)


def test_in_a_new_chat_the_composer_stands_in_the_middle_else_at_the_foot(window: Window) -> None:
    page = window.page
    middle = page.composer.geometry().center().y()
    assert abs(middle - page.height() // 2) <= 1
    page.transcript.column.add([page.transcript.make.user_turn("hello")])
    page.resize(page.width(), page.height() - 1)
    assert page.height() - page.composer.geometry().bottom() - 1 == 16


def test_below_nine_hundred_the_sidebar_closes_and_then_lies_over_the_page(window: Window) -> None:
    window.resize(800, 600)
    assert not window.sidebar.isVisible() and window.bar.x() == 0
    window.toggle_sidebar()
    assert window.sidebar.isVisible() and window.bar.x() == 0
    assert window.close_overlay() and not window.sidebar.isVisible()
    assert not window.close_overlay()
    window.resize(1000, 600)
    assert window.sidebar.isVisible() and window.bar.x() == 264


def test_a_wide_window_keeps_the_sidebar_closed_when_it_was_closed(window: Window) -> None:
    window.toggle_sidebar()
    assert not window.sidebar.isVisible() and window.bar.x() == 0
    assert window.place().sidebar_shown is False
    window.toggle_sidebar()
    assert window.sidebar.isVisible()


def test_a_place_off_every_screen_is_not_taken(window: Window) -> None:
    before = window.pos()
    window.restore(WindowPlace(90_000, 90_000, 900, 700, maximized=False, sidebar_shown=True))
    assert window.pos() == before and (window.width(), window.height()) == (900, 700)


def test_the_smallest_window_still_holds_every_part(window: Window) -> None:
    window.resize(window.minimumSize())
    composer = window.page.composer.geometry()
    assert composer.left() >= 0 and composer.right() < window.width()
    assert window.page.transcript.height() > 100


def test_every_control_has_a_name_for_a_screen_reader(window: Window) -> None:
    kinds = (QAbstractButton, QAbstractItemView, QAbstractScrollArea)
    nameless = [
        type(widget).__name__
        for widget in window.findChildren(QWidget)
        if isinstance(widget, kinds) and widget.isVisible() and not widget.accessibleName()
    ]
    assert nameless == []


def test_nothing_that_can_be_clicked_is_smaller_than_twenty_four(window: Window) -> None:
    small = [
        type(button).__name__
        for button in window.findChildren(QAbstractButton)
        if button.isVisible() and min(button.width(), button.height()) < 24
    ]
    assert small == []
