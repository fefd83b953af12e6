"""A quiet row that opens and closes what stands below it: a chevron and a word."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.look.icons import Icons
from app.look.theme import Look, Role


class FoldButton(QAbstractButton):
    """Checkable; checked is open."""

    def __init__(self, look: Look, icons: Icons, text: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._icons = icons
        self.setText(text)
        self.setAccessibleName(text)
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)

    def sizeHint(self) -> QSize:
        """Chevron, word, and a height that can be hit."""
        theme = self._look.theme
        text = QFontMetricsF(theme.font(Role.INTERFACE)).horizontalAdvance(self.text())
        return QSize(theme.px(16 + 6) + int(text), theme.px(24))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """The chevron points down while open."""
        theme = self._look.theme
        tone = "text" if self.underMouse() else "text2"
        painter = QPainter(self)
        size = theme.px(16)
        name = "chevd" if self.isChecked() else "chevr"
        colour = getattr(theme.tokens, tone)
        pixmap = self._icons.pixmap(name, size, colour, self.devicePixelRatioF())
        painter.drawPixmap(QPointF(-theme.px(4), (self.height() - size) / 2), pixmap)
        painter.setFont(theme.font(Role.INTERFACE))
        painter.setPen(theme.color(tone))
        box = QRectF(theme.px(16), 0, self.width(), self.height())
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, self.text())
        if self.hasFocus():
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(theme.color("focus"), 2))
            ring = QRectF(self.rect()).adjusted(1, 1, -1, -1)
            painter.drawRoundedRect(ring, theme.px(6), theme.px(6))
