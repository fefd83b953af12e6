"""How a row of the table of kept chats is painted, cell by cell, and where its buttons are."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject, QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from app.chat.blocks.text_flow import direction_of
from app.look.icons import Icons
from app.look.theme import Look, Role
from app.memory.rows import KeptRow
from app.memory.view.kept_model import COLUMNS, FIGURES, ROW_ROLE, Index, TableColumn
from app.widgets.state_dot import DOT, paint_state_dot

SIDE: Final = 17
INSETS: Final = {TableColumn.WHERE: SIDE, TableColumn.MODEL: 28}
"""Room at the start of a column; figures that stand at the right need some before what follows."""

ICON: Final = 16
TARGET: Final = 28
MORE_FROM_RIGHT: Final = 23
PIN_FROM_RIGHT: Final = 51


class KeptDelegate(QStyledItemDelegate):
    """Paints cells.

    Attributes:
        hovered: the row under the pointer, -1 for none; the view sets it.
    """

    def __init__(self, look: Look, icons: Icons, parent: QObject) -> None:
        super().__init__(parent)
        self._look = look
        self._icons = icons
        self.hovered = -1

    def pin_box(self, cell: QRectF) -> QRectF:
        """Where the pin of a row is, in its last cell."""
        return self._button_box(cell, PIN_FROM_RIGHT)

    def more_box(self, cell: QRectF) -> QRectF:
        """Where the "..." of a row is, or its trash can under the pointer."""
        return self._button_box(cell, MORE_FROM_RIGHT)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """One cell: ground, line below, content."""
        theme = self._look.theme
        cell = QRectF(option.rect)
        row: KeptRow = index.data(ROW_ROLE)
        column = COLUMNS[index.column()]
        state: QStyle.StateFlag = option.state
        selected = bool(state & QStyle.StateFlag.State_Selected)
        active = selected or index.row() == self.hovered
        painter.save()
        # Without antialiasing, so that cells meet on whole pixels at any scale.
        if active:
            painter.fillRect(cell, theme.color("selected" if selected else "hover"))
        line = QRectF(cell.left(), cell.bottom() - 1, cell.width(), 1)
        painter.fillRect(line, theme.color("line"))
        keyed = bool(state & QStyle.StateFlag.State_KeyboardFocusChange)
        if selected and keyed and option.widget is not None and option.widget.hasFocus():
            self._paint_ring(painter, cell, column)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        cell.adjust(0, 0, 0, -1)
        match column:
            case TableColumn.WHERE:
                self._paint_where(painter, cell, row)
            case TableColumn.CHAT:
                self._paint_title(painter, cell, row)
            case TableColumn.ACTIONS:
                self._paint_buttons(painter, cell, row, active=active)
            case _:
                self._paint_figure(painter, cell, row, column, str(index.data()))
        painter.restore()

    def _paint_ring(self, painter: QPainter, cell: QRectF, column: TableColumn) -> None:
        """This cell's share of the ring around the row that keys act on."""
        colour = self._look.theme.color("focus")
        painter.fillRect(QRectF(cell.left(), cell.top(), cell.width(), 2), colour)
        painter.fillRect(QRectF(cell.left(), cell.bottom() - 2, cell.width(), 2), colour)
        if column is TableColumn.WHERE:
            painter.fillRect(QRectF(cell.left(), cell.top(), 2, cell.height()), colour)
        elif column is TableColumn.ACTIONS:
            painter.fillRect(QRectF(cell.right() - 2, cell.top(), 2, cell.height()), colour)

    def _paint_where(self, painter: QPainter, cell: QRectF, row: KeptRow) -> None:
        theme = self._look.theme
        size = theme.px(DOT)
        dot = QRectF(cell.left() + theme.px(SIDE), cell.center().y() - size / 2, size, size)
        paint_state_dot(painter, dot, row.tier, theme)
        left = cell.left() + theme.px(SIDE + DOT + 9)
        words = cell.adjusted(left - cell.left(), 0, 0, 0)
        self._text(painter, words, Role.INTERFACE, "text2", row.where)

    def _paint_title(self, painter: QPainter, cell: QRectF, row: KeptRow) -> None:
        theme = self._look.theme
        room = cell.adjusted(0, 0, -theme.px(SIDE), 0)
        pin = theme.px(10 + 14) if row.pinned else 0
        title = " ".join(row.title.split())
        rtl = direction_of(title) is Qt.LayoutDirection.RightToLeft
        words = room.adjusted(pin, 0, 0, 0) if rtl else room.adjusted(0, 0, -pin, 0)
        wide = self._text(painter, words, Role.STRONG, "text", title, end=rtl)
        if row.pinned:
            size = theme.px(14)
            side = words.right() - wide - pin if rtl else words.left() + wide + theme.px(10)
            self._icon(painter, "pin", QRectF(side, cell.center().y() - size / 2, size, size))

    def _paint_figure(
        self, painter: QPainter, cell: QRectF, row: KeptRow, column: TableColumn, text: str
    ) -> None:
        end = column in FIGURES
        quiet = column in (TableColumn.MODEL, TableColumn.USED) or bool(row.note)
        theme = self._look.theme
        room = cell.adjusted(theme.px(INSETS.get(column, 0)), 0, 0 if end else -theme.px(12), 0)
        if row.note and column is TableColumn.TOKENS:
            room = cell.adjusted(0, 0, -theme.px(24), 0)
        self._text(painter, room, Role.INTERFACE, "text2" if quiet else "text", text, end=end)

    def _paint_buttons(
        self, painter: QPainter, cell: QRectF, row: KeptRow, *, active: bool
    ) -> None:
        theme = self._look.theme
        size = theme.px(ICON)
        deletable = row.kept and row.conversation is not None
        more = self.more_box(cell).center()
        place = QRectF(more.x() - size / 2, more.y() - size / 2, size, size)
        if not active:
            self._icon(painter, "more", place)
        elif deletable:
            pin = self.pin_box(cell).center()
            pin_place = QRectF(pin.x() - size / 2, pin.y() - size / 2, size, size)
            self._icon(painter, "pin", pin_place, accent=row.pinned)
            self._icon(painter, "trash", place)

    def _button_box(self, cell: QRectF, from_right: int) -> QRectF:
        theme = self._look.theme
        side = theme.px(TARGET)
        middle = QPointF(cell.right() - theme.px(from_right), cell.center().y())
        return QRectF(middle.x() - side / 2, middle.y() - side / 2, side, side)

    def _icon(self, painter: QPainter, name: str, place: QRectF, *, accent: bool = False) -> None:
        tokens = self._look.theme.tokens
        device = painter.device()
        ratio = device.devicePixelRatioF() if device is not None else 1.0
        colour = tokens.accent_text if accent else tokens.text2
        painter.drawPixmap(
            place.topLeft(), self._icons.pixmap(name, int(place.width()), colour, ratio)
        )

    def _text(
        self,
        painter: QPainter,
        room: QRectF,
        role: Role,
        token: str,
        text: str,
        *,
        end: bool = False,
    ) -> float:
        """One line; returns how wide it is."""
        theme = self._look.theme
        painter.setFont(theme.font(role))
        painter.setPen(QPen(theme.color(token)))
        metrics = painter.fontMetrics()
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, max(0, int(room.width())))
        side = Qt.AlignmentFlag.AlignRight if end else Qt.AlignmentFlag.AlignLeft
        painter.drawText(room, side | Qt.AlignmentFlag.AlignVCenter, shown)
        return float(metrics.horizontalAdvance(shown))
