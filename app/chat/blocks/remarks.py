"""Blocks that are not a turn's text: the status line under a reply, the note between turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.chat.blocks.resume_chip import ResumeChip
from app.chat.blocks.text_blocks import Block
from app.chat.kept.words import ResumeWords
from app.chat.turns.deeds import TurnVerb, TurnWish
from app.chat.turns.parts.row import ActionRow, RowFacts
from app.look.icons import Icons
from app.look.theme import Look, Role

STATUS_HEIGHT: Final = 24
NOTE_HEIGHT: Final = 24


@dataclass(frozen=True, slots=True)
class StatusWords:
    """What a status line says, and how the prompt was resumed."""

    text: str
    resume: ResumeWords | None = None


class StatusLine(ActionRow):
    """The facts of a finished reply in one line; below it the row of the turn's actions.

    ``chip`` stands at the line's end, or below it where there is no room beside the text.
    """

    gap = 8

    def __init__(
        self, look: Look, icons: Icons, column: QWidget, facts: RowFacts, words: StatusWords
    ) -> None:
        super().__init__(look, icons, column, facts)
        self.text = words.text
        resume = words.resume
        self.chip = ResumeChip(look, resume, self) if resume is not None else None
        if self.chip is not None:
            self.chip.clicked.connect(lambda: facts.run(TurnWish(TurnVerb.INFO, facts.turn)))
        self.setAccessibleDescription(words.text)

    def restyle(self) -> None:
        """Fonts and colours of the current theme, in the chip too."""
        super().restyle()
        if self.chip is not None:
            self.chip.update()

    def lay_out(self, width: int) -> int:
        """Room for the line and for the actions, which never move what is below."""
        theme = self.look.theme
        height = theme.px(STATUS_HEIGHT) + self._place_chip(width)
        return height + theme.px(4) + super().lay_out(width)

    def _place_chip(self, width: int) -> int:
        """Put the chip beside the text or below it; how much room that takes below."""
        if self.chip is None:
            return 0
        theme = self.look.theme
        size = self.chip.sizeHint()
        self.chip.resize(min(size.width(), width), size.height())
        text = QFontMetricsF(theme.font(Role.CAPTION)).horizontalAdvance(self.text)
        if text + theme.px(16) + size.width() <= width:
            self.chip.move(width - size.width(), 0)
            return 0
        self.chip.move(0, theme.px(STATUS_HEIGHT) + theme.px(2))
        return theme.px(2) + size.height()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Caption text, elided at the end."""
        theme = self.look.theme
        painter = QPainter(self)
        painter.setFont(theme.font(Role.CAPTION))
        painter.setPen(theme.color("text2"))
        box = QRectF(0, 0, self.width(), theme.px(STATUS_HEIGHT))
        shown = painter.fontMetrics().elidedText(
            self.text, Qt.TextElideMode.ElideRight, self.width()
        )
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, shown)


class Note(Block):
    """One quiet sentence between two lines: a restart, another model, a cut context."""

    gap = 16

    def __init__(self, look: Look, icons: Icons, column: QWidget, text: str) -> None:
        super().__init__(look, column)
        self._icons = icons
        self.text = text
        self.setAccessibleName(text)
        self.setToolTip(text)

    def lay_out(self, width: int) -> int:  # noqa: ARG002 - one line at any width
        """One line."""
        return self.look.theme.px(NOTE_HEIGHT)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Line, icon, text, line."""
        theme = self.look.theme
        painter = QPainter(self)
        painter.setFont(theme.font(Role.CAPTION))
        icon, space = theme.px(14), theme.px(8)
        room = self.width() - 2 * theme.px(24) - icon - 3 * space
        shown = painter.fontMetrics().elidedText(self.text, Qt.TextElideMode.ElideRight, room)
        wide = painter.fontMetrics().horizontalAdvance(shown) + icon + space
        left = (self.width() - wide) / 2
        middle = self.height() / 2
        painter.setPen(QPen(theme.color("line"), 1))
        line = round(middle) + 0.5
        painter.drawLine(QPointF(0, line), QPointF(left - space, line))
        painter.drawLine(QPointF(left + wide + space, line), QPointF(self.width(), line))
        pixmap = self._icons.pixmap("info", icon, theme.tokens.text2, self.devicePixelRatioF())
        painter.drawPixmap(QPointF(left, middle - icon / 2), pixmap)
        painter.setPen(theme.color("text2"))
        box = QRectF(left + icon + space, 0, wide, self.height())
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, shown)
