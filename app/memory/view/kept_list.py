"""The kept chats under the cards: their number, the filter, the table; what to say without rows."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QPushButton, QWidget

from app.look.icons import Icons
from app.look.theme import Look, Role
from app.memory.rows import KeptRow
from app.memory.view.kept_table import KeptTable, RoundFrame
from app.widgets.filter_field import FilterField

HEAD: Final = 32
BELOW_HEAD: Final = 10
EMPTY: Final = 168


class KeptList(QWidget):
    """Title, filter and table in one column.

    Attributes:
        filter: what is typed there narrows the rows.
        clear: deletes what is kept of all chats, after a question.
        table: the rows.
    """

    def __init__(self, look: Look, icons: Icons, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._icons = icons
        self._count = ""
        self._empty = ("", "")
        self.clear = QPushButton("Delete all …", self)
        self.clear.setProperty("kind", "flat")
        self.clear.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.clear.setToolTip("Deletes what is kept of every chat; their texts stay")
        self.filter = FilterField(look, icons, "Filter kept chats", self)
        self.table = KeptTable(look, icons, self)
        self._frame = RoundFrame(look, self)
        self._frame.raise_()
        look.changed.connect(self._on_look_changed)

    def show_rows(self, rows: tuple[KeptRow, ...], count: str, empty: tuple[str, str]) -> None:
        """Show ``rows``, or ``empty``, a title and a sentence, where there are none.

        Args:
            count: how much is kept in all, in words; empty where nothing is.
        """
        self.table.show_rows(rows)
        self.table.setVisible(bool(rows))
        self.clear.setVisible(bool(count))
        self._count, self._empty = count, empty
        self.setAccessibleName("Kept chats")
        self.setAccessibleDescription(count if rows else ". ".join(empty))
        self.update()

    def wanted_height(self) -> int:
        """The height of everything, in logical pixels."""
        theme = self._look.theme
        below = self.table.wanted_height() if self.table.kept.rows else theme.px(EMPTY)
        return theme.px(HEAD + BELOW_HEAD) + below

    def resizeEvent(self, _event: QResizeEvent) -> None:
        """Head, then the table under its frame."""
        self._arrange()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Title and number; the ground of the table, and why it is empty."""
        theme = self._look.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        head = QRectF(0, 0, self.clear.x() - theme.px(8), theme.px(HEAD))
        painter.setFont(theme.font(Role.PAGE))
        painter.setPen(theme.color("text"))
        painter.drawText(head, Qt.AlignmentFlag.AlignVCenter, "Kept chats")
        wide = QFontMetricsF(theme.font(Role.PAGE)).horizontalAdvance("Kept chats")
        painter.setFont(theme.font(Role.INTERFACE))
        painter.setPen(theme.color("text2"))
        rest = head.adjusted(wide + theme.px(11), 0, 0, 0)
        metrics = painter.fontMetrics()
        room = max(0, int(rest.width()))
        count = metrics.elidedText(self._count, Qt.TextElideMode.ElideRight, room)
        painter.drawText(rest, Qt.AlignmentFlag.AlignVCenter, count)
        ground = QRectF(self._frame.geometry())
        painter.fillRect(ground, theme.color("surface"))
        if not self.table.kept.rows:
            self._paint_empty(painter, ground)

    def _paint_empty(self, painter: QPainter, ground: QRectF) -> None:
        theme = self._look.theme
        title, sentence = self._empty
        size = theme.px(32)
        icon = self._icons.pixmap("layers", size, theme.tokens.text2, self.devicePixelRatioF())
        top = ground.top() + theme.px(30)
        painter.drawPixmap(QPointF(ground.center().x() - size / 2, top), icon)
        flags = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop
        words = ground.adjusted(theme.px(24), 0, -theme.px(24), 0)
        words.setTop(top + size + theme.px(8))
        painter.setFont(theme.font(Role.PAGE))
        painter.setPen(theme.color("text"))
        painter.drawText(words, flags, title)
        words.setTop(words.top() + theme.line_px(Role.PAGE) + theme.px(4))
        painter.setFont(theme.font(Role.INTERFACE))
        painter.setPen(theme.color("text2"))
        painter.drawText(words, int(flags | Qt.TextFlag.TextWordWrap), sentence)

    def _arrange(self) -> None:
        theme = self._look.theme
        self.filter.resize(self.filter.sizeHint())
        self.filter.move(self.width() - self.filter.width(), 0)
        self.clear.resize(self.clear.sizeHint().width(), theme.px(HEAD))
        self.clear.move(self.filter.x() - theme.px(8) - self.clear.width(), 0)
        top = theme.px(HEAD + BELOW_HEAD)
        self.table.setGeometry(0, top, self.width(), max(0, self.height() - top))
        self._frame.setGeometry(0, top, self.width(), max(0, self.height() - top))
        self._frame.raise_()

    def _on_look_changed(self, _theme: object) -> None:
        self._arrange()
        self.update()
