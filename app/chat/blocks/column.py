"""The column of blocks: puts them under each other at the measure.

Owns the blocks and a timer. Only the block that changed is laid out again; those below it move.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QWidget

from app.chat.blocks.text_blocks import Block
from app.look.theme import Look

MEASURE: Final = 720
SIDE: Final = 32
TOP: Final = 18
BOTTOM: Final = 20
SHOWN_AT_ONCE: Final = 100
"""Blocks; more than any window shows. The others of a long chat follow in the next moments."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A place to read at: a block, and how far down in it (0 is its top, 1 its foot)."""

    block: int
    share: float


class Column(QWidget):
    """Blocks from the top to the bottom. Emits ``resized`` after its height changed."""

    resized = Signal()

    def __init__(self, look: Look, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._blocks: list[Block] = []
        self._tops: list[int] = []
        self._unshown: list[Block] = []
        self._page_width = 0
        self._full = False
        self._showing = QTimer(self)
        self._showing.setInterval(0)
        self._showing.timeout.connect(self._show_more)
        look.changed.connect(self._on_look_changed)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks in their order."""
        return tuple(self._blocks)

    def index_at(self, y: int) -> int:
        """The number of the block that stands at height ``y`` or begins last above it."""
        return max(0, bisect_right(self._tops, y) - 1)

    def spot_at(self, y: int) -> Spot:
        """What stands at height ``y``, so that it is found again after another layout."""
        index = self.index_at(y)
        if index >= len(self._blocks):
            return Spot(0, 0.0)
        return Spot(index, (y - self._tops[index]) / max(1, self._blocks[index].height()))

    def height_of(self, spot: Spot) -> int:
        """Where a spot stands now."""
        if spot.block >= len(self._blocks):
            return 0
        return self._tops[spot.block] + round(spot.share * self._blocks[spot.block].height())

    def measure(self) -> int:
        """Width of a block."""
        theme = self._look.theme
        room = self._page_width - 2 * theme.px(SIDE)
        return max(80, room if self._full else min(theme.px(MEASURE), room))

    def show_full(self, full: bool) -> None:
        """Let blocks be as wide as the page, or no wider than is good to read."""
        if full != self._full:
            self._full = full
            self._arrange(0)

    def left(self) -> int:
        """Where blocks begin: centred in the page, whether or not a scroll bar is shown."""
        return (self._page_width - self.measure()) // 2

    def add(self, blocks: Sequence[Block]) -> None:
        """Put ``blocks`` below the others, arranging once."""
        first = len(self._blocks)
        self._blocks.extend(blocks)
        self._tops.extend([0] * len(blocks))
        self._arrange(first)
        for block in blocks[-SHOWN_AT_ONCE:]:
            block.show()
        self._unshown += blocks[:-SHOWN_AT_ONCE]
        if self._unshown:
            self._showing.start()

    def remove(self, block: Block) -> None:
        """Take ``block`` away."""
        index = self._blocks.index(block)
        del self._blocks[index], self._tops[index]
        if block in self._unshown:
            self._unshown.remove(block)
        block.release()
        block.hide()
        block.deleteLater()
        self._arrange(index)

    def clear(self) -> None:
        """Take all blocks away."""
        for block in self._blocks:
            block.release()
            block.hide()
            block.deleteLater()
        self._blocks.clear()
        self._tops.clear()
        self._unshown.clear()
        self._arrange(0)

    def grew(self, block: Block) -> None:
        """Lay ``block`` out again after its content changed."""
        index = len(self._blocks) - 1
        while self._blocks[index] is not block:
            index -= 1
        self._arrange(index, only_first=True)

    def set_width(self, width: int, page_width: int) -> None:
        """Lay everything out for a viewport of ``width`` in a page of ``page_width``."""
        self.resize(width, self.height())
        if page_width != self._page_width:
            self._page_width = page_width
            self._arrange(0)

    # Showing -----------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        """Show at once what is seen now and was still waiting for that."""
        if self._unshown:
            first = self.index_at(event.rect().top())
            last = self.index_at(event.rect().bottom())
            for block in self._blocks[first : last + 1]:
                block.show()

    def _show_more(self) -> None:
        """Some blocks more, from the end upwards: showing a widget costs time."""
        for block in self._unshown[-SHOWN_AT_ONCE:]:
            block.show()
        del self._unshown[-SHOWN_AT_ONCE:]
        if not self._unshown:
            self._showing.stop()

    # Arranging ---------------------------------------------------------------------------------

    def _arrange(self, first: int, *, only_first: bool = False) -> None:
        """Put the blocks from index ``first`` on in their places."""
        theme = self._look.theme
        measure = self.measure()
        left = self.left()
        y = theme.px(TOP)
        if first > 0:
            y = self._tops[first - 1] + self._blocks[first - 1].height()
        for index in range(first, len(self._blocks)):
            block = self._blocks[index]
            y += theme.px(block.gap) if index else 0
            if index == first or not only_first:
                block.setGeometry(left, y, measure, block.lay_out(measure))
            else:
                block.move(left, y)
            self._tops[index] = y
            y += block.height()
        height = y + theme.px(BOTTOM)
        if height != self.height():
            self.resize(self.width(), height)
            self.resized.emit()

    def _on_look_changed(self, _theme: object) -> None:
        for block in self._blocks:
            block.restyle()
        self._arrange(0)
