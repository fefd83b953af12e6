"""A field that narrows a list while one types: a magnifying glass and a line of text."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QLineEdit, QWidget

from app.language.words import tr
from app.look.icons import Icons
from app.look.theme import Look, Role

HEIGHT: Final = 32
WIDTH: Final = 220


class FilterLine(QLineEdit):
    """The text; Esc empties it. Emits ``focused`` whenever it gets or loses the keyboard."""

    focused = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Esc empties a field that has text; else it goes on to the window."""
        if event.key() == Qt.Key.Key_Escape and self.text():
            self.clear()
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """The edge turns to the colour of the focus."""
        super().focusInEvent(event)
        self.focused.emit()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """The edge is quiet again."""
        super().focusOutEvent(event)
        self.focused.emit()


class FilterField(QWidget):
    """The painted frame around a line of text.

    Attributes:
        line: where one types.
    """

    def __init__(self, look: Look, icons: Icons, name: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._icons = icons
        self.line = FilterLine(self)
        self.line.setPlaceholderText(tr("Filter"))
        self.line.setAccessibleName(name)
        self.line.setProperty("kind", "bare")
        self.line.focused.connect(self.update)
        self.setFocusProxy(self.line)
        look.changed.connect(self._on_look_changed)
        self._on_look_changed()

    def sizeHint(self) -> QSize:
        """The size of the reference."""
        theme = self._look.theme
        return QSize(theme.px(WIDTH), theme.px(HEIGHT))

    def resizeEvent(self, _event: QResizeEvent) -> None:
        """The line begins after the glass."""
        theme = self._look.theme
        left = theme.px(36)
        self.line.setGeometry(left, 2, self.width() - left - theme.px(8), self.height() - 4)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Surface, edge, glass."""
        theme = self._look.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        focused = self.line.hasFocus()
        edge = QPen(theme.color("focus"), 2) if focused else QPen(theme.color("control"), 1)
        half = edge.widthF() / 2
        painter.setPen(edge)
        painter.setBrush(theme.color("surface"))
        radius = theme.px(8)
        box = QRectF(self.rect()).adjusted(half, half, -half, -half)
        painter.drawRoundedRect(box, radius, radius)
        size = theme.px(16)
        icon = self._icons.pixmap("search", size, theme.tokens.text2, self.devicePixelRatioF())
        painter.drawPixmap(QPointF(theme.px(12), (self.height() - size) / 2), icon)

    def _on_look_changed(self, _theme: object = None) -> None:
        self.line.setFont(self._look.theme.font(Role.INTERFACE))
        self.setFixedHeight(self.sizeHint().height())
        self.update()
