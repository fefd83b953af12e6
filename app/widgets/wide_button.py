"""The sidebar's wide button: icon, word, and the keys that do the same."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.look.icons import Icons
from app.look.theme import Look, Role


class WideButton(QAbstractButton):
    """A button on a surface with a quiet edge."""

    def __init__(
        self, look: Look, icons: Icons, parent: QWidget, *, icon: str, text: str, keys: str
    ) -> None:
        super().__init__(parent)
        self._look = look
        self._icons = icons
        self._icon = icon
        self._keys = keys
        self.setText(text)
        self.setAccessibleName(f"{text} ({keys})")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        look.changed.connect(self._on_look_changed)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Surface, edge, icon, word, keys."""
        theme = self._look.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        fill = "pressed" if self.isDown() else "hover" if self.underMouse() else "surface"
        painter.setBrush(theme.color(fill))
        edge = QPen(theme.color("line"), 1)
        if self.hasFocus():
            edge = QPen(theme.color("focus"), 2)
        painter.setPen(edge)
        half = edge.widthF() / 2
        radius = theme.px(8)
        box = QRectF(self.rect()).adjusted(half, half, -half, -half)
        painter.drawRoundedRect(box, radius, radius)
        size = theme.px(18)
        icon = self._icons.pixmap(
            self._icon, size, theme.tokens.text, self.devicePixelRatioF(), stroke=1.8
        )
        painter.drawPixmap(QPointF(theme.px(10), (self.height() - size) / 2), icon)
        painter.setPen(theme.color("text"))
        painter.setFont(theme.font(Role.STRONG))
        words = QRectF(theme.px(38), 0, self.width(), self.height())
        painter.drawText(words, Qt.AlignmentFlag.AlignVCenter, self.text())
        painter.setPen(theme.color("text2"))
        painter.setFont(theme.font(Role.CAPTION))
        keys = QRectF(0, 0, self.width() - theme.px(10), self.height())
        align = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
        painter.drawText(keys, align, self._keys)

    def _on_look_changed(self, _theme: object) -> None:
        self.update()
