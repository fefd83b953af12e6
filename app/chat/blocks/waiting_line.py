"""The line that stands where a reply will be: the arc and what is being waited for."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QHideEvent, QPainter, QPaintEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from app.chat.blocks.text_blocks import Block
from app.look.theme import Look, Role
from app.widgets.busy import BusyTurn


class WaitingLine(Block):
    """One row of words that change, with the busy arc before them."""

    gap = 10

    def __init__(self, look: Look, column: QWidget, text: str) -> None:
        super().__init__(look, column)
        self._busy = BusyTurn(self)
        self._busy.turned.connect(self.update)
        self.text = ""
        self.say(text)

    def say(self, text: str) -> None:
        """Show other words."""
        if text != self.text:
            self.text = text
            self.setAccessibleName(text)
            self.update()

    def lay_out(self, width: int) -> int:  # noqa: ARG002 - one line at any width
        """As high as a row."""
        return self.look.theme.px(28)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Arc and words."""
        theme = self.look.theme
        painter = QPainter(self)
        size = theme.px(14)
        top = (self.height() - size) / 2
        self._busy.paint(painter, QRectF(0, top, size, size), theme)
        painter.setFont(theme.font(Role.INTERFACE))
        painter.setPen(theme.color("text2"))
        box = QRectF(theme.px(22), 0, self.width(), self.height())
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, self.text)

    def showEvent(self, _event: QShowEvent) -> None:
        """Turn while visible."""
        self._busy.need(True)

    def hideEvent(self, _event: QHideEvent) -> None:
        """Stand still while hidden."""
        self._busy.need(False)
