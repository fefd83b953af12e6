"""A switch: a knob in a lane, on where it stands at the end."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.look.theme import Look

WIDTH: Final = 36
HEIGHT: Final = 20
HIT: Final = 32
KNOB: Final = 14


class SwitchButton(QAbstractButton):
    """Checkable; the name is given by who makes it."""

    def __init__(self, look: Look, name: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self.setCheckable(True)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        look.changed.connect(self._on_look_changed)
        self._on_look_changed()

    def sizeHint(self) -> QSize:
        """As wide as the lane, high enough to hit."""
        theme = self._look.theme
        return QSize(theme.px(WIDTH + 4), theme.px(HIT))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Lane, knob, ring of the keyboard's focus."""
        theme = self._look.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        wide, tall = theme.px(WIDTH), theme.px(HEIGHT)
        lane = QRectF(theme.px(2), (self.height() - tall) / 2, wide, tall)
        on = self.isChecked()
        painter.setPen(Qt.PenStyle.NoPen if on else QPen(theme.color("control"), 1))
        painter.setBrush(theme.color("accent" if on else "surface"))
        painter.drawRoundedRect(lane.adjusted(0.5, 0.5, -0.5, -0.5), tall / 2, tall / 2)
        inset = tall / 2
        x = lane.right() - inset if on is not self._mirrored() else lane.left() + inset
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("on_accent" if on else "control"))
        painter.drawEllipse(QPointF(x, lane.center().y()), theme.px(KNOB) / 2, theme.px(KNOB) / 2)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(theme.color("focus"), 2))
            ring = lane.adjusted(-2, -2, 2, 2)
            painter.drawRoundedRect(ring, ring.height() / 2, ring.height() / 2)

    def _mirrored(self) -> bool:
        return self.layoutDirection() is Qt.LayoutDirection.RightToLeft

    def _on_look_changed(self, _theme: object = None) -> None:
        self.setFixedSize(self.sizeHint())
        self.update()
