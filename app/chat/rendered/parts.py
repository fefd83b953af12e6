"""What a reply is made of on the screen: parts that know their height at a width and paint.

A part is no widget: the reply paints those that can be seen. Offsets are into the turn's text,
points are relative to the part's top left corner. UI thread only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from app.chat.markdown.records import (
    Block,
    Formula,
    Heading,
    Nest,
    Paragraph,
    Plain,
    Run,
)
from app.chat.rendered.setting import SetText, Setting
from app.look.theme import Role

PARAGRAPH: Final = 8
ITEM: Final = 2
BLOCK: Final = 10
HEADING: Final = 14
INDENT: Final = 24
QUOTE: Final = 16
BAR: Final = 3

_RIGHT: Final = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter

HEADINGS: Final = {1: Role.HEADING, 2: Role.HEADING_2, 3: Role.PAGE}
"""Smaller ones are set as the text, but strong."""


class Part(ABC):
    """One block of a reply.

    Attributes:
        block: what it shows.
        gap: room above it, in px of the reference.
        height: at the width that was set last.
    """

    gap = PARAGRAPH

    def __init__(self, block: Block, setting: Setting) -> None:
        self.block = block
        self.setting = setting
        self.height = 0.0

    @property
    def nest(self) -> Nest:
        """Where it stands in lists and quotes."""
        return self.block.nest

    def gap_after(self, before: Part) -> int:
        """Room above it, in px of the reference: items of one list stand close together."""
        inside = self.nest.marker and before.nest.indent
        return ITEM if inside else max(self.gap, before.gap if before.gap == BLOCK else 0)

    def left(self) -> float:
        """Where its own content begins."""
        px = self.setting.theme.px
        return float(px(INDENT) * self.nest.indent + px(QUOTE) * self.nest.quotes)

    @abstractmethod
    def set_width(self, width: float) -> None:
        """Arrange for a width."""

    @abstractmethod
    def paint(self, painter: QPainter, origin: QPointF, clip: QRectF, selection: range) -> None:
        """Draw what ``clip`` touches."""

    def source_at(self, point: QPointF) -> int:
        """The offset nearest to a point: by halves where there is no text."""
        span = self.block.span
        return span.start if point.y() < self.height / 2 else span.stop

    def link_at(self, _point: QPointF) -> str | None:
        """Where a link leads; None where there is none."""
        return None

    def word_at(self, offset: int) -> range:
        """The word around an offset."""
        return range(offset, offset)

    def paint_nest(self, painter: QPainter, origin: QPointF, above: float) -> None:
        """The bars of quotes, over ``above`` too, and an item's marker."""
        theme, nest = self.setting.theme, self.nest
        for number in range(nest.quotes):
            x = origin.x() + theme.px(INDENT) * nest.indent + theme.px(QUOTE) * number
            box = QRectF(x, origin.y() - above, theme.px(BAR), self.height + above)
            painter.fillRect(box, theme.color("line_strong"))
        if nest.marker:
            painter.setFont(theme.font(Role.BODY))
            painter.setPen(theme.color("text2"))
            line = theme.line_px(Role.BODY)
            box = QRectF(origin.x(), origin.y(), self.left() - theme.px(6), line)
            painter.drawText(box, _RIGHT, nest.marker)


class TextPart(Part):
    """A paragraph, a heading or an item's text."""

    def __init__(self, block: Paragraph | Heading, setting: Setting) -> None:
        own = setting
        runs = block.runs
        if isinstance(block, Heading):
            role = HEADINGS.get(block.level)
            self.gap = HEADING
            if role is None:
                runs = tuple(_strong(run) for run in runs)
            own = _with(setting, role or Role.BODY, setting.tone)
        elif block.nest.quotes:
            own = _with(setting, setting.role, "text2")
        super().__init__(block, own)
        self._text = SetText(runs, own)

    def set_width(self, width: float) -> None:
        """Lines at what nesting leaves."""
        self.height = self._text.set_width(max(40.0, width - self.left()))

    def paint(self, painter: QPainter, origin: QPointF, clip: QRectF, selection: range) -> None:
        """The lines."""
        self._text.paint(painter, origin + QPointF(self.left(), 0), clip, selection)

    def source_at(self, point: QPointF) -> int:
        """The nearest sign."""
        return self._text.source_at(point - QPointF(self.left(), 0))

    def link_at(self, point: QPointF) -> str | None:
        """Where a link leads."""
        return self._text.link_at(point - QPointF(self.left(), 0))

    def word_at(self, offset: int) -> range:
        """The word around an offset."""
        return self._text.word_at(offset)


class PlainPart(Part):
    """Text that is not read as Markdown; long lines are cut into pieces that can be laid out."""

    PIECE = 4096

    def __init__(self, block: Plain, setting: Setting) -> None:
        super().__init__(block, setting)
        size, start = self.PIECE, block.span.start
        self._pieces: list[SetText] = []
        at = 0
        for line in block.text.split("\n"):
            for first in range(0, max(1, len(line)), size):
                text = line[first : first + size]
                span = range(start + at + first, start + at + first + len(text))
                self._pieces.append(SetText((Run(text, span),), setting))
            at += len(line) + 1
        self._tops: list[float] = []

    def set_width(self, width: float) -> None:
        """Pieces under each other."""
        self._tops = []
        y = 0.0
        for piece in self._pieces:
            self._tops.append(y)
            y += piece.set_width(width)
        self.height = y

    def paint(self, painter: QPainter, origin: QPointF, clip: QRectF, selection: range) -> None:
        """The pieces that can be seen."""
        for top, piece in zip(self._tops, self._pieces, strict=True):
            if clip.top() - piece.height <= origin.y() + top <= clip.bottom():
                piece.paint(painter, origin + QPointF(0, top), clip, selection)

    def source_at(self, point: QPointF) -> int:
        """The nearest sign."""
        found = 0
        for number, top in enumerate(self._tops):
            if top <= point.y():
                found = number
        return self._pieces[found].source_at(point - QPointF(0, self._tops[found]))


class RulePart(Part):
    """A line across."""

    gap = BLOCK

    def set_width(self, width: float) -> None:
        """As wide as there is room."""
        self._width = width
        self.height = float(self.setting.theme.px(9))

    def paint(self, painter: QPainter, origin: QPointF, _clip: QRectF, _selection: range) -> None:
        """One quiet line."""
        y = origin.y() + self.height / 2
        left = origin.x() + self.left()
        painter.setPen(QPen(self.setting.theme.color("line_strong"), 1))
        painter.drawLine(QPointF(left, y), QPointF(origin.x() + self._width, y))


class FormulaPart(Part):
    """A formula by itself, in the middle; its source until it is drawn."""

    gap = BLOCK

    def __init__(self, block: Formula, setting: Setting) -> None:
        super().__init__(block, setting)
        self._drawn = setting.formulas.found(block.tex)
        code = _with(setting, Role.CODE, "text2")
        self._source = SetText((Run(block.tex, block.span),), code)
        self._width = 0.0

    def set_width(self, width: float) -> None:
        """The formula's own height; it is made smaller where it is too wide."""
        self._width = width - self.left()
        drawn = self._drawn
        if drawn is None:
            self.height = self._source.set_width(self._width)
        else:
            self.height = (drawn.above + drawn.below) * self._scale() + self.setting.theme.px(8)

    def paint(self, painter: QPainter, origin: QPointF, clip: QRectF, selection: range) -> None:
        """The picture, on the selection's colour where it is selected."""
        drawn, span = self._drawn, self.block.span
        left = origin + QPointF(self.left(), 0)
        if drawn is None:
            self._source.paint(painter, left, clip, selection)
            return
        if selection.start <= span.start and span.stop <= selection.stop:
            box = QRectF(left.x(), left.y(), self._width, self.height)
            painter.fillRect(box, self.setting.theme.color("selection"))
        scale = self._scale()
        painter.save()
        x = left.x() + max(0.0, (self._width - drawn.width * scale) / 2)
        painter.translate(x, left.y() + self.setting.theme.px(4))
        painter.scale(scale, scale)
        drawn.paint(painter, QPointF(0, 0))
        painter.restore()

    def _scale(self) -> float:
        drawn = self._drawn
        return 1.0 if drawn is None else min(1.0, self._width / max(1.0, drawn.width))


def _with(setting: Setting, role: Role, tone: str) -> Setting:
    return Setting(setting.theme, role, setting.formulas, tone, setting.wraps)


def _strong(run: Run) -> Run:
    return Run(run.text, run.span, replace(run.style, strong=True))
