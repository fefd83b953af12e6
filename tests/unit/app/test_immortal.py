"""Qt's binding cannot use up None, True and False, whichever Python runs it."""

from __future__ import annotations

import sys

from PySide6.QtCore import QObject

from app.desktop.immortal import make_constants_immortal
from tests.helpers.qt import application


def test_a_hundred_thousand_calls_leave_enough_references() -> None:
    application()
    there = QObject()
    for _ in range(100_000):
        there.setObjectName("x")
    assert sys.getrefcount(None) > 1_000_000


def test_it_may_be_called_twice() -> None:
    make_constants_immortal()
    before = sys.getrefcount(True)
    make_constants_immortal()
    assert abs(sys.getrefcount(True) - before) < 1_000
