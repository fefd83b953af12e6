"""Actions are data: each has a name, keys of its own, and is done only when it can be."""

from __future__ import annotations

from PySide6.QtGui import QAction, QKeySequence

from app.actions import Action, install
from tests.unit.app.conftest import Stage


def test_an_action_is_done_by_its_keys_only_while_it_can_be(stage: Stage) -> None:
    done: list[str] = []
    allowed = [False]
    action = Action(
        "chat.new", "New chat", ("Ctrl+N", "Ctrl+Shift+O"), lambda: done.append("new"),
        lambda: allowed[0],
    )  # fmt: skip
    install([action], stage.window)
    (made,) = stage.window.actions()
    assert isinstance(made, QAction)
    assert made.shortcuts() == [QKeySequence("Ctrl+N"), QKeySequence("Ctrl+Shift+O")]
    made.trigger()
    assert done == []
    allowed[0] = True
    made.trigger()
    assert done == ["new"]
