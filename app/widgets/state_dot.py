"""The mark that says from where a chat goes on: four shapes, the same in every place.

Hot is a disc, warm a ring with its left half filled, disk a ring, text a dash; so no colour is
needed to tell them apart.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from app.look.theme import Theme
from engine.protocol import Tier

DOT: Final = 15
"""The side of the square that a mark has; the mark itself is smaller."""

DISC: Final = 9
LINE: Final = 1.4


def paint_state_dot(painter: QPainter, box: QRectF, tier: Tier, theme: Theme) -> None:
    """Paint the mark of ``tier`` in the middle of ``box``."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    side = DISC * theme.scale
    middle = box.center()
    disc = QRectF(middle.x() - side / 2, middle.y() - side / 2, side, side)
    match tier:
        case "device":
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("hot"))
            painter.drawEllipse(disc)
        case "host":
            _paint_ring(painter, disc, "warm", theme)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("warm"))
            painter.drawPie(disc, 90 * 16, 180 * 16)
        case "disk":
            _paint_ring(painter, disc, "disk", theme)
        case "none":
            pen = QPen(theme.color("disk"), 2 * theme.scale)
            pen.setCapStyle(Qt.PenCapStyle.RoundCap)
            painter.setPen(pen)
            half = QPointF(3 * theme.scale, 0)
            painter.drawLine(middle - half, middle + half)
    painter.restore()


def _paint_ring(painter: QPainter, disc: QRectF, token: str, theme: Theme) -> None:
    line = LINE * theme.scale
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(theme.color(token), line))
    inset = line / 2
    painter.drawEllipse(disc.adjusted(inset, inset, -inset, -inset))
