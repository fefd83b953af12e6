"""The transcript: a scrolling column of turns that follows the newest text unless one scrolls up.

Owns the column. What a model writes is read as Markdown and copied letter for letter. UI thread
only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QResizeEvent,
)
from PySide6.QtWidgets import QFrame, QMenu, QScrollArea, QWidget

from app.chat.blocks.column import Column
from app.chat.blocks.make import BlockMaker
from app.chat.blocks.selection import Selection, SelectionMouse
from app.chat.blocks.text_blocks import Block
from app.chat.rendered.formulas import Formulas
from app.chat.rendered.reply import Reply
from app.chat.rendered.stack import Press
from app.desktop.answers import Background
from app.language.words import tr
from app.look.icons import Icons
from app.look.theme import Look
from app.widgets.latest_pill import LatestPill

EDGE_PX: Final = 2


@dataclass(frozen=True, slots=True)
class OpeningMenu:
    """A menu that is about to open at height ``y`` of the column."""

    menu: QMenu
    y: int


class Transcript(QScrollArea):
    """Turns under each other. Emits ``typed`` with a key press that belongs to the composer.

    Emits ``menu_opening`` with an OpeningMenu to which lines may be added.

    Attributes:
        column: the blocks.
        make: makes blocks that stand in it.
        selection: what of their text is selected.
        latest: the pill that brings one back to the end.
    """

    typed = Signal(object)
    menu_opening = Signal(object)

    def __init__(self, look: Look, icons: Icons, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._reply: Reply | None = None
        self._following = True
        self._moving = False
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(tr("Conversation"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setAutoFillBackground(False)
        self.column = Column(look, self)
        background = Background(self)
        self.destroyed.connect(background.close)
        press = Press(icons, Formulas(look, background), background)
        self.make = BlockMaker(look, icons, self.column, press, self.grew)
        self.selection = Selection(self.column)
        self.setWidget(self.column)
        self.column.setAutoFillBackground(False)
        self.column.resized.connect(self._on_column_resized)
        self._mouse = SelectionMouse(self.selection, self.column, self)
        self.verticalScrollBar().valueChanged.connect(self._on_scrolled)
        self.latest = LatestPill(look, icons, self)
        self.latest.clicked.connect(self.follow)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is shown."""
        return not self.column.blocks

    @property
    def following(self) -> bool:
        """Whether new text scrolls into view by itself."""
        return self._following

    # Content -----------------------------------------------------------------------------------

    def clear(self) -> None:
        """Show nothing."""
        self._reply = None
        self.column.clear()
        self.follow()

    def begin_reply(self, text: str = "") -> None:
        """Put an open reply at the end; ``grow_reply`` adds to it."""
        self._reply = self.make.reply_turn("")
        self.column.add([self._reply])
        if text:
            self._reply.append(text)

    def grow_reply(self, text: str) -> None:
        """Add newly generated text to the open reply."""
        if self._reply is None:
            self.begin_reply()
        assert self._reply is not None
        self._reply.append(text)

    def end_reply(self, text: str) -> None:
        """Close the open reply as ``text``; an empty one leaves no block."""
        if self._reply is None and text:
            self.begin_reply()
        if self._reply is not None:
            if not text:
                self.column.remove(self._reply)
            else:
                self._reply.finish(text)
                self._reply.wake()
        self._reply = None

    def grew(self, block: Block) -> None:
        """Lay a block out again; what is read below it stays where it is on the screen."""
        bar = self.verticalScrollBar()
        top, before = block.y(), block.height()
        self.column.grew(block)
        change = block.height() - before
        if change and not self._following and top < bar.value():
            self._moving = True
            bar.setValue(bar.value() + change)
            self._moving = False

    # Scrolling ---------------------------------------------------------------------------------

    def follow(self) -> None:
        """Go to the end and stay there as text comes."""
        self._following = True
        self._to_end()
        self._place_pill()

    def fit(self, width: int) -> None:
        """Lay the column out for a page of ``width``, also before this is shown."""
        self.column.set_width(self.viewport().width(), width)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The column takes the new width; the end, or what is being read, stays in view."""
        bar = self.verticalScrollBar()
        read_at = self.column.spot_at(bar.value())
        # The bar moves by itself when its range changes; that is nobody's wish.
        self._moving = True
        super().resizeEvent(event)
        self.fit(self.width())
        bar.setValue(bar.maximum() if self._following else self.column.height_of(read_at))
        self._moving = False
        self._place_pill()

    def _on_column_resized(self) -> None:
        if self._following:
            self._to_end()
        self._place_pill()

    def _on_scrolled(self, _value: int) -> None:
        """One notch up stops following; reaching the end follows again."""
        if not self._moving:
            bar = self.verticalScrollBar()
            self._following = bar.value() >= bar.maximum() - EDGE_PX
            self._place_pill()

    def _to_end(self) -> None:
        bar = self.verticalScrollBar()
        self._moving = True
        bar.setValue(bar.maximum())
        self._moving = False

    def _place_pill(self) -> None:
        self.latest.setVisible(not self._following and not self.is_empty)
        right = self.column.left() + self.column.measure()
        self.latest.place(right, self.viewport().height() - self._look.theme.px(12))

    # Keys and menu -----------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy and select here; scrolling by the area; letters go to the composer."""
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        elif event.matches(QKeySequence.StandardKey.SelectAll):
            self.selection.everything()
        elif event.text() and event.text().isprintable():
            self.typed.emit(event)
        else:
            super().keyPressEvent(event)

    def copy(self) -> None:
        """Put the selected text on the clipboard, letter for letter."""
        text = self.selection.text()
        if text:
            QGuiApplication.clipboard().setText(text)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Copy what is selected, select all; who listens adds what can be done with the turn."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        copy = menu.addAction(tr("Copy the selection"))
        copy.setEnabled(bool(self.selection.text()))
        copy.triggered.connect(self.copy)
        menu.addAction(tr("Select all")).triggered.connect(self.selection.everything)
        y = self.column.mapFromGlobal(event.globalPos()).y()
        self.menu_opening.emit(OpeningMenu(menu, y))
        menu.popup(event.globalPos())
