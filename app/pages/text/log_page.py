"""The log page: what the window and the engine wrote, narrowed by level and words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtGui import QGuiApplication, QShowEvent
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QPushButton, QWidget

from app.desktop.answers import Background
from app.language.words import tr
from app.look.icons import Icons
from app.look.theme import Look
from app.pages.page import FullPage
from app.pages.settings.controls import ListBox
from app.pages.text.log import LogLine, narrowed, read_lines
from app.pages.text.plain import PlainText
from app.widgets.filter_field import FilterField

KEPT_PARTS = 3


class LogPage(FullPage):
    """Reads the files each time it is shown, off the UI thread.

    Attributes:
        text: the lines that are shown.
        which, least, words: what narrows them.
        copy: puts what is shown on the clipboard.
    """

    def __init__(
        self,
        look: Look,
        icons: Icons,
        folder: Path,
        background: Background,
        parent: QWidget,
    ) -> None:
        super().__init__(look, icons, tr("Log"), parent, fills=True)
        self._folder = folder
        self._background = background
        self._lines: tuple[LogLine, ...] = ()
        self.which = self._box(icons, tr("Whose log"), (tr("Window"), tr("Engine")), self.read)
        names = (tr("All"), tr("Information"), tr("Warnings"), tr("Errors"))
        self.least = self._box(icons, tr("Least level"), names, self._show)
        self.words = FilterField(look, icons, tr("Filter the log"), self)
        self.words.line.textChanged.connect(lambda _text: self._show())
        self.count = QLabel(self)
        self.count.setProperty("tone", "quiet")
        self.copy = self._button(tr("Copy"), self._on_copy)
        again = self._button(tr("Read again"), self.read)
        row = QHBoxLayout()
        for part in (self.which, self.least, self.words, self.count):
            row.addWidget(part)
        row.addStretch(1)
        row.addWidget(again)
        row.addWidget(self.copy)
        self.column.addLayout(row)
        self.text = PlainText(look, tr("Log"), self)
        self.column.addWidget(self.text, 1)
        self.setFocusProxy(self.words)

    def showEvent(self, event: QShowEvent) -> None:
        """What is there now."""
        super().showEvent(event)
        self.read()

    def read(self) -> None:
        """Read the files again."""
        name = ("window.log", "engine.log")[self.which.currentIndex()]
        parts = [self._folder / f"{name}.{part}" for part in range(KEPT_PARTS, 0, -1)]
        files = (*parts, self._folder / name)
        self._background.ask(lambda: read_lines(files), self._on_read)

    def _on_read(self, lines: tuple[LogLine, ...]) -> None:
        self._lines = lines
        self._show()

    def _show(self) -> None:
        least = self.least.currentIndex()
        shown = narrowed(self._lines, least, self.words.line.text())
        self.text.setPlainText("\n".join(line.text for line in shown))
        bar = self.text.verticalScrollBar()
        bar.setValue(bar.maximum())
        self.count.setText(
            tr("{shown} of {all} lines", shown=f"{len(shown):,}", all=f"{len(self._lines):,}")
        )

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text.toPlainText())

    def _box(
        self, icons: Icons, name: str, options: tuple[str, ...], chosen: Callable[[], None]
    ) -> QComboBox:
        box = ListBox(self._look, icons, self)
        box.setAccessibleName(name)
        box.addItems(options)
        box.activated.connect(lambda _place: chosen())
        return box

    def _button(self, text: str, run: Callable[[], None]) -> QPushButton:
        button = QPushButton(text, self)
        button.clicked.connect(run)
        return button
