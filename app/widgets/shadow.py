"""The soft shadow under things that float: a few widening outlines, no effect over text."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter

from app.look.theme import Theme

STEPS: Final = 8
SPREAD_PX: Final = 12
DOWN_PX: Final = 4
OPACITY_LIGHT: Final = 0.18
OPACITY_DARK: Final = 0.50


def paint_shadow(painter: QPainter, box: QRectF, radius: float, theme: Theme) -> None:
    """Paint the shadow of ``box`` before ``box`` itself is painted."""
    opacity = OPACITY_DARK if theme.tokens.dark else OPACITY_LIGHT
    shade = QColor(Qt.GlobalColor.black)
    shade.setAlphaF(opacity / STEPS)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(shade)
    for step in range(STEPS):
        grow = SPREAD_PX * (step + 1) / STEPS - DOWN_PX
        ring = box.adjusted(-grow, -grow + DOWN_PX, grow, grow + DOWN_PX)
        painter.drawRoundedRect(ring, radius + grow, radius + grow)
