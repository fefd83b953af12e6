"""The column of blocks: puts them under each other at the measure and selects text across them.

Owns the blocks. Only the block that changed is laid out again; those below it move.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from PySide6.QtCore import QPoint, QPointF, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from app.chat.blocks.text_blocks import Block, TextBlock
from app.theme import Look

MEASURE: Final = 720
SIDE: Final = 32
TOP: Final = 18
BOTTOM: Final = 20


class Column(QWidget):
    """Blocks from the top to the bottom. Emits ``resized`` after its height changed."""

    resized = Signal()

    def __init__(self, look: Look, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._blocks: list[Block] = []
        self._tops: list[int] = []
        self._anchor = (0, 0)
        self._page_width = 0
        look.changed.connect(self._on_look_changed)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks in their order."""
        return tuple(self._blocks)

    def measure(self) -> int:
        """Width of a block."""
        theme = self._look.theme
        return max(80, min(theme.px(MEASURE), self._page_width - 2 * theme.px(SIDE)))

    def left(self) -> int:
        """Where blocks begin: centred in the page, whether or not a scroll bar is shown."""
        return (self._page_width - self.measure()) // 2

    def add(self, block: Block) -> None:
        """Put ``block`` below the others."""
        self._blocks.append(block)
        self._tops.append(0)
        self._arrange(len(self._blocks) - 1)
        block.show()

    def add_all(self, blocks: list[Block]) -> None:
        """Put many blocks below the others, arranging once."""
        first = len(self._blocks)
        self._blocks.extend(blocks)
        self._tops.extend([0] * len(blocks))
        self._arrange(first)
        for block in blocks:
            block.show()

    def remove(self, block: Block) -> None:
        """Take ``block`` away."""
        index = self._blocks.index(block)
        del self._blocks[index], self._tops[index]
        block.hide()
        block.deleteLater()
        self._arrange(index)

    def clear(self) -> None:
        """Take all blocks away."""
        for block in self._blocks:
            block.hide()
            block.deleteLater()
        self._blocks.clear()
        self._tops.clear()
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

    # Selection ---------------------------------------------------------------------------------

    def place_at(self, point: QPoint) -> tuple[int, int]:
        """(block index, offset) of the text nearest to ``point``; text blocks only."""
        index = max(0, bisect_right(self._tops, point.y()) - 1)
        while index > 0 and not isinstance(self._blocks[index], TextBlock):
            index -= 1
        if not self._blocks:
            return (0, 0)
        block = self._blocks[index]
        if not isinstance(block, TextBlock):
            return (index, 0)
        return (index, block.offset_at(QPointF(point - block.pos())))

    def begin_selection(self, place: tuple[int, int]) -> None:
        """Select nothing yet; ``extend_selection`` selects from here."""
        self._anchor = place
        self.extend_selection(place)

    def extend_selection(self, place: tuple[int, int]) -> None:
        """Select everything between the anchor and ``place``."""
        first, last = sorted((self._anchor, place))
        for index, block in enumerate(self._blocks):
            if isinstance(block, TextBlock):
                start = first[1] if index == first[0] else 0
                stop = last[1] if index == last[0] else len(block.text)
                inside = first[0] <= index <= last[0]
                block.select(range(start, stop) if inside else range(0))
        self._offer_primary()

    def select_word(self, place: tuple[int, int]) -> None:
        """Select the word at ``place``."""
        if place[0] < len(self._blocks):
            block = self._blocks[place[0]]
            if isinstance(block, TextBlock):
                word = block.flow.word_at(place[1])
                self.begin_selection((place[0], word.start))
                self.extend_selection((place[0], word.stop))

    def select_block(self, place: tuple[int, int]) -> None:
        """Select the whole text of the block at ``place``."""
        if place[0] < len(self._blocks):
            block = self._blocks[place[0]]
            if isinstance(block, TextBlock):
                self.begin_selection((place[0], 0))
                self.extend_selection((place[0], len(block.text)))

    def select_all(self) -> None:
        """Select the text of all turns."""
        self.begin_selection((0, 0))
        if self._blocks:
            self.extend_selection((len(self._blocks), 0))

    def selected_text(self) -> str:
        """What is selected, letter for letter; turns apart by an empty line."""
        parts = [b.selected_text() for b in self._blocks if isinstance(b, TextBlock)]
        return "\n\n".join(part for part in parts if part)

    def _offer_primary(self) -> None:
        clipboard = QGuiApplication.clipboard()
        if clipboard.supportsSelection():
            text = self.selected_text()
            if text:
                clipboard.setText(text, clipboard.Mode.Selection)

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
