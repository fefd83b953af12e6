"""Windows for the end-to-end tests: each is closed, and leaves nothing of Qt behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.helpers.fake_engine import Script
from tests.helpers.qt import left_of_qt
from tests.helpers.window import TestWindow

OpenWindow = Callable[..., TestWindow]


@pytest.fixture
def open_window(tmp_path: Path) -> Iterator[OpenWindow]:
    """Makes windows on one data directory; closes those that the test left open."""
    made: list[TestWindow] = []

    def open_one(script: Script | None = None, *, model: bool = True) -> TestWindow:
        made.append(TestWindow(tmp_path / "data", script, model=model))
        return made[-1]

    yield open_one
    for window in made:
        window.close()
    assert left_of_qt() == []
