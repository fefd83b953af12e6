"""Runs set in lines: styles, links, marks for what cannot be seen, and where each sign came from.

Owns one ``QTextLayout``. Offsets that come in and go out are offsets into the exact text of the
turn, so that a selection is copied as it was written. Lengths are logical pixels. UI thread only.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QTextCharFormat, QTextLayout, QTextOption

from app.chat.blocks.text_flow import alignment_of, direction_of, points, units
from app.chat.markdown.records import PLAIN, Run, Runs
from app.chat.rendered.formulas import Drawn, Formulas
from app.look.theme import Role, Theme

UNSEEN: Final = frozenset(
    "\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\u061c\ufeff\u00ad"
)
"""Signs that turn or hide text: shown as what they are."""
PLACE: Final = "\u00a0"
"""Stands for a formula, as wide as that is."""
TAB_SIGNS: Final = 4


@dataclass(frozen=True, slots=True)
class Setting:
    """How a text is set; ``tone`` names the colour of its plain runs."""

    theme: Theme
    role: Role
    formulas: Formulas
    tone: str = "text"
    wraps: bool = True
    right: bool = False


class SetText:
    """Some runs in lines of a width.

    Attributes:
        height, natural_width: of all lines.
    """

    def __init__(self, runs: Runs, setting: Setting) -> None:
        self._setting = setting
        self._runs = tuple(_shown(runs, setting))
        self.text = "".join(run.text for run in self._runs)
        self._starts: list[int] = []
        at = 0
        for run in self._runs:
            self._starts.append(at)
            at += len(run.text)
        self._drawn = {
            start: drawn
            for start, run in zip(self._starts, self._runs, strict=True)
            if (drawn := _drawn(run, setting)) is not None
        }
        self._layout = self._made()
        self._bottoms: list[float] = []
        self._width = -1.0
        self.height = 0.0
        self.natural_width = 0.0

    def set_width(self, width: float) -> float:
        """Break lines at ``width``; returns the height."""
        if width == self._width:
            return self.height
        self._width = width
        line_px = float(self._setting.theme.line_px(self._setting.role))
        y, self.natural_width = 0.0, 0.0
        self._bottoms = []
        self._layout.beginLayout()
        while (line := self._layout.createLine()).isValid():
            line.setLineWidth(width)
            first = points(self.text, line.textStart())
            last = points(self.text, line.textStart() + line.textLength())
            inside = [d for start, d in self._drawn.items() if first <= start < last]
            above = max((d.above for d in inside), default=0.0)
            below = max((d.below for d in inside), default=0.0)
            tall = max(line_px, math.ceil(line.height()))
            lead = (tall - line.height()) / 2
            over = max(0.0, above - line.ascent() - lead)
            line.setPosition(QPointF(0, y + lead + over))
            y += tall + over + max(0.0, below - line.descent() - lead)
            self._bottoms.append(y)
            self.natural_width = max(self.natural_width, line.naturalTextWidth())
        self._layout.endLayout()
        self.height = max(y, line_px)
        return self.height

    def paint(self, painter: QPainter, origin: QPointF, clip: QRectF, selection: range) -> None:
        """Draw the lines; ``selection`` holds offsets into the turn's text."""
        theme = self._setting.theme
        painter.setPen(theme.color(self._setting.tone))
        self._layout.draw(painter, origin, self._chosen(selection), clip)
        for start, drawn in self._drawn.items():
            at = units(self.text, start)
            line = self._layout.lineForTextPosition(at)
            x = self._cursor_x(at)
            baseline = line.y() + line.ascent()
            drawn.paint(painter, origin + QPointF(x, baseline - drawn.above))

    def source_at(self, point: QPointF) -> int:
        """The offset into the turn's text nearest to ``point``."""
        if not self._runs:
            return 0
        return self._source_of(self._shown_at(point))

    def link_at(self, point: QPointF) -> str | None:
        """Where the link under ``point`` leads; None where there is none."""
        number = bisect_right(self._bottoms, point.y())
        if not 0 <= point.y() < self.height or number >= self._layout.lineCount():
            return None
        line = self._layout.lineAt(number)
        if not line.naturalTextRect().contains(QPointF(point.x(), line.y() + 1)):
            return None
        return self._run_at(self._shown_at(point)).style.href

    def word_at(self, offset: int) -> range:
        """The word around an offset into the turn's text, as such offsets."""
        at = units(self.text, self._shown_of(offset))
        words = QTextLayout.CursorMode.SkipWords
        end = self._layout.nextCursorPosition(at, words)
        start = self._layout.previousCursorPosition(end, words)
        first, last = points(self.text, start), points(self.text, end)
        last = first + len(self.text[first:last].rstrip())
        return range(self._source_of(first), self._source_of(last))

    # Places --------------------------------------------------------------------------------------

    def _shown_at(self, point: QPointF) -> int:
        number = bisect_right(self._bottoms, max(0.0, point.y()))
        line = self._layout.lineAt(min(number, self._layout.lineCount() - 1))
        return points(self.text, line.xToCursor(point.x()))

    def _run_at(self, shown: int) -> Run:
        return self._runs[max(0, bisect_right(self._starts, shown) - 1)]

    def _source_of(self, shown: int) -> int:
        index = max(0, bisect_right(self._starts, shown) - 1)
        run, into = self._runs[index], shown - self._starts[index]
        if into >= len(run.text):
            return run.span.stop
        if len(run.text) == len(run.span):
            return run.span.start + into
        return run.span.start + round(into * len(run.span) / max(1, len(run.text)))

    def _shown_of(self, source: int) -> int:
        """The place of the first sign that stands at ``source`` or behind it."""
        for start, run in zip(self._starts, self._runs, strict=True):
            if source <= run.span.start:
                return start
            if source < run.span.stop:
                into = source - run.span.start
                if len(run.text) != len(run.span):
                    into = round(into * len(run.text) / len(run.span))
                return start + into
        return len(self.text)

    def _chosen(self, selection: range) -> list[QTextLayout.FormatRange]:
        if not selection:
            return []
        first, last = self._shown_of(selection.start), self._shown_of(selection.stop)
        if last <= first:
            return []
        style = QTextCharFormat()
        style.setBackground(self._setting.theme.color("selection"))
        return [_format(self.text, first, last, style)]

    def _cursor_x(self, at: int) -> float:
        # The binding gives a pair where C++ has an out argument.
        found: Any = self._layout.lineForTextPosition(at).cursorToX(at)
        return float(found[0] if isinstance(found, tuple) else found)

    # Making --------------------------------------------------------------------------------------

    def _made(self) -> QTextLayout:
        setting = self._setting
        direction = direction_of(self.text)
        option = QTextOption()
        mode = QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere
        option.setWrapMode(mode if setting.wraps else QTextOption.WrapMode.NoWrap)
        option.setTextDirection(direction)
        option.setAlignment(alignment_of(direction))
        font = setting.theme.font(setting.role)
        shown = self.text.replace("\n", "\u2028")
        made = QTextLayout(shown, font)
        made.setTextOption(option)
        made.setFormats(
            [
                _format(self.text, start, start + len(run.text), self._style(start, run, font))
                for start, run in zip(self._starts, self._runs, strict=True)
                if run.style != PLAIN or start in self._drawn
            ]
        )
        made.setCacheEnabled(True)
        return made

    def _style(self, start: int, run: Run, font: QFont) -> QTextCharFormat:
        theme, style = self._setting.theme, run.style
        made = QTextCharFormat()
        drawn = self._drawn.get(start)
        if drawn is not None:
            own = QFont(font)
            own.setLetterSpacing(QFont.SpacingType.AbsoluteSpacing, 0.0)
            advance = drawn.width - QFontMetricsF(own).horizontalAdvance(PLACE)
            own.setLetterSpacing(QFont.SpacingType.AbsoluteSpacing, advance)
            made.setFont(own)
            return made
        if style.code or style.tex is not None:
            made.setFont(theme.font(Role.CODE))
            made.setBackground(theme.color("sunken"))
        if style.kind:
            made.setForeground(theme.color(style.kind))
        if style.strong:
            made.setFontWeight(QFont.Weight.DemiBold)
        if style.emphasis:
            made.setFontItalic(True)
        if style.strike:
            made.setFontStrikeOut(True)
        if style.href is not None:
            made.setForeground(theme.color("accent_text"))
            made.setFontUnderline(True)
        return made


def _shown(runs: Iterable[Run], setting: Setting) -> Iterator[Run]:
    """The runs with formulas as places, and unseen signs as words."""
    for run in runs:
        if run.style.tex is not None and setting.formulas.found(run.style.tex) is not None:
            yield replace(run, text=PLACE)
        elif run.text.isascii() or not UNSEEN & set(run.text):
            yield run
        else:
            yield from _marked(run)


def _marked(run: Run) -> Iterator[Run]:
    at = 0
    exact = len(run.text) == len(run.span)
    for place, sign in enumerate(run.text):
        if sign not in UNSEEN:
            continue
        start = run.span.start
        if place > at:
            span = range(start + at, start + place) if exact else run.span
            yield replace(run, text=run.text[at:place], span=span)
        own = range(start + place, start + place + 1) if exact else run.span
        mark = f"[U+{ord(sign):04X}]"
        yield Run(mark, own, replace(run.style, code=True))
        at = place + 1
    if at < len(run.text):
        span = range(run.span.start + at, run.span.stop) if exact else run.span
        yield replace(run, text=run.text[at:], span=span)


def _drawn(run: Run, setting: Setting) -> Drawn | None:
    return None if run.style.tex is None else setting.formulas.found(run.style.tex)


def _format(text: str, first: int, last: int, style: QTextCharFormat) -> QTextLayout.FormatRange:
    made = QTextLayout.FormatRange()
    made.start = units(text, first)
    made.length = units(text, last) - made.start
    made.format = style
    return made
