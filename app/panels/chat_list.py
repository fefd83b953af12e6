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
    Signal,
)
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from app.chat.blocks.text_flow import direction_of
from app.chat.storage.search import Hit
from app.language.words import tr
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
    TURN = int(Qt.ItemDataRole.UserRole) + 3
    MARKS = int(Qt.ItemDataRole.UserRole) + 4
    PINNED = int(Qt.ItemDataRole.UserRole) + 5


@dataclass(frozen=True, slots=True)
class Row:
    """A heading where ``chat`` is None, else a chat, or a place in one.

    Attributes:
        turn: the place, where the row is a hit of a search; ``marks`` are the words in its text.
    """

    text: str
    chat: int | None
    turn: int | None = None
    marks: tuple[range, ...] = ()
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class Renaming:
    """A title that a person typed for a chat."""

    chat: int
    title: str


class ChatListModel(QAbstractListModel):
    """Headings and chats in one list. Emits ``renamed`` with a Renaming."""

    renamed = Signal(object)

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
            rows.extend(
                Row(entry.title, entry.id, pinned=entry.pinned_ms is not None)
                for entry in group.entries
            )
        self._replace(tuple(rows))

    def show_hits(self, hits: tuple[Hit, ...]) -> None:
        """Show what a search found: chats by their titles, then places under their chat's title."""
        rows: list[Row] = []
        titles = [hit for hit in hits if hit.turn is None]
        if titles:
            rows.append(Row(tr("Titles"), None))
            rows.extend(Row(hit.title, hit.conversation, marks=hit.marks) for hit in titles)
        last: int | None = None
        for hit in hits:
            if hit.turn is None:
                continue
            if hit.conversation != last:
                rows.append(Row(hit.title, None))
                last = hit.conversation
            rows.append(Row(hit.snippet, hit.conversation, hit.turn, hit.marks))
        if not rows:
            rows.append(Row(tr("Nothing found"), None))
        self._replace(tuple(rows))

    def _replace(self, rows: tuple[Row, ...]) -> None:
        if rows != self._rows:
            self.beginResetModel()
            self._rows = rows
            self.endResetModel()

    def show_answering(self, chats: frozenset[int]) -> None:
        """Mark the chats that have a running reply."""
        if chats != self._answering:
            self._answering = chats
            self._tell_all()

    @property
    def any_answering(self) -> bool:
        """Whether any chat has a running reply."""
        return bool(self._answering)

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
        usual = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        return usual if self._rows[index.row()].marks else usual | Qt.ItemFlag.ItemIsEditable

    def setData(  # noqa: N802 - Qt's own name
        self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole
    ) -> bool:
        """A new title; an empty one changes nothing."""
        row, title = self._rows[index.row()], " ".join(str(value).split())
        if role != Qt.ItemDataRole.EditRole or row.chat is None or title in ("", row.text):
            return False
        self.renamed.emit(Renaming(row.chat, title))
        return True

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Text, chat id and whether it is answering."""
        row = self._rows[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.EditRole:
                return row.text
            case Qt.ItemDataRole.AccessibleTextRole:
                return ", ".join((row.text, *self._spoken(row)))
            case Qt.ItemDataRole.ToolTipRole if row.chat is not None:
                return "\n".join((row.text, *self._spoken(row)))
            case ListRole.CHAT.value:
                return row.chat
            case _:
                return self._marks_of(row).get(role)

    def _marks_of(self, row: Row) -> dict[int, Any]:
        """What a row tells beside its text, by role."""
        return {
            ListRole.TURN.value: row.turn,
            ListRole.MARKS.value: row.marks,
            ListRole.PINNED.value: row.pinned,
            ListRole.ANSWERING.value: row.chat in self._answering,
            ListRole.TIER.value: self._tier(row.chat),
        }

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
            return (tr("Answering"),)
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
            words = painter.fontMetrics().elidedText(
                str(index.data()), Qt.TextElideMode.ElideRight, int(label.width() - theme.px(16))
            )
            painter.drawText(label, align, words)
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
        self._paint_marks(painter, label, shown, index, rtl=rtl)
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

    def _paint_marks(
        self, painter: QPainter, label: QRectF, shown: str, index: Index, *, rtl: bool
    ) -> None:
        """The words that were looked for, once more in the accent's colour."""
        marks: tuple[range, ...] = index.data(ListRole.MARKS.value) or ()
        if rtl or not marks:
            return
        metrics = painter.fontMetrics()
        painter.setPen(self._look.theme.color("accent_text"))
        for mark in marks:
            word = shown[mark.start : mark.stop]
            left = label.left() + metrics.horizontalAdvance(shown[: mark.start])
            if word and mark.stop <= len(shown.rstrip("…")):
                box = QRectF(left, label.top(), label.width(), label.height())
                painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, word)

    def _paint_more(self, painter: QPainter, box: QRectF) -> None:
        theme = self._look.theme
        size = theme.px(MORE)
        device = painter.device()
        ratio = device.devicePixelRatioF() if device is not None else 1.0
        icon = self._icons.pixmap("more", size, theme.tokens.text2, ratio)
        place = QPointF(box.right() - theme.px(8) - size, box.center().y() - size / 2)
        painter.drawPixmap(place, icon)
