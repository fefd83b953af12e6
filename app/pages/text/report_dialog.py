"""Shows a report before anybody gives it away: read it, copy it, save it, or leave it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.desktop.answers import Background
from app.files import write_atomically
from app.language.words import tr
from app.look.theme import Look
from app.pages.text.plain import PlainText

SIZE: Final = (640, 480)
PADDING: Final = 24


class ReportDialog(QDialog):
    """Belongs to its window and closes with it.

    Attributes:
        text: the report; what is deleted in it is neither copied nor saved.
        state: what came of saving.
    """

    def __init__(self, look: Look, report: str, background: Background, parent: QWidget) -> None:
        super().__init__(parent)
        self._background = background
        theme = look.theme
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self.setWindowTitle(tr("Report"))
        self.setProperty("layer", "surface")
        self.resize(theme.px(SIZE[0]), theme.px(SIZE[1]))
        words = QLabel(tr("Nothing is sent. Take out what you do not want to show, and copy it."))
        words.setWordWrap(True)
        words.setProperty("tone", "quiet")
        self.text = PlainText(look, tr("Report"), self)
        self.text.setReadOnly(False)
        self.text.setPlainText(report)
        self.state = QLabel(self)
        self.state.setProperty("tone", "quiet")
        close, save = QPushButton(tr("Close"), self), QPushButton(tr("Save…"), self)
        copy = QPushButton(tr("Copy"), self)
        copy.setProperty("kind", "primary")
        close.clicked.connect(self.reject)
        save.clicked.connect(self._on_save)
        copy.clicked.connect(self._on_copy)
        buttons = QHBoxLayout()
        buttons.addWidget(self.state, 1)
        for button in (close, save, copy):
            button.setFixedHeight(theme.px(34))
            button.setAutoDefault(False)
            buttons.addWidget(button)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(*(theme.px(PADDING),) * 4)
        whole.addWidget(words)
        whole.addWidget(self.text, 1)
        whole.addLayout(buttons)
        close.setFocus()

    def save(self, file: Path) -> None:
        """Write the report to ``file``."""
        content = self.text.toPlainText().encode("utf-8")
        self._background.ask(lambda: _written(file, content), self.state.setText)

    def _on_save(self) -> None:
        wanted = str(Path.home() / "hearth-report.txt")
        name, _ = QFileDialog.getSaveFileName(self, tr("Save the report"), wanted)
        if name:
            self.save(Path(name))

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text.toPlainText())
        self.state.setText(tr("Copied"))


def _written(file: Path, content: bytes) -> str:
    """Write a file; what came of it, in words."""
    try:
        write_atomically(file, content)
    except OSError as error:
        return tr("Not saved: {why}", why=error.strerror or str(error))
    return tr("Saved")
