"""The name of the model in the top bar as a button: a fill below it and a chevron after it."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.language.words import tr
from app.look.icons import Icons
from app.look.theme import Look


class NameButton(QAbstractButton):
    """Lies over the name that the bar paints; paints only what a button has besides."""

    def __init__(self, look: Look, icons: Icons, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._icons = icons
        self.setAccessibleName(tr("Choose a model (Ctrl+L)"))
        self.setToolTip(self.accessibleName())
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """A ring for the keyboard; the chevron is text while the pointer is here."""
        theme = self._look.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.hasFocus():
            painter.setPen(QPen(theme.color("focus"), 2))
            box = QRectF(self.rect()).adjusted(1, 1, -1, -1)
            painter.drawRoundedRect(box, theme.px(7), theme.px(7))
        lit = self.underMouse() or self.isDown()
        tone = theme.tokens.text if lit else theme.tokens.text2
        size = theme.px(16)
        mark = self._icons.pixmap("chevd", size, tone, self.devicePixelRatioF())
        x = self.width() - size - theme.px(4)
        painter.drawPixmap(QPointF(x, (self.height() - size) / 2), mark)
