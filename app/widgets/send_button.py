"""The one button of the composer: sends, and stops while a reply is being written."""

from __future__ import annotations

from typing import Final, Literal

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.language.words import tr
from app.look.icons import Icons
from app.look.theme import Look

SIDE: Final = 36
STROKE: Final = 2.0


class SendButton(QAbstractButton):
    """Ember while it can be pressed; an arrow to send, a square to stop."""

    def __init__(self, look: Look, icons: Icons, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._icons = icons
        self._stops = False
        self._sends = tr("Send (Enter)")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        look.changed.connect(self._on_look_changed)
        self._on_look_changed()
        self.show_stop(stops=False)

    @property
    def stops(self) -> bool:
        """Whether pressing it stops a reply."""
        return self._stops

    def show_stop(self, *, stops: bool) -> None:
        """Be the stop button, or the send button."""
        self._stops = stops
        name = tr("Stop the reply (Esc)") if stops else self._sends
        self.setAccessibleName(name)
        self.setToolTip(name)
        self.update()

    def name_key(self, key: Literal["enter", "ctrl+enter"]) -> None:
        """The key that sends, which the button's name tells."""
        self._sends = tr("Send (Enter)") if key == "enter" else tr("Send (Ctrl+Enter)")
        self.show_stop(stops=self._stops)

    def sizeHint(self) -> QSize:
        """The side, scaled."""
        side = self._look.theme.px(SIDE)
        return QSize(side, side)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """A rounded square with its mark."""
        theme = self._look.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color(self._fill()))
        box = QRectF(self.rect())
        radius = theme.px(10)
        if self.hasFocus():
            painter.setPen(QPen(theme.color("focus"), 2))
            box = box.adjusted(1, 1, -1, -1)
        painter.drawRoundedRect(box, radius, radius)
        size = theme.px(20)
        colour = theme.tokens.on_accent if self.isEnabled() else theme.tokens.disabled
        name = "stop" if self._stops else "up"
        ratio = self.devicePixelRatioF()
        mark = self._icons.pixmap(name, size, colour, ratio, stroke=STROKE)
        painter.drawPixmap(QPointF((self.width() - size) / 2, (self.height() - size) / 2), mark)

    def _fill(self) -> str:
        if not self.isEnabled():
            return "track"
        if self.isDown():
            return "accent_pressed"
        return "accent_hover" if self.underMouse() else "accent"

    def _on_look_changed(self, _theme: object = None) -> None:
        self.setFixedSize(self.sizeHint())
        self.update()
