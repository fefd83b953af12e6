"""The busy arc: a quarter of ring that turns while something is being worked on."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QElapsedTimer, QObject, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QApplication, QStyle

from app.look.theme import Theme

TURN_MS: Final = 900
FRAME_MS: Final = 33


class BusyTurn(QObject):
    """Owns the timer of all arcs; it runs only while somebody needs it.

    Emits ``turned`` at each frame. With reduced motion it never runs and arcs stand still.
    """

    turned = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._timer = QTimer(self)
        self._timer.setInterval(FRAME_MS)
        self._timer.timeout.connect(self.turned)
        self._clock = QElapsedTimer()
        self._clock.start()

    def need(self, needed: bool) -> None:
        """Run while ``needed``."""
        if not needed or _motion_is_reduced():
            self._timer.stop()
        elif not self._timer.isActive():
            self._timer.start()

    def paint(self, painter: QPainter, box: QRectF, theme: Theme) -> None:
        """Draw the arc into ``box`` as it stands now."""
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        width = max(1.6, box.width() / 6)
        ring = box.adjusted(width / 2, width / 2, -width / 2, -width / 2)
        pen = QPen(theme.color("track"), width)
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
        painter.setPen(pen)
        painter.drawEllipse(ring)
        pen.setColor(theme.color("accent"))
        painter.setPen(pen)
        still = not self._timer.isActive()
        turn = 0.0 if still else (self._clock.elapsed() % TURN_MS) / TURN_MS
        span = 270 if still else 110
        painter.drawArc(ring, round((90 - 360 * turn) * 16), -span * 16)
        painter.restore()


def _motion_is_reduced() -> bool:
    style = QApplication.style()
    return style.styleHint(QStyle.StyleHint.SH_Widget_Animation_Duration) == 0
