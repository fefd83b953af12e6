"""The list of models on this computer that drops from the top bar: search, size, which is loaded.

Shows what it is told; emits what is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QEvent, QObject, QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.language.words import tr
from app.library.catalogue import Installed
from app.look.theme import Look, Role

WIDTH: Final = 380
ROW: Final = 36
MOST_ROWS: Final = 9


def row_words(entry: Installed, *, loaded: bool) -> str:
    """A row of the list: name, size, and how it stands."""
    size = f"{entry.file_bytes / 1e9:.1f}"
    if not entry.present:
        return tr("{name} · not there now", name=entry.name)
    if loaded:
        return tr("● {name} · {size} GB · loaded", name=entry.name, size=size)
    return tr("{name} · {size} GB", name=entry.name, size=size)


class ModelPicker(QFrame):
    """Floats over its window until the keyboard leaves it.

    Emits ``chosen`` with the path of a model, ``left`` where none was.

    Attributes:
        line: narrows the list while one types.
        list: the models; Enter takes the one that is marked.
    """

    chosen = Signal(object)
    left = Signal()

    def __init__(self, look: Look, parent: QWidget) -> None:
        super().__init__(parent)
        self.hide()
        self._look = look
        self._installed: Sequence[Installed] = ()
        self._loaded: Path | None = None
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAccessibleName(tr("Models on this computer"))
        self.line = QLineEdit(self)
        self.line.setProperty("kind", "field")
        self.line.setPlaceholderText(tr("Search models"))
        self.line.setAccessibleName(tr("Search models"))
        self.line.textChanged.connect(self._fill)
        self.line.installEventFilter(self)
        self.list = QListWidget(self)
        self.list.viewport().setAutoFillBackground(False)
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.list.setAccessibleName(tr("Models on this computer"))
        self.list.installEventFilter(self)
        self.list.itemClicked.connect(self._take)
        self.list.itemActivated.connect(self._take)
        column = QVBoxLayout(self)
        column.addWidget(self.line)
        column.addWidget(self.list)

    def show_models(self, installed: Sequence[Installed], loaded: Path | None) -> None:
        """Show these models, the loaded one marked."""
        self._installed, self._loaded = installed, loaded
        self._fill()

    def drop(self, corner: QPoint) -> None:
        """Open at ``corner`` (of the window), with the keyboard in the search."""
        theme = self._look.theme
        self.line.clear()
        self.line.setFont(theme.font(Role.INTERFACE))
        self.line.setFixedHeight(theme.px(32))
        self.list.setFont(theme.font(Role.INTERFACE))
        rows = min(MOST_ROWS, max(1, len(self._installed)))
        self.resize(theme.px(WIDTH), theme.px(ROW * rows + 32 + 34))
        self.move(corner)
        self.show()
        self.raise_()
        self.line.setFocus()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """A surface with an edge."""
        theme = self._look.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.color("line_strong"), 1))
        painter.setBrush(theme.color("surface"))
        box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(box, theme.px(12), theme.px(12))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Esc closes."""
        if event.key() == Qt.Key.Key_Escape:
            self._leave()
        else:
            super().keyPressEvent(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Arrows and Enter in the search are the list's; without the keyboard it closes."""
        if event.type() is QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            event.setAccepted(event.key() == Qt.Key.Key_Escape)
            return event.isAccepted()
        if event.type() is QEvent.Type.FocusOut:
            now = QApplication.focusWidget()
            if now is None or not self.isAncestorOf(now):
                self.hide()
        if watched is self.line and event.type() is QEvent.Type.KeyPress:
            assert isinstance(event, QKeyEvent)
            if event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down):
                step = 1 if event.key() == Qt.Key.Key_Down else -1
                row = self.list.currentRow() + step
                self.list.setCurrentRow(max(0, min(self.list.count() - 1, row)))
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._take(self.list.currentItem())
                return True
        return super().eventFilter(watched, event)

    def _leave(self) -> None:
        self.hide()
        self.left.emit()

    def _fill(self, _words: str = "") -> None:
        wanted = self.line.text().strip().casefold()
        self.list.clear()
        for entry in self._installed:
            if wanted not in entry.name.casefold():
                continue
            item = QListWidgetItem(row_words(entry, loaded=entry.path == self._loaded))
            item.setData(Qt.ItemDataRole.UserRole, str(entry.path))
            item.setSizeHint(QSize(0, self._look.theme.px(ROW)))
            item.setToolTip(str(entry.path))
            if not entry.present:
                item.setFlags(Qt.ItemFlag.NoItemFlags)
            self.list.addItem(item)
        self.list.setCurrentRow(0)

    def _take(self, item: QListWidgetItem | None) -> None:
        if item is not None and item.flags() & Qt.ItemFlag.ItemIsEnabled:
            self.hide()
            self.chosen.emit(Path(item.data(Qt.ItemDataRole.UserRole)))
