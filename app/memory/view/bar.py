"""A pool as one bar: its parts side by side with a gap between, what is free as the bare track.

Painting only; the parts come from ``app.memory.cards`` and the words for them stand beside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPen

from app.look.theme import Theme
from app.memory.cards import Part, PartKind

GAP: Final = 2
LEAST: Final = 3
HATCH: Final = 7


def part_boxes(parts: Sequence[Part], box: QRectF, gap: float, least: float) -> list[QRectF]:
    """Where each part lies: wide as its share, but at least ``least``; together as wide as ``box``.

    What the small ones take beyond their share is taken from the largest.
    """
    total = sum(part.bytes for part in parts)
    if not total:
        return [QRectF(box)] if parts else []
    room = box.width() - gap * (len(parts) - 1)
    widths = [max(least, room * part.bytes / total) for part in parts]
    largest = widths.index(max(widths))
    widths[largest] = max(least, widths[largest] - (sum(widths) - room))
    boxes: list[QRectF] = []
    x = box.left()
    for width in widths:
        boxes.append(QRectF(x, box.top(), width, box.height()))
        x += width + gap
    return boxes


def paint_memory_bar(
    painter: QPainter, box: QRectF, parts: Sequence[Part], theme: Theme, radius: float
) -> None:
    """Paint the bar of ``parts`` into ``box`` with outer corners of ``radius``."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    outline = QPainterPath()
    outline.addRoundedRect(box, radius, radius)
    painter.setClipPath(outline)
    if not parts:
        painter.fillRect(box, theme.color("track"))
    places = part_boxes(parts, box, theme.px(GAP), theme.px(LEAST))
    for part, place in zip(parts, places, strict=False):
        _paint_part(painter, place, part.kind, theme)
    painter.restore()


def paint_swatch(painter: QPainter, box: QRectF, kind: PartKind, theme: Theme) -> None:
    """Paint the small square that stands before a part's name in the legend."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    radius = theme.px(3)
    if kind is PartKind.FREE:
        painter.setPen(QPen(theme.color("control"), 1))
        painter.setBrush(theme.color("track"))
        inside = radius - 0.5
        painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), inside, inside)
    else:
        outline = QPainterPath()
        outline.addRoundedRect(box, radius, radius)
        painter.setClipPath(outline)
        _paint_part(painter, box, kind, theme)
    painter.restore()


def _paint_part(painter: QPainter, box: QRectF, kind: PartKind, theme: Theme) -> None:
    if kind in (PartKind.FREE, PartKind.RESERVE):
        painter.fillRect(box, theme.color("track"))
    else:
        painter.fillRect(box, theme.color(kind.value))
    if kind is PartKind.RESERVE:
        _paint_hatch(painter, box, theme)


def _paint_hatch(painter: QPainter, box: QRectF, theme: Theme) -> None:
    painter.save()
    painter.setClipRect(box, Qt.ClipOperation.IntersectClip)
    painter.setPen(QPen(theme.color("control"), 1.4 * theme.scale))
    step, tall = theme.px(HATCH), box.height()
    x = box.left() - tall
    while x < box.right():
        painter.drawLine(QPointF(x, box.bottom()), QPointF(x + tall, box.top()))
        x += step
    painter.restore()
