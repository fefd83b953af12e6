"""Parts that are boxes: code with its head, and tables. What is too wide scrolls inside.

The widgets of a box, its Copy button and its bar, are made by the reply when the box is first seen.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPainterPath, QPen

from app.chat.markdown.records import Code, Run, Style, Table
from app.chat.rendered.highlight import Spans
from app.chat.rendered.parts import BLOCK, Part
from app.chat.rendered.setting import SetText, Setting
from app.look.theme import Role

RADIUS: Final = 10
HEAD: Final = 32
SIDE: Final = 14
TOP: Final = 10
CELL_TOP: Final = 4
BAR: Final = 10
LINES_KEPT: Final = 400
LEAST_COLUMN: Final = 72


class BoxPart(Part):
    """A part whose content may be wider than it is.

    Attributes:
        offset: how far the content is scrolled to the side; at most ``surplus``.
    """

    gap = BLOCK

    def __init__(self, block: Code | Table, setting: Setting) -> None:
        super().__init__(block, setting)
        self.offset = 0
        self.content_width = 0.0
        self._width = 0.0

    @property
    def surplus(self) -> int:
        """How much of the content does not fit."""
        return max(0, round(self.content_width - self._width))

    def box(self) -> QRectF:
        """The box within the part."""
        return QRectF(self.left(), 0, self._width, self.height)

    def paint_box(self, painter: QPainter, origin: QPointF, fill: str) -> None:
        """Ground and edge."""
        theme = self.setting.theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.color("line"), 1))
        painter.setBrush(theme.color(fill))
        box = self.box().translated(origin).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(box, theme.px(RADIUS), theme.px(RADIUS))


class CodePart(BoxPart):
    """Code: its language, its lines as they are written, coloured once ``spans`` are there."""

    def __init__(self, block: Code, setting: Setting) -> None:
        super().__init__(block, setting)
        self.code = block
        self._lines = block.text.split("\n")
        self._starts: list[int] = []
        at = 0
        for line in self._lines:
            self._starts.append(at)
            at += len(line) + 1
        self._spans: Spans = ()
        self._set: OrderedDict[int, SetText] = OrderedDict()
        self._plain = Setting(setting.theme, Role.CODE, setting.formulas, "text", wraps=False)
        self._line_px = float(setting.theme.line_px(Role.CODE))

    @property
    def is_plain(self) -> bool:
        """Whether it was not coloured yet."""
        return not self._spans

    def colour(self, spans: Spans) -> None:
        """Show what the parts of the code are."""
        self._spans = spans
        self._set.clear()

    def set_width(self, width: float) -> None:
        """Lines do not wrap."""
        theme = self.setting.theme
        self._width = width - self.left()
        metrics = QFontMetricsF(theme.font(Role.CODE))
        longest = max(self._lines, key=len)
        self.content_width = metrics.horizontalAdvance(longest) + 2 * theme.px(SIDE)
        bar = theme.px(BAR) if self.surplus else 0
        lines = len(self._lines) * self._line_px
        self.height = theme.px(HEAD) + lines + 2 * theme.px(TOP) + bar

    def paint(self, painter: QPainter, origin: QPointF, clip: QRectF, selection: range) -> None:
        """Box, language, the lines that can be seen."""
        theme = self.setting.theme
        self.paint_box(painter, origin, "sunken")
        box = self.box().translated(origin)
        head = QRectF(box.x() + theme.px(SIDE), box.y(), box.width(), theme.px(HEAD))
        painter.setFont(theme.font(Role.CAPTION))
        painter.setPen(theme.color("text2"))
        painter.drawText(head, Qt.AlignmentFlag.AlignVCenter, self.code.language or "text")
        painter.fillRect(
            QRectF(box.x() + 1, head.bottom(), box.width() - 2, 1), theme.color("line")
        )
        top = box.y() + theme.px(HEAD) + theme.px(TOP)
        painter.save()
        painter.setClipRect(box.adjusted(1, theme.px(HEAD), -1, -1), Qt.ClipOperation.IntersectClip)
        first = max(0, int((clip.top() - top) / self._line_px))
        last = min(len(self._lines), int((clip.bottom() - top) / self._line_px) + 1)
        for number in range(first, last):
            at = QPointF(box.x() + theme.px(SIDE) - self.offset, top + number * self._line_px)
            self._line(number).paint(painter, at, clip, selection)
        painter.restore()

    def source_at(self, point: QPointF) -> int:
        """The nearest sign."""
        theme = self.setting.theme
        y = point.y() - theme.px(HEAD) - theme.px(TOP)
        number = min(max(0, int(y / self._line_px)), len(self._lines) - 1)
        if y < 0:
            return self.code.content.start
        x = point.x() - self.left() - theme.px(SIDE) + self.offset
        return self._line(number).source_at(QPointF(x, 1))

    def word_at(self, offset: int) -> range:
        """The word around an offset."""
        inside = offset - self.code.content.start
        number = max(0, bisect_right(self._starts, inside) - 1)
        return self._line(number).word_at(offset)

    def _line(self, number: int) -> SetText:
        """A line, laid out when it is first seen."""
        found = self._set.get(number)
        if found is None:
            found = SetText(self._runs(number), self._plain)
            found.set_width(1e6)
            self._set[number] = found
            if len(self._set) > LINES_KEPT:
                self._set.popitem(last=False)
        return found

    def _runs(self, number: int) -> tuple[Run, ...]:
        line, start = self._lines[number], self._starts[number]
        base = self.code.content.start
        runs: list[Run] = []
        at = 0
        for first, last, kind in self._spans:
            if last <= start or first >= start + len(line):
                continue
            begin, end = max(first - start, at), min(last - start, len(line))
            if begin > at:
                runs.append(_piece(line, at, begin, base + start))
            runs.append(_piece(line, begin, end, base + start, kind))
            at = end
        if at < len(line) or not runs:
            runs.append(_piece(line, at, len(line), base + start))
        return tuple(runs)


class TablePart(BoxPart):
    """A table on a measured grid: numbers at the right where the table says so."""

    def __init__(self, block: Table, setting: Setting) -> None:
        super().__init__(block, setting)
        plain = Setting(setting.theme, Role.TABLE, setting.formulas)
        head = Setting(setting.theme, Role.STRONG, setting.formulas)
        self._right = block.right
        self._cells = [
            [SetText(cell, plain if number else head) for cell in row]
            for number, row in enumerate(block.rows)
        ]
        self._columns: list[float] = []
        self._rows: list[float] = []
        self._laid_out_for = -1.0

    def set_width(self, width: float) -> None:
        """As wide as the cells need; what does not fit wraps, at last it scrolls."""
        if width == self._laid_out_for:
            return
        self._laid_out_for = width
        theme = self.setting.theme
        side = 2 * theme.px(SIDE)
        room = width - self.left()
        count = max(len(row) for row in self._cells)
        wanted = [0.0] * count
        for row in self._cells:
            for column, cell in enumerate(row):
                cell.set_width(1e5)
                wanted[column] = max(wanted[column], cell.natural_width + side + 2)
        self._columns = _shared(wanted, room, float(theme.px(LEAST_COLUMN)))
        self._rows = []
        for row in self._cells:
            tall = [cell.set_width(self._columns[column] - side) for column, cell in enumerate(row)]
            self._rows.append(max(tall, default=0.0) + 2 * theme.px(CELL_TOP))
        self.content_width = sum(self._columns)
        self._width = min(room, self.content_width)
        self.height = sum(self._rows) + (theme.px(BAR) if self.surplus else 0)

    def paint(self, painter: QPainter, origin: QPointF, clip: QRectF, selection: range) -> None:
        """Box, head, lines, cells."""
        theme = self.setting.theme
        self.paint_box(painter, origin, "base")
        box = self.box().translated(origin)
        painter.save()
        inside = QPainterPath()
        radius = theme.px(RADIUS) - 1
        inside.addRoundedRect(box.adjusted(1, 1, -1, -1), radius, radius)
        painter.setClipPath(inside, Qt.ClipOperation.IntersectClip)
        head = QRectF(box.x(), box.y(), box.width(), self._rows[0])
        painter.fillRect(head, theme.color("sunken"))
        y = box.y()
        for number, row in enumerate(self._cells):
            if number:
                painter.fillRect(QRectF(box.x(), y, box.width(), 1), theme.color("line"))
            x = box.x() - self.offset
            for column, cell in enumerate(row):
                at = QPointF(x + self._cell_left(column, cell), y + theme.px(CELL_TOP))
                cell.paint(painter, at, clip, selection)
                x += self._columns[column]
            y += self._rows[number]
        painter.restore()

    def source_at(self, point: QPointF) -> int:
        """The nearest sign of the cell under the point."""
        cell, inside = self._at(point)
        return self.block.span.start if cell is None else cell.source_at(inside)

    def link_at(self, point: QPointF) -> str | None:
        """Where a link leads."""
        cell, inside = self._at(point)
        return None if cell is None else cell.link_at(inside)

    def _at(self, point: QPointF) -> tuple[SetText | None, QPointF]:
        y, number = point.y(), 0
        while number < len(self._rows) - 1 and y >= self._rows[number]:
            y -= self._rows[number]
            number += 1
        x, column, row = point.x() - self.left() + self.offset, 0, self._cells[number]
        while column < len(row) - 1 and x >= self._columns[column]:
            x -= self._columns[column]
            column += 1
        if not row:
            return None, point
        theme = self.setting.theme
        inside = QPointF(x - self._cell_left(column, row[column]), y - theme.px(CELL_TOP))
        return row[column], inside

    def _cell_left(self, column: int, cell: SetText) -> float:
        side = self.setting.theme.px(SIDE)
        if column < len(self._right) and self._right[column]:
            return max(float(side), self._columns[column] - side - cell.natural_width)
        return float(side)


def _shared(wanted: list[float], room: float, least: float) -> list[float]:
    """Widths that fit into ``room``: the wide ones give, none below ``least``."""
    found = list(wanted)
    while (over := sum(found) - room) > 0.5:
        wide = [n for n, width in enumerate(found) if width > least + 0.5]
        if not wide:
            break
        top = max(found[n] for n in wide)
        tops = [n for n in wide if found[n] >= top - 0.5]
        below = max([found[n] for n in wide if found[n] < top - 0.5], default=least)
        give = min(over / len(tops), top - max(below, least))
        for number in tops:
            found[number] -= max(give, 0.5)
    return found


def _piece(line: str, first: int, last: int, base: int, kind: str = "") -> Run:
    style = Style(kind=kind) if kind else Style()
    return Run(line[first:last], range(base + first, base + last), style)
