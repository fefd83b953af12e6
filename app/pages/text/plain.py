"""A long text to read: one font, does not wrap, can be selected and scrolled by keyboard."""

from __future__ import annotations

from PySide6.QtGui import QTextOption
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from app.look.theme import Look, Role


class PlainText(QPlainTextEdit):
    """Read-only; takes fonts of the current theme."""

    def __init__(self, look: Look, name: str, parent: QWidget, *, wraps: bool = False) -> None:
        super().__init__(parent)
        self._look = look
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setAccessibleName(name)
        self.setProperty("layer", "sunken")
        mode = QTextOption.WrapMode.WordWrap if wraps else QTextOption.WrapMode.NoWrap
        self.setWordWrapMode(mode)
        look.changed.connect(self._on_look_changed)
        self._on_look_changed()

    def _on_look_changed(self, _theme: object = None) -> None:
        self.setFont(self._look.theme.font(Role.CODE))
