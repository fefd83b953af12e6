"""A thin bar that shows a fraction, with its number always told beside it by the owner."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app.look.theme import Look

WARN_ABOVE = 0.85


class FractionBar(QWidget):
    """Part of a whole, from 0 to 1, in the accent; where it ``warns``, in warn when nearly full."""

    def __init__(self, look: Look, name: str, parent: QWidget, *, warns: bool = False) -> None:
        super().__init__(parent)
        self._look = look
        self._fraction = 0.0
        self._warns = warns
        self.setAccessibleName(name)
        look.changed.connect(self._on_look_changed)
        self._on_look_changed()

    def show_fraction(self, fraction: float) -> None:
        """Show ``fraction``; values outside 0 to 1 are cut."""
        fraction = min(1.0, max(0.0, fraction))
        if fraction != self._fraction:
            self._fraction = fraction
            self.setAccessibleDescription(f"{fraction:.0%}")
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Track, then the part."""
        theme = self._look.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        box = QRectF(self.rect())
        radius = min(box.height() / 2, theme.px(3))
        painter.setBrush(theme.color("track"))
        painter.drawRoundedRect(box, radius, radius)
        if self._fraction <= 0:
            return
        tone = "warn" if self._warns and self._fraction > WARN_ABOVE else "accent"
        painter.setClipRect(QRectF(0, 0, max(2.0, box.width() * self._fraction), box.height()))
        painter.setBrush(theme.color(tone))
        painter.drawRoundedRect(box, radius, radius)

    def _on_look_changed(self, _theme: object = None) -> None:
        self.update()
