"""What a transcript is made of: blocks that know their height at a width and paint themselves.

A block is a child of the column and is never laid out by Qt. Text blocks hold the exact text of
their turn; the column does selection across them, so they let the mouse through.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app.chat.blocks.text_flow import Ink, TextFlow
from app.language.words import tr, tr_count
from app.look.theme import Look, Role

BUBBLE_WIDTH: Final = 560
BUBBLE_RADIUS: Final = 14
BUBBLE_SIDE: Final = 14
BUBBLE_TOP: Final = 10

FOLD_CHARACTERS: Final = 4_000
FOLD_LINES: Final = 24
"""A longer user message shows its beginning; copying still gives all of it."""


class Block(QWidget):
    """One part of the transcript. ``gap`` is the room above it in px of the reference."""

    gap = 12

    def __init__(self, look: Look, column: QWidget) -> None:
        super().__init__(column)
        self.look = look

    @abstractmethod
    def lay_out(self, width: int) -> int:
        """Arrange for ``width`` and return the height."""

    def restyle(self) -> None:
        """Take fonts and sizes of the current theme; ``lay_out`` follows."""
        self.update()

    def release(self) -> None:
        """Nothing is told to this block any more: the column takes it away."""


class Selectable(Block):
    """A block whose text can be selected; ``text`` is exact, ``selection`` offsets into it."""

    def __init__(self, look: Look, column: QWidget, text: str) -> None:
        super().__init__(look, column)
        self.text = text
        self.selection = range(0)

    @abstractmethod
    def offset_at(self, point: QPointF) -> int:
        """Offset into ``text`` nearest to a point of the block."""

    @abstractmethod
    def word_at(self, offset: int) -> range:
        """The word around an offset."""

    def select(self, selection: range) -> None:
        """Show ``selection`` (offsets into ``text``) as selected."""
        if selection != self.selection:
            self.selection = selection
            self.update()

    def selected_text(self) -> str:
        """The selected part, letter for letter."""
        return self.text[self.selection.start : self.selection.stop]


class TextBlock(Selectable):
    """A block of plain text; the flow may show less of it than there is."""

    def __init__(self, look: Look, column: QWidget, text: str) -> None:
        super().__init__(look, column, text)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        theme = look.theme
        self.flow = TextFlow(theme.font(Role.BODY), theme.line_px(Role.BODY))
        self.flow.set_text(self.shown_text())

    def shown_text(self) -> str:
        """What of the text is laid out; always its beginning."""
        return self.text

    def restyle(self) -> None:
        """Fonts and line height of the current theme."""
        theme = self.look.theme
        self.flow.set_style(theme.font(Role.BODY), theme.line_px(Role.BODY))
        self.update()

    def flow_origin(self) -> QPointF:
        """Top left corner of the text within the block."""
        return QPointF(0, 0)

    def offset_at(self, point: QPointF) -> int:
        """Offset into ``text`` nearest to a point of the block."""
        offset = self.flow.offset_at(point - self.flow_origin())
        return len(self.text) if offset >= len(self.flow.text) else offset

    def word_at(self, offset: int) -> range:
        """The word around an offset."""
        return self.flow.word_at(offset)

    def paint_flow(self, painter: QPainter, clip: QRectF) -> None:
        """Draw the text with its selection."""
        theme = self.look.theme
        ink = Ink(theme.color("text"), theme.color("selection"))
        self.flow.paint(painter, self.flow_origin(), clip, ink, self.selection)


class UserBubble(TextBlock):
    """What the person wrote: a tinted bubble at the right."""

    gap = 28

    def __init__(self, look: Look, column: QWidget, text: str) -> None:
        super().__init__(look, column, text)
        self._bubble = QRectF()
        left = len(text) - len(self.flow.text)
        more = tr_count("{count} more characters", left, count=f"{left:,}")
        self._more = more if left else ""
        self.setAccessibleName(tr("You wrote"))
        self.setAccessibleDescription(text)

    def shown_text(self) -> str:
        """The whole text, or the beginning of a very long one."""
        lines = self.text.split("\n", FOLD_LINES)
        return "\n".join(lines[:FOLD_LINES])[:FOLD_CHARACTERS]

    @property
    def folded_words(self) -> str:
        """How much is not shown, in words; empty where all is."""
        return self._more

    def lay_out(self, width: int) -> int:
        """As wide as the text needs, at most the bubble's own measure."""
        theme = self.look.theme
        side, top = theme.px(BUBBLE_SIDE), theme.px(BUBBLE_TOP)
        self.flow.set_width(min(theme.px(BUBBLE_WIDTH), width) - 2 * side)
        more = theme.line_px(Role.CAPTION) + theme.px(4) if self._more else 0
        caption = QFontMetricsF(theme.font(Role.CAPTION)).horizontalAdvance(self._more)
        needed = max(self.flow.natural_width, caption) + 1
        inner = min(math.ceil(needed), self.flow.width)
        if not self.text.isascii():
            # Lines that begin at the right stand at the bubble's edge, not at its measure's.
            self.flow.set_width(inner)
        wide = inner + 2 * side
        tall = max(self.flow.height, theme.line_px(Role.BODY)) + 2 * top + more
        self._bubble = QRectF(width - wide, 0, wide, tall)
        return round(tall)

    def flow_origin(self) -> QPointF:
        """Inside the bubble's padding."""
        theme = self.look.theme
        return self._bubble.topLeft() + QPointF(theme.px(BUBBLE_SIDE), theme.px(BUBBLE_TOP))

    def paintEvent(self, event: QPaintEvent) -> None:
        """The bubble, its text, and how much of a long text is folded away."""
        theme = self.look.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("bubble"))
        radius = theme.px(BUBBLE_RADIUS)
        painter.drawRoundedRect(self._bubble, radius, radius)
        self.paint_flow(painter, QRectF(event.rect()))
        if self._more:
            painter.setFont(theme.font(Role.CAPTION))
            painter.setPen(theme.color("text2"))
            inner = self._bubble.adjusted(theme.px(BUBBLE_SIDE), 0, 0, -theme.px(BUBBLE_TOP))
            painter.drawText(
                inner, Qt.AlignmentFlag.AlignBottom | Qt.AlignmentFlag.AlignLeft, self._more
            )
