"""The kept chats as Qt's table model: rows are replaced whole, but what is the same stays."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
)

from app.memory.rows import Column, KeptRow

Index = QModelIndex | QPersistentModelIndex
ROW_ROLE: Final = int(Qt.ItemDataRole.UserRole)


class TableColumn(Enum):
    """The columns from the left; the value is the title and what a click on it sorts by."""

    WHERE = ("Where", Column.WHERE)
    CHAT = ("Chat", Column.CHAT)
    TOKENS = ("Tokens", Column.TOKENS)
    SIZE = ("Size", Column.SIZE)
    MODEL = ("Model", Column.MODEL)
    USED = ("Last used", Column.USED)
    ACTIONS = ("", None)


COLUMNS: Final = tuple(TableColumn)
FIGURES: Final = (TableColumn.TOKENS, TableColumn.SIZE, TableColumn.USED)
"""Columns that stand at the right."""


class KeptModel(QAbstractTableModel):
    """Rows of kept chats; ``ROW_ROLE`` of any cell is its ``KeptRow``."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.rows: tuple[KeptRow, ...] = ()

    def show_rows(self, rows: Sequence[KeptRow]) -> bool:
        """Replace all rows; whether others stand where some stood before."""
        new = tuple(rows)
        if [row.key for row in new] != [row.key for row in self.rows]:
            self.beginResetModel()
            self.rows = new
            self.endResetModel()
            return True
        old, self.rows = self.rows, new
        for number, (before, after) in enumerate(zip(old, new, strict=True)):
            if before != after:
                last = self.index(number, len(COLUMNS) - 1)
                self.dataChanged.emit(self.index(number, 0), last)
        return False

    def row_of(self, key: tuple[str | None, str]) -> int | None:
        """Where the row with ``key`` stands, None where it does not."""
        return next((n for n, row in enumerate(self.rows) if row.key == key), None)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        """One a conversation and model."""
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008, N802 - Qt's own
        """The columns of ``TableColumn``."""
        return 0 if parent.isValid() else len(COLUMNS)

    def headerData(  # noqa: N802 - Qt's own name
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """The titles."""
        if orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section].value[0]
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Text of a cell, its tooltip, and the row."""
        row, column = self.rows[index.row()], COLUMNS[index.column()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return _text(row, column)
            case Qt.ItemDataRole.AccessibleTextRole:
                return _spoken(row, column)
            case Qt.ItemDataRole.ToolTipRole if column is TableColumn.CHAT:
                return row.title
            case Qt.ItemDataRole.ToolTipRole if column is TableColumn.MODEL:
                return row.model or None
            case role if role == ROW_ROLE:
                return row
            case _:
                return None


def _text(row: KeptRow, column: TableColumn) -> str:
    texts = {
        TableColumn.WHERE: row.where,
        TableColumn.CHAT: row.title,
        TableColumn.TOKENS: row.note or row.tokens,
        TableColumn.SIZE: row.size,
        TableColumn.MODEL: row.model,
        TableColumn.USED: row.used,
    }
    return texts.get(column, "")


def _spoken(row: KeptRow, column: TableColumn) -> str:
    if column is TableColumn.CHAT and row.pinned:
        return f"{row.title}, pinned"
    if column is TableColumn.ACTIONS:
        return "P pins, Delete deletes" if row.kept and row.conversation is not None else ""
    return _text(row, column)
