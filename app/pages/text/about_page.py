"""The page about Hearth: what it is, which version, and the licences of what it is made with."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import QSize
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.desktop.answers import Background
from app.errors import AppError
from app.language.words import tr
from app.look.icons import Icons
from app.look.theme import Look, Role
from app.machine.version import VERSION
from app.pages.page import FullPage
from app.pages.text.plain import PlainText

ROOT: Final = Path(__file__).resolve().parents[3]
MARK: Final = 64


class AboutPage(FullPage):
    """Reads the licences when it is first shown, off the UI thread.

    Attributes:
        licences: their text.
    """

    def __init__(
        self,
        look: Look,
        icons: Icons,
        background: Background,
        parent: QWidget,
        root: Path = ROOT,
    ) -> None:
        super().__init__(look, icons, tr("About Hearth"), parent, fills=True)
        self._background = background
        self._root = root
        self._mark = QLabel(self)
        size = look.theme.px(MARK)
        self._mark.setPixmap(icons.application().pixmap(QSize(size, size)))
        self._name = QLabel(tr("Hearth {version}", version=VERSION), self)
        self._words = QLabel(
            tr("A good assistant on your own computer. Apache License 2.0; parts of others below."),
            self,
        )
        self._words.setProperty("tone", "quiet")
        self._words.setWordWrap(True)
        words = QVBoxLayout()
        words.addStretch(1)
        words.addWidget(self._name)
        words.addWidget(self._words)
        words.addStretch(1)
        row = QHBoxLayout()
        row.addWidget(self._mark)
        row.addLayout(words, 1)
        self.column.addLayout(row)
        self.licences = PlainText(look, tr("Licences"), self, wraps=True)
        self.column.addWidget(self.licences, 1)
        self.setFocusProxy(self.licences)
        look.changed.connect(self._restyle)
        self._restyle()

    def showEvent(self, event: QShowEvent) -> None:
        """The licences, once."""
        super().showEvent(event)
        if not self.licences.toPlainText():
            self._background.ask(self._read, self.licences.setPlainText)

    def _read(self) -> str:
        try:
            parts = [
                (self._root / name).read_text("utf-8")
                for name in ("THIRD_PARTY_NOTICES.md", "LICENSE")
            ]
        except OSError as error:
            raise AppError(f"The licences cannot be read: {error.strerror or error}.") from error
        return "\n\n".join(parts)

    def _restyle(self, _theme: object = None) -> None:
        self._name.setFont(self._look.theme.font(Role.HEADING))
