"""A row at the foot of the sidebar that leads to a page: icon, word, and a small bar at its end."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.look.icons import Icons
from app.look.theme import Look, Role
from app.memory.cards import Part
from app.memory.view.bar import paint_memory_bar

HEIGHT: Final = 32
BAR_WIDTH: Final = 72
BAR_HEIGHT: Final = 6


class NavButton(QAbstractButton):
    """Checkable; checked while its page is shown."""

    def __init__(self, look: Look, icons: Icons, parent: QWidget, *, icon: str, text: str) -> None:
        super().__init__(parent)
        self._look = look
        self._icons = icons
        self._icon = icon
        self._parts: tuple[Part, ...] = ()
        self.setText(text)
        self.setAccessibleName(text)
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        look.changed.connect(self._on_look_changed)

    def show_parts(self, parts: tuple[Part, ...], words: str) -> None:
        """Show a bar of ``parts`` at the end; ``words`` say the same in the tooltip."""
        if parts != self._parts or words != self.toolTip():
            self._parts = parts
            self.setToolTip(words)
            self.setAccessibleDescription(words)
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Fill by state, icon, word, bar."""
        theme = self._look.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box, radius = QRectF(self.rect()), theme.px(7)
        fill = self._fill()
        if fill:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color(fill))
            painter.drawRoundedRect(box, radius, radius)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(theme.color("focus"), 2))
            painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), radius, radius)
        tokens, size = theme.tokens, theme.px(18)
        colour = tokens.accent_text if self.isChecked() else tokens.text2
        icon = self._icons.pixmap(self._icon, size, colour, self.devicePixelRatioF())
        painter.drawPixmap(QPointF(theme.px(10), (self.height() - size) / 2), icon)
        painter.setPen(theme.color("text"))
        painter.setFont(theme.font(Role.STRONG if self.isChecked() else Role.INTERFACE))
        words = QRectF(theme.px(38), 0, self.width(), self.height())
        painter.drawText(words, Qt.AlignmentFlag.AlignVCenter, self.text())
        if self._parts:
            wide, tall = theme.px(BAR_WIDTH), theme.px(BAR_HEIGHT)
            left = self.width() - theme.px(10) - wide
            bar = QRectF(left, (self.height() - tall) / 2, wide, tall)
            paint_memory_bar(painter, bar, self._parts, theme, tall / 2)

    def _fill(self) -> str:
        if self.isDown():
            return "pressed"
        if self.isChecked():
            return "selected"
        return "hover" if self.underMouse() else ""

    def _on_look_changed(self, _theme: object) -> None:
        self.update()
