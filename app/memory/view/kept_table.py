"""The table of kept chats: as high as its rows, so that the page scrolls and not the table.

Arrow keys move, Enter opens the chat, P pins, Delete asks whether to delete what is kept; the same
stands in the menu of a row and, under the pointer, at its end.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QModelIndex, QPoint, QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHeaderView,
    QMenu,
    QTableView,
    QToolTip,
    QWidget,
)

from app.look.icons import Icons
from app.look.theme import Look, Role
from app.memory.rows import KeptRow
from app.memory.view.kept_delegate import INSETS, KeptDelegate
from app.memory.view.kept_model import COLUMNS, FIGURES, ROW_ROLE, KeptModel, TableColumn

ROW: Final = 36
HEAD: Final = 36
RADIUS: Final = 10
WIDTHS: Final = {
    TableColumn.WHERE: 141,
    TableColumn.TOKENS: 88,
    TableColumn.SIZE: 96,
    TableColumn.MODEL: 196,
    TableColumn.USED: 92,
    TableColumn.ACTIONS: 81,
}
LEAST_CHAT: Final = 160
NOTE_COLUMNS: Final = 3
LEAVES: Final = (TableColumn.MODEL, TableColumn.TOKENS, TableColumn.SIZE, TableColumn.USED)
"""What a narrow table leaves out, in this order, so that the titles can be read."""


class KeptHeader(QHeaderView):
    """The head: quiet words on a sunken ground; a click sorts, a second one turns it round."""

    def __init__(self, look: Look, parent: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._look = look
        self.setSectionsClickable(True)
        self.setHighlightSections(False)
        self.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.setAccessibleName("Columns of kept chats")
        self.viewport().setAutoFillBackground(False)

    def paintSection(self, painter: QPainter, box: QRect, section: int) -> None:  # noqa: N802
        """Ground, line below, word, and the way it is sorted."""
        theme = self._look.theme
        column = COLUMNS[section]
        cell = QRectF(box)
        painter.save()
        painter.fillRect(cell, theme.color("sunken"))
        line = QRectF(cell.left(), cell.bottom() - 1, cell.width(), 1)
        painter.fillRect(line, theme.color("line"))
        painter.setFont(theme.font(Role.CAPTION_STRONG))
        painter.setPen(theme.color("text2"))
        text = column.value[0]
        if self.isSortIndicatorShown() and self.sortIndicatorSection() == section:
            falling = self.sortIndicatorOrder() is Qt.SortOrder.DescendingOrder
            text = f"{text} {'↑' if falling else '↓'}"
        left = theme.px(INSETS.get(column, 0))
        side = Qt.AlignmentFlag.AlignRight if column in FIGURES else Qt.AlignmentFlag.AlignLeft
        room = cell.adjusted(left, 0, 0, 0)
        painter.drawText(room, side | Qt.AlignmentFlag.AlignVCenter, text)
        painter.restore()


class KeptTable(QTableView):
    """The rows. ``open_wanted``, ``pin_wanted`` and ``delete_wanted`` carry a ``KeptRow``."""

    open_wanted = Signal(object)
    pin_wanted = Signal(object)
    delete_wanted = Signal(object)

    def __init__(self, look: Look, icons: Icons, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self.kept = KeptModel(self)
        self._delegate = KeptDelegate(look, icons, self)
        self._spanned: tuple[int, tuple[int, ...]] = (0, ())
        self.setModel(self.kept)
        self.setItemDelegate(self._delegate)
        self.head = KeptHeader(look, self)
        self.setHorizontalHeader(self.head)
        self.verticalHeader().hide()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setMouseTracking(True)
        self.setCornerButtonEnabled(False)
        self.setAccessibleName("Kept chats")
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setAutoFillBackground(False)
        self.doubleClicked.connect(self._on_double_clicked)
        look.changed.connect(self._on_look_changed)
        self._on_look_changed()

    def show_rows(self, rows: tuple[KeptRow, ...]) -> None:
        """Show ``rows``; the current one stays current where it is still there."""
        current = self.current_row()
        others = self.kept.show_rows(rows)
        self._span_notes(tuple(n for n, row in enumerate(rows) if row.note))
        if not others:
            return
        self._delegate.hovered = -1
        found = self.kept.row_of(current.key) if current is not None else None
        if found is not None:
            self.setCurrentIndex(self.kept.index(found, COLUMNS.index(TableColumn.CHAT)))

    def current_row(self) -> KeptRow | None:
        """The row that keys act on."""
        index = self.currentIndex()
        row: KeptRow | None = index.data(ROW_ROLE) if index.isValid() else None
        return row

    def wanted_height(self) -> int:
        """Head and all rows, in logical pixels."""
        theme = self._look.theme
        return theme.px(HEAD) + theme.px(ROW) * len(self.kept.rows)

    def _span_notes(self, noted: tuple[int, ...]) -> None:
        """A note takes the room of the figures that its row does not have."""
        if (len(self.kept.rows), noted) != self._spanned:
            self._spanned = (len(self.kept.rows), noted)
            self.clearSpans()
            for number in noted:
                self.setSpan(number, COLUMNS.index(TableColumn.TOKENS), 1, NOTE_COLUMNS)

    # Keys and pointer ----------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """P, Delete and Enter act on the current row; Up at the top leaves it."""
        row = self.current_row()
        wanted = {
            Qt.Key.Key_Delete: self.delete_wanted,
            Qt.Key.Key_P: self.pin_wanted,
            Qt.Key.Key_Return: self.open_wanted,
            Qt.Key.Key_Enter: self.open_wanted,
        }.get(Qt.Key(event.key()))
        plain = not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        if row is None or wanted is None or not plain:
            super().keyPressEvent(event)
        elif wanted is self.open_wanted or self._can_change(row):
            wanted.emit(row)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A press on a row's buttons does what they say."""
        index = self.indexAt(event.position().toPoint())
        super().mousePressEvent(event)
        if not index.isValid() or event.button() is not Qt.MouseButton.LeftButton:
            return
        row: KeptRow = index.data(ROW_ROLE)
        cell = QRectF(self.visualRect(index.siblingAtColumn(len(COLUMNS) - 1)))
        if self._delegate.more_box(cell).contains(event.position()):
            if self._can_change(row):
                self.delete_wanted.emit(row)
            else:
                self.menu_of(row).popup(event.globalPosition().toPoint())
        elif self._delegate.pin_box(cell).contains(event.position()) and self._can_change(row):
            self.pin_wanted.emit(row)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """The row under the pointer shows its buttons."""
        super().mouseMoveEvent(event)
        self._hover(self.indexAt(event.position().toPoint()).row())

    def viewportEvent(self, event: QEvent) -> bool:
        """When the pointer leaves, no row is under it; where it rests, buttons say what they do."""
        if event.type() is QEvent.Type.Leave:
            self._hover(-1)
        elif isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            words = self.button_words(event.pos())
            if words:
                QToolTip.showText(event.globalPos(), words, self)
                return True
        return super().viewportEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """The menu of the row under the pointer, or of the current one for the menu key."""
        keyed = event.reason() is QContextMenuEvent.Reason.Keyboard
        index = self.currentIndex() if keyed else self.indexAt(event.pos())
        if index.isValid():
            below = self.viewport().mapToGlobal(self.visualRect(index).bottomLeft())
            self.menu_of(index.data(ROW_ROLE)).popup(below if keyed else event.globalPos())

    def button_words(self, place: QPoint) -> str:
        """What the button of a row at ``place`` does, with its key; empty where there is none."""
        index = self.indexAt(place)
        row: KeptRow | None = index.data(ROW_ROLE) if index.isValid() else None
        if row is None or not self._can_change(row):
            return ""
        cell = QRectF(self.visualRect(index.siblingAtColumn(len(COLUMNS) - 1)))
        if self._delegate.pin_box(cell).contains(QPointF(place)):
            return "Unpin (P)" if row.pinned else "Pin: it never goes by itself (P)"
        inside = self._delegate.more_box(cell).contains(QPointF(place))
        return "Delete what is kept (Del)" if inside else ""

    def menu_of(self, row: KeptRow) -> QMenu:
        """What can be done with ``row``; the menu deletes itself once it is closed."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        opens = menu.addAction("Open chat")
        opens.setEnabled(row.chat is not None)
        opens.triggered.connect(lambda: self.open_wanted.emit(row))
        if self._can_change(row):
            pins = menu.addAction("Unpin" if row.pinned else "Pin")
            pins.triggered.connect(lambda: self.pin_wanted.emit(row))
            deletes = menu.addAction("Delete what is kept …")
            deletes.triggered.connect(lambda: self.delete_wanted.emit(row))
        return menu

    def _can_change(self, row: KeptRow) -> bool:
        return row.kept and row.conversation is not None

    def _hover(self, row: int) -> None:
        if row != self._delegate.hovered:
            self._delegate.hovered = row
            self.viewport().update()

    def _on_double_clicked(self, index: QModelIndex) -> None:
        if COLUMNS[index.column()] is not TableColumn.ACTIONS:
            self.open_wanted.emit(index.data(ROW_ROLE))

    # Places --------------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The titles take what the other columns leave; a narrow table has fewer of those."""
        super().resizeEvent(event)
        theme = self._look.theme
        room = self.viewport().width()
        widths = {column: theme.px(width) for column, width in WIDTHS.items()}
        for column in LEAVES:
            if room - sum(widths.values()) < theme.px(LEAST_CHAT):
                del widths[column]
        widths[TableColumn.CHAT] = max(0, room - sum(widths.values()))
        for number, column in enumerate(COLUMNS):
            self.setColumnHidden(number, column not in widths)
            self.setColumnWidth(number, widths.get(column, 0))

    def _on_look_changed(self, _theme: object = None) -> None:
        theme = self._look.theme
        self.verticalHeader().setMinimumSectionSize(theme.px(ROW))
        self.verticalHeader().setDefaultSectionSize(theme.px(ROW))
        self.head.setFixedHeight(theme.px(HEAD))
        self.viewport().update()


class RoundFrame(QWidget):
    """Lies over the table, rounds its corners and draws its edge; the pointer goes through."""

    def __init__(self, look: Look, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """What is outside the rounded corners, then the edge."""
        theme = self._look.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect())
        radius = theme.px(RADIUS)
        outside, inside = QPainterPath(), QPainterPath()
        outside.addRect(box)
        inside.addRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
        painter.fillPath(outside.subtracted(inside), theme.color("base"))
        painter.strokePath(inside, QPen(theme.color("line"), 1))
