"""Shows where a link leads, in full, before anything is opened."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.chat.rendered.setting import UNSEEN
from app.language.words import tr
from app.look.theme import Look, Role

WIDTH: Final = 480
PADDING: Final = 24
OPENED: Final = ("http", "https", "mailto")
"""What the browser or the mail program is given; anything else can only be copied."""
LONGEST: Final = 2000


class LinkDialog(QDialog):
    """Belongs to its window. Nothing is opened unless the person says so.

    Attributes:
        open_button: None for an address that is not opened.
    """

    def __init__(self, look: Look, address: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._address = address
        theme = look.theme
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self.setWindowTitle(tr("Link"))
        self.setProperty("layer", "surface")
        self.setFixedWidth(theme.px(WIDTH))
        title = QLabel(tr("This link leads to"), self)
        title.setFont(theme.font(Role.PAGE))
        shown = QLabel(shown_address(address), self)
        shown.setTextFormat(Qt.TextFormat.PlainText)
        shown.setFont(theme.font(Role.CODE))
        shown.setWordWrap(True)
        shown.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        shown.setAccessibleName(tr("Address"))
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        close = self._button(tr("Close"), theme.px(34))
        close.clicked.connect(self.reject)
        copy = self._button(tr("Copy"), theme.px(34))
        copy.clicked.connect(self._on_copy)
        buttons.addWidget(close)
        buttons.addWidget(copy)
        self.open_button: QPushButton | None = None
        if can_be_opened(address):
            self.open_button = self._button(tr("Open in the browser"), theme.px(34))
            self.open_button.clicked.connect(self._on_open)
            buttons.addWidget(self.open_button)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(*(theme.px(PADDING),) * 4)
        whole.setSpacing(theme.px(16))
        whole.addWidget(title)
        whole.addWidget(shown)
        whole.addLayout(buttons)
        close.setFocus()

    def _button(self, text: str, height: int) -> QPushButton:
        button = QPushButton(text, self)
        button.setFixedHeight(height)
        button.setAutoDefault(False)
        return button

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self._address)
        self.accept()

    def _on_open(self) -> None:
        QDesktopServices.openUrl(QUrl(self._address))
        self.accept()


def can_be_opened(address: str) -> bool:
    """Whether an address is of a kind that may be opened at all."""
    try:
        return urlsplit(address).scheme.lower() in OPENED
    except ValueError:
        return False


def shown_address(address: str) -> str:
    """An address with every sign that cannot be seen as what it is, cut where it is very long."""
    shown = "".join(
        f"[U+{ord(sign):04X}]" if sign in UNSEEN or not sign.isprintable() else sign
        for sign in address[:LONGEST]
    )
    return shown if len(address) <= LONGEST else f"{shown}…"
