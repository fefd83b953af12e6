"""The control for a list of folders: one row a folder, and a button that adds one."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.language.words import tr
from app.look.icons import Icons
from app.look.theme import Look
from app.widgets.icon_button import IconButton

LONGEST: Final = 36


class FolderControl(QWidget):
    """Folders in their order. Emits ``changed`` with a tuple of paths."""

    changed = Signal(object)

    def __init__(self, look: Look, icons: Icons, name: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._icons = icons
        self._folders: tuple[str, ...] = ()
        self._rows: list[QWidget] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self.add = QPushButton(tr("Add folder…"), self)
        self.add.setAccessibleDescription(name)
        self.add.clicked.connect(self._on_add)
        self._column.addWidget(self.add, 0, Qt.AlignmentFlag.AlignRight)
        self.setFocusProxy(self.add)

    def show_value(self, value: object) -> None:
        """Show a sequence of paths."""
        assert isinstance(value, tuple)
        self._folders = value
        for row in self._rows:
            row.hide()
            row.deleteLater()
        self._rows = [self._row(folder) for folder in self._folders]
        for place, row in enumerate(self._rows):
            self._column.insertWidget(place, row)

    def put(self, folder: str) -> None:
        """Add a folder, unless it is there."""
        if folder and folder not in self._folders:
            self._change((*self._folders, folder))

    def _row(self, folder: str) -> QWidget:
        row = QWidget(self)
        line = QHBoxLayout(row)
        line.setContentsMargins(0, 0, 0, 0)
        short = folder if len(folder) <= LONGEST else f"…{folder[1 - LONGEST :]}"
        label = QLabel(short, row)
        label.setTextFormat(Qt.TextFormat.PlainText)
        label.setToolTip(folder)
        away = IconButton(
            self._look, self._icons, "x", tr("Remove {folder}", folder=folder), row, side=28
        )
        away.clicked.connect(lambda: self._change(tuple(f for f in self._folders if f != folder)))
        line.addStretch(1)
        line.addWidget(label)
        line.addWidget(away)
        return row

    def _change(self, folders: tuple[str, ...]) -> None:
        self.show_value(folders)
        self.changed.emit(folders)

    def _on_add(self) -> None:
        self.put(
            QFileDialog.getExistingDirectory(self, tr("A folder with models"), str(Path.home()))
        )
