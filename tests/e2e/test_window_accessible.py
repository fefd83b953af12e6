"""Whoever cannot see the window is told what each control is, in every main state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

from app.chat.turns.parts.row import ActionRow
from app.pages.names import PageName
from app.window import WindowPlace, inside
from tests.helpers.fake_engine import Script
from tests.helpers.qt import settle
from tests.helpers.window import TestWindow

LOST = {QAccessible.Role.NoRole, QAccessible.Role.Client, QAccessible.Role.Pane}


@pytest.fixture
def made(tmp_path: Path) -> Iterator[TestWindow]:
    """A window with one answered chat."""
    window = TestWindow(tmp_path, Script(reply="An answer with `code`.", load_s=0.02)).started()
    window.ask("What is this?")
    yield window
    window.close()


def controls(root: QWidget) -> list[QWidget]:
    """Every shown widget that the Tab key reaches."""
    return [
        widget
        for widget in root.findChildren(QWidget)
        if widget.isVisible()
        and widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        and widget.focusProxy() is None
    ]


def nameless(root: QWidget) -> list[str]:
    """The controls of which nothing can be told."""
    lost = []
    for widget in controls(root):
        told = QAccessible.queryAccessibleInterface(widget)
        name = told.text(QAccessible.Text.Name)
        # A quiet row of actions hands the keyboard to its first button.
        group = isinstance(widget, (QAbstractScrollArea, ActionRow))
        if not name.strip() or (told.role() in LOST and not group):
            lost.append(f"{type(widget).__name__} {name!r} {told.role().name}")
    return lost


def test_a_control_without_a_name_would_be_found(made: TestWindow) -> None:
    made.page.composer.field.setAccessibleName("")
    assert len(nameless(made.window)) == 1


@pytest.mark.parametrize("name", list(PageName))
def test_every_control_of_a_page_has_a_name_and_a_role(made: TestWindow, name: PageName) -> None:
    made.window.show_page(name)
    settle()
    assert controls(made.window)
    assert nameless(made.window) == []


def test_a_window_larger_than_its_screen_is_made_to_fit(made: TestWindow) -> None:
    room = made.window.screen().availableGeometry()
    made.window.restore(WindowPlace(room.x() + 50, room.y() + 60, 9000, 9000, False, True))
    assert room.contains(QRect(made.window.pos(), made.window.size()))


def test_a_place_off_a_screen_comes_to_the_nearest_one_on_it() -> None:
    room = QRect(100, 0, 1000, 800)
    assert inside(QRect(900, -40, 400, 300), room).toTuple() == (700, 0)
    assert inside(QRect(300, 200, 400, 300), room).toTuple() == (300, 200)
    assert inside(QRect(0, 0, 2000, 900), room).toTuple() == (100, 0)
