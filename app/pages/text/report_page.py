"""The doctor's page: a report on this machine, to read and to copy."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtGui import QGuiApplication, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QWidget

from app.desktop.answers import Background
from app.errors import AppError
from app.language.words import tr
from app.look.icons import Icons
from app.look.theme import Look
from app.pages.page import FullPage
from app.pages.text.plain import PlainText


class ReportPage(FullPage):
    """Looks at the machine each time it is shown, off the UI thread.

    Attributes:
        text: the report.
        copy: puts it on the clipboard.
    """

    def __init__(
        self,
        look: Look,
        icons: Icons,
        make: Callable[[], str],
        background: Background,
        parent: QWidget,
    ) -> None:
        super().__init__(look, icons, tr("This computer"), parent, fills=True)
        self._make = make
        self._background = background
        self._words = QLabel(tr("Your name and home folder are taken out."), self)
        self._words.setProperty("tone", "quiet")
        self.copy = QPushButton(tr("Copy"), self)
        self.copy.clicked.connect(self._on_copy)
        row = QHBoxLayout()
        row.addWidget(self._words, 1)
        row.addWidget(self.copy)
        self.column.addLayout(row)
        self.text = PlainText(look, tr("This computer"), self)
        self.column.addWidget(self.text, 1)
        self.setFocusProxy(self.text)

    def showEvent(self, event: QShowEvent) -> None:
        """Look again."""
        super().showEvent(event)
        self.copy.setEnabled(False)
        self.text.setPlainText(tr("Looking…"))
        self._background.ask(self._make, self._on_made, self._on_failed)

    def _on_made(self, text: str) -> None:
        self.text.setPlainText(text)
        self.copy.setEnabled(True)

    def _on_failed(self, error: AppError) -> None:
        self.text.setPlainText(error.sentence)

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text.toPlainText())
