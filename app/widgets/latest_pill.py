"""The "Latest" pill: shown above the composer while the transcript does not follow."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.look.icons import Icons
from app.look.theme import Look, Role
from app.widgets.shadow import paint_shadow

MARGIN = 16
HEIGHT = 32


class LatestPill(QAbstractButton):
    """A floating button; its rectangle includes the room of its shadow."""

    def __init__(self, look: Look, icons: Icons, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._icons = icons
        self.setText("Latest")
        self.setAccessibleName("Go to the latest text")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.hide()

    def sizeHint(self) -> QSize:
        """Pill and shadow."""
        theme = self._look.theme
        text = QFontMetricsF(theme.font(Role.STRONG)).horizontalAdvance(self.text())
        wide = round(text) + theme.px(12 + 18 + 6 + 14)
        return QSize(wide + 2 * MARGIN, theme.px(HEIGHT) + 2 * MARGIN)

    def place(self, right: int, bottom: int) -> None:
        """Put the pill's own edge at ``right`` and ``bottom`` of the parent."""
        size = self.sizeHint()
        self.setGeometry(
            right - size.width() + MARGIN,
            bottom - size.height() + MARGIN,
            size.width(),
            size.height(),
        )

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Shadow, pill, arrow, word."""
        theme = self._look.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(MARGIN, MARGIN, -MARGIN, -MARGIN)
        radius = box.height() / 2
        paint_shadow(painter, box, radius, theme)
        painter.setBrush(theme.color("hover" if self.underMouse() else "surface"))
        edge = QPen(theme.color("focus"), 2) if self.hasFocus() else QPen(theme.color("control"), 1)
        painter.setPen(edge)
        painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
        icon = theme.px(18)
        pixmap = self._icons.pixmap("down", icon, theme.tokens.text, self.devicePixelRatioF())
        left = box.left() + theme.px(10)
        painter.drawPixmap(QPointF(left, box.center().y() - icon / 2), pixmap)
        painter.setFont(theme.font(Role.STRONG))
        painter.setPen(theme.color("text"))
        word = QRectF(left + icon + theme.px(5), box.top(), box.width(), box.height())
        painter.drawText(word, Qt.AlignmentFlag.AlignVCenter, self.text())
