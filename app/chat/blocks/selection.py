"""Selecting text across the blocks of a column, with the mouse and by command.

``Selection`` knows which text is selected; ``SelectionMouse`` turns presses and drags into it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QMouseEvent
from PySide6.QtWidgets import QScrollArea

from app.chat.blocks.column import Column
from app.chat.blocks.text_blocks import Selectable

AUTO_SCROLL_MS: Final = 40


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place in the text of a column: which block, and the offset into its exact text."""

    block: int
    offset: int


class Selection:
    """What is selected in a column: everything between an anchor and another place."""

    def __init__(self, column: Column) -> None:
        self._column = column
        self._anchor = Place(0, 0)

    def place_at(self, point: QPoint) -> Place:
        """The place nearest to ``point`` of the column; only blocks with text have places."""
        blocks = self._column.blocks
        index = self._column.index_at(point.y())
        while index > 0 and not isinstance(blocks[index], Selectable):
            index -= 1
        block = blocks[index] if index < len(blocks) else None
        if not isinstance(block, Selectable):
            return Place(index, 0)
        return Place(index, block.offset_at(QPointF(point - block.pos())))

    def begin(self, place: Place) -> None:
        """Select nothing yet; ``extend`` selects from here."""
        self._anchor = place
        self.extend(place)

    def extend(self, place: Place) -> None:
        """Select everything between the anchor and ``place``."""
        first, last = sorted((self._anchor, place))
        for index, block in enumerate(self._column.blocks):
            if isinstance(block, Selectable):
                start = first.offset if index == first.block else 0
                stop = last.offset if index == last.block else len(block.text)
                inside = first.block <= index <= last.block
                block.select(range(start, stop) if inside else range(0))
        self._offer_primary()

    def word(self, place: Place) -> None:
        """Select the word at ``place``."""
        block = self.block_at(place)
        if block is not None:
            word = block.word_at(place.offset)
            self.begin(Place(place.block, word.start))
            self.extend(Place(place.block, word.stop))

    def everything(self) -> None:
        """Select the text of all turns."""
        self.begin(Place(0, 0))
        self.extend(Place(len(self._column.blocks), 0))

    def text(self) -> str:
        """What is selected, letter for letter; turns apart by an empty line."""
        blocks = self._column.blocks
        parts = [b.selected_text() for b in blocks if isinstance(b, Selectable)]
        return "\n\n".join(part for part in parts if part)

    def block_at(self, place: Place) -> Selectable | None:
        """The block of ``place``, None where it has no text."""
        blocks = self._column.blocks
        block = blocks[place.block] if place.block < len(blocks) else None
        return block if isinstance(block, Selectable) else None

    def _offer_primary(self) -> None:
        clipboard = QGuiApplication.clipboard()
        if clipboard.supportsSelection():
            text = self.text()
            if text:
                clipboard.setText(text, clipboard.Mode.Selection)


class SelectionMouse(QObject):
    """Listens to the column's mouse; scrolls ``area`` while a drag leaves it. Owns a timer."""

    def __init__(self, selection: Selection, column: Column, area: QScrollArea) -> None:
        super().__init__(area)
        self._selection = selection
        self._column = column
        self._area = area
        self._drag_at: QPoint | None = None
        self._timer = QTimer(self)
        self._timer.setInterval(AUTO_SCROLL_MS)
        self._timer.timeout.connect(self._drag_further)
        column.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Mouse events of the column are ours."""
        if watched is self._column and isinstance(event, QMouseEvent):
            return self._on_mouse(event)
        return super().eventFilter(watched, event)

    def _on_mouse(self, event: QMouseEvent) -> bool:
        point = event.position().toPoint()
        left = event.button() is Qt.MouseButton.LeftButton
        match event.type():
            case QEvent.Type.MouseButtonPress if left:
                self._area.setFocus(Qt.FocusReason.MouseFocusReason)
                self._selection.begin(self._selection.place_at(point))
                self._drag_at = point
            case QEvent.Type.MouseButtonDblClick if left:
                self._selection.word(self._selection.place_at(point))
            case QEvent.Type.MouseMove if self._drag_at is not None:
                self._drag_at = point
                self._selection.extend(self._selection.place_at(point))
                self._timer.start()
            case QEvent.Type.MouseButtonRelease:
                self._drag_at = None
                self._timer.stop()
            case _:
                return False
        return True

    def _drag_further(self) -> None:
        """Scroll while a selection is dragged beyond the edge."""
        if self._drag_at is None:
            return
        viewport = self._area.viewport()
        seen = self._column.mapTo(viewport, self._drag_at)
        beyond = min(0, seen.y()) + max(0, seen.y() - viewport.height())
        if beyond:
            bar = self._area.verticalScrollBar()
            before = bar.value()
            bar.setValue(before + beyond // 2)
            self._drag_at += QPoint(0, bar.value() - before)
            self._selection.extend(self._selection.place_at(self._drag_at))
