"""The locked Qt binding counts its references: a wheel that does not ends the window."""

from __future__ import annotations

import sys

from PySide6.QtCore import QObject

CALLS = 1000


def test_calls_that_return_nothing_use_up_no_reference_to_none() -> None:
    """PySide6 6.12.0 takes one reference of None a call under Python 3.11 (decision 0007)."""
    owner = QObject()
    before = sys.getrefcount(None)
    for _ in range(CALLS):
        owner.setObjectName("hearth")
    assert abs(sys.getrefcount(None) - before) < CALLS // 2
