"""One look and a bare window for the widgets' tests; nothing of Qt outlives a test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from PySide6.QtWidgets import QWidget

from app.look.icons import Icons
from app.look.theme import Look, Preference
from tests.helpers.qt import application, left_of_qt, plain_font


@dataclass(frozen=True, slots=True)
class Stage:
    """What a widget needs to be shown."""

    look: Look
    icons: Icons
    window: QWidget


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A window of 800 by 600 in the light theme, at the reference's sizes."""
    look = Look(application(), Preference.LIGHT, plain_font())
    window = QWidget()
    window.resize(800, 600)
    window.show()
    yield Stage(look, Icons(), window)
    window.close()
    window.deleteLater()
    look.deleteLater()
    assert left_of_qt() == []
