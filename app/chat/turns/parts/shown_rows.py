"""Which rows of a transcript show their buttons: under the pointer, at the keyboard, the last.

Listens to the column's mouse and to the keyboard's focus; owns nothing.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QHoverEvent
from PySide6.QtWidgets import QApplication, QWidget

from app.chat.blocks.column import Column
from app.chat.turns.parts.row import ActionRow


class ShownRows(QObject):
    """Reveals rows and conceals them again.

    A turn ends with its row, so the pointer is over the turn whose row stands next at or below it.
    """

    def __init__(self, column: Column) -> None:
        super().__init__(column)
        self._column = column
        self._hovered: ActionRow | None = None
        self._focused: ActionRow | None = None
        self._last: ActionRow | None = None
        self._shown: list[ActionRow] = []
        column.setAttribute(Qt.WidgetAttribute.WA_Hover)
        column.setMouseTracking(True)
        column.installEventFilter(self)
        QApplication.instance().focusChanged.connect(self._on_focus)  # type: ignore[union-attr]

    @property
    def shown(self) -> tuple[ActionRow, ...]:
        """The rows whose buttons are shown."""
        return tuple(self._shown)

    def forget(self) -> None:
        """The rows are gone."""
        self._hovered = self._focused = self._last = None
        self._shown.clear()

    def keep(self, row: ActionRow | None) -> None:
        """Always show ``row``, the last one; None for none while a reply comes."""
        if self._last is row and row is not None:
            row.reveal()
        self._last = row
        self._arrange()

    def row_at(self, y: int) -> ActionRow | None:
        """The row of the turn at height ``y`` of the column."""
        blocks = self._column.blocks
        for block in blocks[self._column.index_at(y) :]:
            if isinstance(block, ActionRow):
                return block
        return None

    def top_of(self, row: ActionRow) -> int:
        """Where the turn of ``row`` begins in the column: below the row before it."""
        top = 0
        for block in self._column.blocks:
            if block is row:
                break
            if isinstance(block, ActionRow):
                top = block.geometry().bottom() + 1
        return top

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the pointer."""
        if watched is self._column:
            if isinstance(event, QHoverEvent) and event.type() is not QEvent.Type.HoverLeave:
                self._hover(self.row_at(event.position().toPoint().y()))
            elif event.type() in (QEvent.Type.HoverLeave, QEvent.Type.Leave):
                self._hover(None)
        return super().eventFilter(watched, event)

    def _hover(self, row: ActionRow | None) -> None:
        if row is not self._hovered:
            self._hovered = row
            self._arrange()

    def _on_focus(self, _before: QWidget | None, now: QWidget | None) -> None:
        widget = now
        while widget is not None and not isinstance(widget, ActionRow):
            widget = widget.parentWidget()
        if widget is not None and widget.parentWidget() is not self._column:
            widget = None
        if widget is not self._focused:
            self._focused = widget
            self._arrange()

    def _arrange(self) -> None:
        wanted = [row for row in (self._last, self._focused, self._hovered) if row is not None]
        for row in self._shown:
            if row not in wanted:
                row.conceal()
        for row in wanted:
            if row not in self._shown:
                row.reveal()
        self._shown = list(dict.fromkeys(wanted))
