"""A section of the settings page: a heading, and a card with a row for each thing."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.look.theme import Look, Role

RADIUS: Final = 12
SIDE: Final = 16
ROW: Final = 10


class SettingsRow(QWidget):
    """Title and hint at the start, a control at the end."""

    def __init__(
        self, look: Look, title: str, hint: str, control: QWidget, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._look = look
        self._title, self._hint = QLabel(title, self), QLabel(hint, self)
        self._hint.setProperty("tone", "quiet")
        words = QVBoxLayout()
        words.setSpacing(0)
        for label in (self._title, self._hint):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setWordWrap(True)
            words.addWidget(label)
        self._row = QHBoxLayout(self)
        self._row.addLayout(words, 1)
        self._row.addWidget(control, 0, Qt.AlignmentFlag.AlignVCenter)
        control.setAccessibleDescription(hint)
        look.changed.connect(self.restyle)
        self.restyle()

    def restyle(self, _theme: object = None) -> None:
        """Fonts and room of the current theme."""
        theme = self._look.theme
        self._title.setFont(theme.font(Role.STRONG))
        self._hint.setFont(theme.font(Role.CAPTION))
        side, row = theme.px(SIDE), theme.px(ROW)
        self._row.setContentsMargins(side, row, side, row)
        self._row.setSpacing(theme.px(16))


class Card(QWidget):
    """Rows under each other on a surface, a line between them."""

    def __init__(self, look: Look, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._rows: list[SettingsRow] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 2, 0, 2)
        self._column.setSpacing(1)
        look.changed.connect(self._on_look_changed)

    def add(self, row: SettingsRow) -> None:
        """Put a row below the others."""
        self._rows.append(row)
        self._column.addWidget(row)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Surface, edge, lines."""
        theme = self._look.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.color("line"), 1))
        painter.setBrush(theme.color("surface"))
        radius = theme.px(RADIUS)
        box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(box, radius, radius)
        for row in self._rows[1:]:
            painter.fillRect(QRectF(1, row.y() - 1, self.width() - 2, 1), theme.color("line"))

    def _on_look_changed(self, _theme: object) -> None:
        self.update()
