"""A square button that is only an icon, with a name for the tooltip and the screen reader."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.look.icons import Icons
from app.look.theme import Look

ICON_PX: Final = 18


class IconButton(QAbstractButton):
    """One line icon; hover and press are fills, the keyboard's focus is a ring inside."""

    def __init__(
        self, look: Look, icons: Icons, icon: str, name: str, parent: QWidget, *, side: int = 32
    ) -> None:
        super().__init__(parent)
        self._look = look
        self._icons = icons
        self._icon = icon
        self._side = side
        self.setAccessibleName(name)
        self.setToolTip(name)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        look.changed.connect(self._on_look_changed)
        self._on_look_changed()

    def show_icon(self, icon: str, name: str) -> None:
        """Another icon and name from now on."""
        self._icon = icon
        self.setAccessibleName(name)
        self.setToolTip(name)
        self.update()

    def sizeHint(self) -> QSize:
        """The side of the square, scaled."""
        side = self._look.theme.px(self._side)
        return QSize(side, side)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Fill by state, then the icon in the middle."""
        theme = self._look.theme
        tokens = theme.tokens
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect())
        radius = theme.px(7)
        fill = tokens.pressed if self.isDown() else tokens.hover if self.underMouse() else None
        if fill is not None and self.isEnabled():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("pressed" if self.isDown() else "hover"))
            painter.drawRoundedRect(box, radius, radius)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(theme.color("focus"), 2))
            painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), radius, radius)
        size = theme.px(ICON_PX)
        colour = tokens.text if self.underMouse() else tokens.text2
        if not self.isEnabled():
            colour = tokens.disabled
        pixmap = self._icons.pixmap(self._icon, size, colour, self.devicePixelRatioF())
        painter.drawPixmap(QPointF((self.width() - size) / 2, (self.height() - size) / 2), pixmap)

    def _on_look_changed(self, _theme: object = None) -> None:
        self.setFixedSize(self.sizeHint())
        self.update()
