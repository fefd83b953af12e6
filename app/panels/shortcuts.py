"""The list of shortcuts: every action of the window with its keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QDialog, QGridLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.actions import Action
from app.language.words import tr
from app.look.theme import Look, Role

WIDTH: Final = 480
PADDING: Final = 24


class ShortcutList(QDialog):
    """Belongs to its window and closes with it."""

    def __init__(self, look: Look, actions: Iterable[Action], parent: QWidget) -> None:
        super().__init__(parent)
        theme = look.theme
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self.setWindowTitle(tr("Keyboard shortcuts"))
        self.setProperty("layer", "surface")
        self.setMinimumWidth(theme.px(WIDTH))
        grid = QGridLayout()
        grid.setVerticalSpacing(theme.px(6))
        grid.setHorizontalSpacing(theme.px(24))
        grid.setColumnStretch(0, 1)
        for row, action in enumerate(actions):
            words = QLabel(action.text, self)
            keys = QLabel(shown_keys(action), self)
            keys.setProperty("tone", "quiet")
            words.setBuddy(keys)
            grid.addWidget(words, row, 0)
            grid.addWidget(keys, row, 1, Qt.AlignmentFlag.AlignRight)
        title = QLabel(tr("Keyboard shortcuts"), self)
        title.setFont(theme.font(Role.PAGE))
        close = QPushButton(tr("Close"), self)
        close.setFixedHeight(theme.px(34))
        close.clicked.connect(self.accept)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(*(theme.px(PADDING),) * 4)
        whole.setSpacing(theme.px(16))
        whole.addWidget(title)
        whole.addLayout(grid)
        whole.addWidget(close, 0, Qt.AlignmentFlag.AlignRight)


def shown_keys(action: Action) -> str:
    """An action's keys as this system writes them."""
    native = QKeySequence.SequenceFormat.NativeText
    return ", ".join(QKeySequence(keys).toString(native) for keys in action.shortcuts)
