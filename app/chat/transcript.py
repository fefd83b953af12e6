"""The transcript: a scrolling column of turns that follows the newest text unless one scrolls up.

Owns the column. Plain text: what a model writes is shown letter for letter. UI thread only.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QMenu, QScrollArea, QWidget

from app.chat.blocks.column import Column
from app.chat.blocks.remarks import ErrorFacts, InlineError, Note, StatusLine
from app.chat.blocks.text_blocks import Block, Prose, TextBlock, UserBubble
from app.icons import Icons
from app.theme import Look
from app.widgets.latest_pill import LatestPill

EDGE_PX: Final = 2
AUTO_SCROLL_MS: Final = 40


class Transcript(QScrollArea):
    """Turns under each other. Emits ``typed`` with a key press that belongs to the composer."""

    typed = Signal(object)

    def __init__(self, look: Look, icons: Icons, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._icons = icons
        self._reply: Prose | None = None
        self._following = True
        self._drag_at: QPoint | None = None
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Conversation")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.column = Column(look, self)
        self.setWidget(self.column)
        self.column.installEventFilter(self)
        self.column.resized.connect(self._on_column_resized)
        self.verticalScrollBar().actionTriggered.connect(self._on_bar_action)
        self._pill = LatestPill(look, icons, self)
        self._pill.clicked.connect(self.follow)
        self._scroll_timer = QTimer(self)
        self._scroll_timer.setInterval(AUTO_SCROLL_MS)
        self._scroll_timer.timeout.connect(self._drag_further)

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

    def add(self, blocks: list[Block]) -> None:
        """Put ``blocks`` at the end, laid out once."""
        self.column.add_all(blocks)

    def user_turn(self, text: str) -> UserBubble:
        """A block with what the person wrote."""
        return UserBubble(self._look, self.column, text)

    def reply_turn(self, text: str) -> Prose:
        """A block with a reply."""
        return Prose(self._look, self.column, text)

    def status_line(self, text: str) -> StatusLine:
        """A block with the facts of a reply."""
        return StatusLine(self._look, self.column, text)

    def note(self, text: str) -> Note:
        """A block with one quiet sentence."""
        return Note(self._look, self._icons, self.column, text)

    def error(self, facts: ErrorFacts) -> InlineError:
        """A block with a failure."""
        return InlineError(self._look, self._icons, self.column, facts, self.column.grew)

    def begin_reply(self, text: str = "") -> Prose:
        """Put an open reply at the end; ``grow_reply`` adds to it."""
        self._reply = self.reply_turn(text)
        self.add([self._reply])
        return self._reply

    def grow_reply(self, text: str) -> None:
        """Add newly generated text to the open reply."""
        if self._reply is None:
            self.begin_reply()
        assert self._reply is not None
        self._reply.append(text)
        self.column.grew(self._reply)

    def end_reply(self, text: str) -> None:
        """Close the open reply as ``text``; an empty one leaves no block."""
        if self._reply is None and text:
            self.begin_reply()
        if self._reply is not None:
            if not text:
                self.column.remove(self._reply)
            elif self._reply.text != text:
                self._reply.replace_text(text)
                self.column.grew(self._reply)
        self._reply = None

    def remove(self, block: Block) -> None:
        """Take a block away."""
        self.column.remove(block)

    # Scrolling ---------------------------------------------------------------------------------

    def follow(self) -> None:
        """Go to the end and stay there as text comes."""
        self._following = True
        self._to_end()
        self._place_pill()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """One notch up stops following; reaching the end follows again."""
        super().wheelEvent(event)
        self._judge_following()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The column takes the new width; the end stays in view while following."""
        super().resizeEvent(event)
        self.column.set_width(self.viewport().width(), self.width())
        if self._following:
            self._to_end()
        self._place_pill()

    def _on_column_resized(self) -> None:
        if self._following:
            self._to_end()
        self._place_pill()

    def _on_bar_action(self, _action: int) -> None:
        """The person used the scroll bar; it moves only after this call."""
        QTimer.singleShot(0, self, self._judge_following)

    def _judge_following(self) -> None:
        bar = self.verticalScrollBar()
        at_end = bar.value() >= bar.maximum() - EDGE_PX
        self._following = at_end
        self._place_pill()

    def _to_end(self) -> None:
        bar = self.verticalScrollBar()
        bar.setValue(bar.maximum())

    def _place_pill(self) -> None:
        self._pill.setVisible(not self._following and not self.is_empty)
        theme = self._look.theme
        right = self.column.left() + self.column.measure()
        self._pill.place(right, self.viewport().height() - theme.px(12))

    # Selection, keys, menu -----------------------------------------------------------------------

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Mouse on the column selects text."""
        if watched is self.column and isinstance(event, QMouseEvent):
            return self._on_mouse(event)
        return super().eventFilter(watched, event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy and select here; scrolling by the area; letters go to the composer."""
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        elif event.matches(QKeySequence.StandardKey.SelectAll):
            self.column.select_all()
        elif event.text() and event.text().isprintable():
            self.typed.emit(event)
        else:
            super().keyPressEvent(event)

    def copy(self) -> None:
        """Put the selected text on the clipboard, letter for letter."""
        text = self.column.selected_text()
        if text:
            QGuiApplication.clipboard().setText(text)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Copy what is selected, copy the message under the pointer, select all."""
        place = self.column.place_at(self.column.mapFromGlobal(event.globalPos()))
        menu = QMenu(self)
        copy = menu.addAction("Copy")
        copy.setEnabled(bool(self.column.selected_text()))
        copy.triggered.connect(self.copy)
        message = menu.addAction("Copy message")
        message.triggered.connect(lambda: self.copy_block(place[0]))
        menu.addAction("Select all").triggered.connect(self.column.select_all)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(event.globalPos())

    def copy_block(self, index: int) -> None:
        """Put the whole text of a turn on the clipboard."""
        blocks = self.column.blocks
        if index < len(blocks):
            block = blocks[index]
            if isinstance(block, TextBlock):
                QGuiApplication.clipboard().setText(block.text)

    def _on_mouse(self, event: QMouseEvent) -> bool:
        point = event.position().toPoint()
        match event.type():
            case QEvent.Type.MouseButtonPress if event.button() is Qt.MouseButton.LeftButton:
                self.setFocus(Qt.FocusReason.MouseFocusReason)
                self.column.begin_selection(self.column.place_at(point))
                self._drag_at = point
            case QEvent.Type.MouseButtonDblClick if event.button() is Qt.MouseButton.LeftButton:
                self.column.select_word(self.column.place_at(point))
            case QEvent.Type.MouseMove if self._drag_at is not None:
                self._drag_at = point
                self.column.extend_selection(self.column.place_at(point))
                self._scroll_timer.start()
            case QEvent.Type.MouseButtonRelease:
                self._drag_at = None
                self._scroll_timer.stop()
            case _:
                return False
        return True

    def _drag_further(self) -> None:
        """Scroll while a selection is dragged beyond the edge."""
        if self._drag_at is None:
            return
        seen = self.column.mapTo(self.viewport(), self._drag_at)
        beyond = min(0, seen.y()) + max(0, seen.y() - self.viewport().height())
        if beyond:
            bar = self.verticalScrollBar()
            before = bar.value()
            bar.setValue(before + beyond // 2)
            self._drag_at += QPoint(0, bar.value() - before)
            self.column.extend_selection(self.column.place_at(self._drag_at))
            self._judge_following()
