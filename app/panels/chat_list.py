"""The rows of the sidebar: headings and chats as a list model, and how a row is painted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPointF,
    QRectF,
    QSize,
    Qt,
)
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from app.chat.blocks.text_flow import direction_of
from app.look.icons import Icons
from app.look.theme import Look, Role
from app.memory.rows import resume_words
from app.panels.dates import DateGroup
from app.widgets.busy import BusyTurn
from app.widgets.state_dot import DOT, paint_state_dot
from engine.protocol import ChatTier, Tier

Index = QModelIndex | QPersistentModelIndex

ROW: Final = 32
HEADING_ABOVE: Final = 14
HEADING_BELOW: Final = 4
MORE: Final = 18


class ListRole(Enum):
    """What a row tells besides its text."""

    CHAT = int(Qt.ItemDataRole.UserRole)
    ANSWERING = int(Qt.ItemDataRole.UserRole) + 1
    TIER = int(Qt.ItemDataRole.UserRole) + 2


@dataclass(frozen=True, slots=True)
class Row:
    """A heading where ``chat`` is None, else a chat."""

    text: str
    chat: int | None


class ChatListModel(QAbstractListModel):
    """Headings and chats in one list."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._rows: tuple[Row, ...] = ()
        self._answering: frozenset[int] = frozenset()
        self._tiers: Mapping[int, ChatTier] = MappingProxyType({})
        self._gpu = False

    def show_groups(self, groups: tuple[DateGroup, ...]) -> None:
        """Replace all rows; nothing happens where they are the same."""
        rows: list[Row] = []
        for group in groups:
            rows.append(Row(group.heading, None))
            rows.extend(Row(entry.title, entry.id) for entry in group.entries)
        if tuple(rows) != self._rows:
            self.beginResetModel()
            self._rows = tuple(rows)
            self.endResetModel()

    def show_answering(self, chats: frozenset[int]) -> None:
        """Mark the chats that have a running reply."""
        if chats != self._answering:
            self._answering = chats
            self._tell_all()

    def show_tiers(self, tiers: Mapping[int, ChatTier], *, gpu: bool) -> None:
        """Mark from where each chat goes on; one that is not in ``tiers`` is text only."""
        if (tiers, gpu) != (self._tiers, self._gpu):
            self._tiers, self._gpu = tiers, gpu
            self._tell_all()

    def index_of(self, chat: int | None) -> QModelIndex:
        """The index of a chat, an invalid one where it is not listed."""
        for number, row in enumerate(self._rows):
            if row.chat is not None and row.chat == chat:
                return self.index(number)
        return QModelIndex()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        """Headings and chats."""
        return 0 if parent.isValid() else len(self._rows)

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Headings cannot be chosen."""
        if self._rows[index.row()].chat is None:
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Text, chat id and whether it is answering."""
        row = self._rows[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return row.text
            case Qt.ItemDataRole.AccessibleTextRole:
                return ", ".join((row.text, *self._spoken(row)))
            case Qt.ItemDataRole.ToolTipRole if row.chat is not None:
                return "\n".join((row.text, *self._spoken(row)))
            case ListRole.CHAT.value:
                return row.chat
            case ListRole.ANSWERING.value | ListRole.TIER.value:
                answers = role == ListRole.ANSWERING.value
                return row.chat in self._answering if answers else self._tier(row.chat)
            case _:
                return None

    def _tell_all(self) -> None:
        if self._rows:
            self.dataChanged.emit(self.index(0), self.index(len(self._rows) - 1))

    def _tier(self, chat: int | None) -> Tier:
        found = self._tiers.get(chat) if chat is not None else None
        return found.tier if found is not None else "none"

    def _spoken(self, row: Row) -> tuple[str, ...]:
        """What the mark of a row says, in words."""
        if row.chat is None:
            return ()
        if row.chat in self._answering:
            return ("Answering",)
        return (resume_words(self._tier(row.chat), gpu=self._gpu),)


class ChatRowDelegate(QStyledItemDelegate):
    """Paints headings and chats; a chat that is answering shows the arc."""

    def __init__(self, look: Look, icons: Icons, busy: BusyTurn, parent: QObject) -> None:
        super().__init__(parent)
        self._look = look
        self._icons = icons
        self._busy = busy

    def sizeHint(self, _option: QStyleOptionViewItem, index: Index) -> QSize:
        """Rows of 32, headings with room above."""
        theme = self._look.theme
        if index.data(ListRole.CHAT.value) is None:
            around = theme.px(HEADING_ABOVE) + theme.px(HEADING_BELOW)
            return QSize(10, theme.line_px(Role.CAPTION) + around)
        return QSize(10, theme.px(ROW))

    def more_box(self, row: QRectF) -> QRectF:
        """Where the "..." of a row is."""
        theme = self._look.theme
        size = theme.px(MORE + 10)
        right = row.right() - theme.px(9) - theme.px(3)
        return QRectF(right - size, row.center().y() - size / 2, size, size)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """One row."""
        theme = self._look.theme
        box = QRectF(option.rect)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if index.data(ListRole.CHAT.value) is None:
            painter.setFont(theme.font(Role.CAPTION_STRONG))
            painter.setPen(theme.color("text2"))
            label = box.adjusted(theme.px(10), 0, 0, -theme.px(HEADING_BELOW))
            align = Qt.AlignmentFlag.AlignBottom | Qt.AlignmentFlag.AlignLeft
            painter.drawText(label, align, index.data())
        else:
            self._paint_chat(painter, box, option, index)
        painter.restore()

    def _paint_chat(
        self, painter: QPainter, box: QRectF, option: QStyleOptionViewItem, index: Index
    ) -> None:
        theme = self._look.theme
        state: QStyle.StateFlag = option.state
        selected = bool(state & QStyle.StateFlag.State_Selected)
        hovered = bool(state & QStyle.StateFlag.State_MouseOver)
        focused = bool(state & QStyle.StateFlag.State_HasFocus)
        box = box.adjusted(0, 0, -theme.px(8), 0)
        radius = theme.px(7)
        if selected or hovered:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("selected" if selected else "hover"))
            painter.drawRoundedRect(box, radius, radius)
        if focused and state & QStyle.StateFlag.State_KeyboardFocusChange:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(theme.color("focus"), 2))
            painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), radius, radius)
        self._paint_mark(painter, box, index)
        font = theme.font(Role.STRONG if selected else Role.INTERFACE)
        painter.setFont(font)
        painter.setPen(theme.color("text"))
        right = theme.px(28) if hovered or focused else theme.px(8)
        label = box.adjusted(theme.px(9 + DOT + 9), 0, -right, 0)
        title = " ".join(str(index.data()).split())
        shown = painter.fontMetrics().elidedText(
            title, Qt.TextElideMode.ElideRight, int(label.width())
        )
        rtl = direction_of(title) is Qt.LayoutDirection.RightToLeft
        side = Qt.AlignmentFlag.AlignRight if rtl else Qt.AlignmentFlag.AlignLeft
        painter.drawText(label, side | Qt.AlignmentFlag.AlignVCenter, shown)
        if hovered or focused:
            self._paint_more(painter, box)

    def _paint_mark(self, painter: QPainter, box: QRectF, index: Index) -> None:
        """The arc of a chat that answers, else the mark of the place it goes on from."""
        theme = self._look.theme
        size = theme.px(DOT)
        mark = QRectF(box.left() + theme.px(9), box.center().y() - size / 2, size, size)
        if index.data(ListRole.ANSWERING.value):
            self._busy.paint(painter, mark.adjusted(1, 1, -1, -1), theme)
        else:
            paint_state_dot(painter, mark, index.data(ListRole.TIER.value), theme)

    def _paint_more(self, painter: QPainter, box: QRectF) -> None:
        theme = self._look.theme
        size = theme.px(MORE)
        device = painter.device()
        ratio = device.devicePixelRatioF() if device is not None else 1.0
        icon = self._icons.pixmap("more", size, theme.tokens.text2, ratio)
        place = QPointF(box.right() - theme.px(8) - size, box.center().y() - size / 2)
        painter.drawPixmap(place, icon)
