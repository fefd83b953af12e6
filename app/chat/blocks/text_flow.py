"""Plain text laid out in lines, made to grow at its end: only the open piece is laid out again.

Owns the ``QTextLayout`` objects of one text. A piece is a paragraph or, of a long paragraph, some
whole lines of it. Offsets are Python offsets into the exact text (code points), so what is selected
is copied letter for letter. Lengths are logical pixels. Used from the UI thread only.
"""

from __future__ import annotations

import math
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QTextCharFormat, QTextLayout, QTextOption

PIECE_CHARACTERS: Final = 4096
"""A longer paragraph is laid out in pieces of whole lines."""

OPEN_LINES: Final = 24
"""Lines that an open piece may have before its finished lines are closed."""

_CONTROLS: Final = {code: 0x20 for code in range(0x20) if code != 0x09} | {0x7F: 0x20}


@dataclass(slots=True)
class Piece:
    """Some whole lines: ``text`` begins at offset ``start``, ``top`` below the flow's top."""

    start: int
    text: str
    layout: QTextLayout
    ends_paragraph: bool
    bottoms: list[float]
    top: float = 0.0
    height: float = 0.0

    @property
    def end(self) -> int:
        """Offset behind the last character, without the newline."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Ink:
    """The colours a flow is painted with."""

    text: QColor
    selection: QColor


class TextFlow:
    """One text, its lines and where they stand."""

    def __init__(self, font: QFont, line_px: int) -> None:
        self._font = font
        self._line_px = line_px
        self.width = 0.0
        self._pieces: list[Piece] = []
        self._tops: list[float] = []
        self.text = ""
        self.height = 0.0
        self.natural_width = 0.0

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The pieces from the top; all but the last stay as they are while the text grows."""
        return tuple(self._pieces)

    def set_style(self, font: QFont, line_px: int) -> None:
        """Use another font or line height from now on."""
        self._font = font
        self._line_px = line_px
        self._rebuild()

    def set_text(self, text: str) -> None:
        """Replace the whole text."""
        self.text = text
        self._rebuild()

    def set_width(self, width: float) -> None:
        """Break lines at ``width``; nothing happens where it is unchanged."""
        if width != self.width:
            self.width = width
            self._rebuild()

    def append(self, text: str) -> float:
        """Add ``text`` at the end; return the y from which the picture has changed."""
        if not text:
            return self.height
        self.text += text
        if not self._pieces:
            self._rebuild()
            return 0.0
        last = self._pieces.pop()
        self._tops.pop()
        changed = last.top
        self.height = last.top
        self._lay_out_from(last.start)
        return changed

    def paint(
        self, painter: QPainter, origin: QPointF, clip: QRectF, ink: Ink, selection: range
    ) -> None:
        """Draw the lines that ``clip`` touches; ``selection`` holds offsets into the text."""
        painter.setPen(ink.text)
        for piece in self._pieces[self._index_at(clip.top() - origin.y()) :]:
            if origin.y() + piece.top > clip.bottom():
                return
            chosen = self._chosen(piece, selection, ink)
            piece.layout.draw(painter, QPointF(origin.x(), origin.y() + piece.top), chosen, clip)

    def offset_at(self, point: QPointF) -> int:
        """The offset nearest to ``point`` (relative to the flow's top left corner)."""
        if not self._pieces or point.y() < 0:
            return 0
        if point.y() >= self.height:
            return len(self.text)
        piece = self._pieces[self._index_at(point.y())]
        number = bisect_right(piece.bottoms, point.y() - piece.top)
        line = piece.layout.lineAt(min(number, piece.layout.lineCount() - 1))
        offset = piece.start + points(piece.text, line.xToCursor(point.x()))
        if offset == piece.end and not piece.ends_paragraph and piece.text.endswith(" "):
            # Behind the space stands the next line, which belongs to the next piece.
            return offset - 1
        return offset

    def word_at(self, offset: int) -> range:
        """The word around ``offset``."""
        for piece in self._pieces:
            if piece.start <= offset <= piece.end:
                at = units(piece.text, offset - piece.start)
                words = QTextLayout.CursorMode.SkipWords
                end = piece.layout.nextCursorPosition(at, words)
                start = piece.layout.previousCursorPosition(end, words)
                begin = piece.start + points(piece.text, start)
                stop = piece.start + points(piece.text, end)
                return range(begin, begin + len(self.text[begin:stop].rstrip()))
        return range(offset, offset)

    # Layout ------------------------------------------------------------------------------------

    def _rebuild(self) -> None:
        self._pieces.clear()
        self._tops.clear()
        self.height = 0.0
        self.natural_width = 0.0
        if self.width > 0:
            self._lay_out_from(0)

    def _lay_out_from(self, start: int) -> None:
        """Lay out the text from offset ``start``, which begins a piece, to its end.

        Newlines at the end of the text wait until something follows them.
        """
        visible_end = max(start, len(self.text.rstrip("\n")))
        while True:
            newline = self.text.find("\n", start, visible_end)
            end = visible_end if newline < 0 else newline
            start = self._lay_out_paragraph(start, end, closed=newline >= 0)
            if newline < 0:
                return

    def _lay_out_paragraph(self, start: int, end: int, *, closed: bool) -> int:
        """Lay out one paragraph in pieces; return the offset behind its newline."""
        direction = direction_of(self.text[self._paragraph_start(start) : end])
        while True:
            stop = min(end, start + PIECE_CHARACTERS)
            piece = self._piece(start, self.text[start:stop], direction)
            lines = piece.layout.lineCount()
            if (stop == end and (closed or lines <= OPEN_LINES)) or lines < 3:
                piece.ends_paragraph = stop == end
                self._push(piece)
                if stop == end:
                    return end + 1
                start = stop
                continue
            cut = start + points(piece.text, piece.layout.lineAt(lines - 2).textStart())
            self._push(self._piece(start, self.text[start:cut], direction))
            start = cut

    def _paragraph_start(self, start: int) -> int:
        return self.text.rfind("\n", 0, start) + 1

    def _piece(self, start: int, text: str, direction: Qt.LayoutDirection) -> Piece:
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        option.setTextDirection(direction)
        option.setAlignment(alignment_of(direction))
        layout = QTextLayout(text.translate(_CONTROLS), self._font)
        layout.setTextOption(option)
        layout.setCacheEnabled(True)
        y = 0.0
        bottoms: list[float] = []
        layout.beginLayout()
        while (line := layout.createLine()).isValid():
            line.setLineWidth(self.width)
            tall = max(float(self._line_px), math.ceil(line.height()))
            line.setPosition(QPointF(0, y + (tall - line.height()) / 2))
            y += tall
            bottoms.append(y)
            self.natural_width = max(self.natural_width, line.naturalTextWidth())
        layout.endLayout()
        height = max(y, float(self._line_px))
        return Piece(start, text, layout, ends_paragraph=False, bottoms=bottoms, height=height)

    def _push(self, piece: Piece) -> None:
        piece.top = self.height
        self._pieces.append(piece)
        self._tops.append(piece.top)
        self.height += piece.height

    def _index_at(self, y: float) -> int:
        return max(0, bisect_right(self._tops, y) - 1)

    @staticmethod
    def _chosen(piece: Piece, selection: range, ink: Ink) -> list[QTextLayout.FormatRange]:
        first = max(selection.start, piece.start) - piece.start
        last = min(selection.stop, piece.end) - piece.start
        if last <= first:
            return []
        chosen = QTextLayout.FormatRange()
        chosen.start = units(piece.text, first)
        chosen.length = units(piece.text, last) - chosen.start
        style = QTextCharFormat()
        style.setBackground(ink.selection)
        chosen.format = style
        return [chosen]


def direction_of(text: str) -> Qt.LayoutDirection:
    """The direction of a paragraph or title: that of its first strong letter."""
    if not text.isascii():
        for letter in text[:PIECE_CHARACTERS]:
            kind = unicodedata.bidirectional(letter)
            if kind in ("R", "AL"):
                return Qt.LayoutDirection.RightToLeft
            if kind == "L":
                break
    return Qt.LayoutDirection.LeftToRight


def alignment_of(direction: Qt.LayoutDirection) -> Qt.AlignmentFlag:
    """The side where a paragraph of this direction begins."""
    rtl = direction is Qt.LayoutDirection.RightToLeft
    return Qt.AlignmentFlag.AlignRight if rtl else Qt.AlignmentFlag.AlignLeft


def units(text: str, points: int) -> int:
    """UTF-16 units in the first ``points`` characters."""
    if text.isascii():
        return points
    return points + sum(1 for letter in text[:points] if ord(letter) > 0xFFFF)


def points(text: str, units: int) -> int:
    """Characters in the first ``units`` UTF-16 units."""
    if text.isascii():
        return units
    seen = 0
    for count, letter in enumerate(text):
        if seen >= units:
            return count
        seen += 2 if ord(letter) > 0xFFFF else 1
    return len(text)
