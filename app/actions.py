"""Every action of the window as data: its name and keys, when it can be done, what it does.

``install`` makes Qt actions of them; nothing else in the app holds a shortcut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a person can do.

    Attributes:
        id: stable name, "chat.new".
        text: a verb and its object.
        shortcuts: key sequences in Qt's portable form.
        run: does it.
        enabled: whether it can be done now; asked each time.
    """

    id: str
    text: str
    shortcuts: tuple[str, ...]
    run: Callable[[], None]
    enabled: Callable[[], bool] = _always

    def trigger(self) -> None:
        """Do it, if it can be done now."""
        if self.enabled():
            self.run()


def install(actions: Iterable[Action], window: QWidget) -> None:
    """Make each action available by its keys anywhere in ``window``."""
    for action in actions:
        made = QAction(action.text, window)
        made.setObjectName(action.id)
        made.setShortcuts([QKeySequence(keys) for keys in action.shortcuts])
        made.triggered.connect(lambda _checked=False, what=action: what.trigger())
        window.addAction(made)
