"""Qt in tests: the one application, events, keys; and what a test must not leave behind of it."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, QEvent, QEventLoop, QPointF, Qt, QTimer
from PySide6.QtGui import QFont, QFontDatabase, QKeyEvent, QMouseEvent, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractItemView, QApplication, QWidget

LIMIT_S = 20.0


def application() -> QApplication:
    """The one QApplication of the process."""
    there = QApplication.instance()
    return there if isinstance(there, QApplication) else QApplication(["hearth"])


def plain_font() -> QFont:
    """The system's font at the reference's 13 px, so that every size is unscaled."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont)
    font.setPixelSize(13)
    return font


def wait_until(condition: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    """Run the event loop until ``condition`` holds."""
    until = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < until, "the window did not get there in time"
        QCoreApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)
        time.sleep(0.002)


def run_for(seconds: float) -> None:
    """Run the event loop for a while."""
    QTest.qWait(round(1000 * seconds))


def settle() -> None:
    """Let Qt deliver what is queued and delete what was handed to it for that."""
    for _ in range(3):
        QCoreApplication.processEvents()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


def press(
    widget: QWidget,
    key: Qt.Key,
    text: str = "",
    modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier,
) -> None:
    """Press a key in ``widget``, as the system would tell it."""
    QApplication.sendEvent(widget, QKeyEvent(QEvent.Type.KeyPress, key, modifiers, text))
    QApplication.sendEvent(widget, QKeyEvent(QEvent.Type.KeyRelease, key, modifiers, text))


def turn_wheel(widget: QWidget, notches: int) -> None:
    """Turn the mouse wheel over ``widget``; positive notches scroll up."""
    middle = QPointF(widget.rect().center())
    event = QWheelEvent(
        middle,
        QPointF(widget.mapToGlobal(middle.toPoint())),
        QPointF(0, 0).toPoint(),
        QPointF(0, 120 * notches).toPoint(),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(widget, event)


def hover(view: QAbstractItemView, row: int) -> None:
    """Move the pointer over a row of ``view``."""
    place = QPointF(view.visualRect(view.model().index(row, 1)).center())
    none, plain = Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier
    there = QPointF(view.viewport().mapToGlobal(place.toPoint()))
    event = QMouseEvent(QEvent.Type.MouseMove, place, there, none, none, plain)
    QApplication.sendEvent(view.viewport(), event)


def left_of_qt() -> list[str]:
    """Windows that are still there and timers that still run, in words."""
    settle()
    windows = [type(each).__name__ for each in QApplication.topLevelWidgets()]
    timers = [
        f"timer of {type(timer.parent()).__name__}"
        for widget in QApplication.topLevelWidgets()
        for timer in widget.findChildren(QTimer)
        if timer.isActive()
    ]
    return windows + timers
