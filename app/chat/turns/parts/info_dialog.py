"""How a reply came to be: a list of facts that can be read, marked and copied.

Belongs to its window, holds it up for as long as it is open, and closes with it.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QObject, QRectF, Qt
from PySide6.QtGui import QGuiApplication, QPainter
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.chat.turns.info import InfoLine, info_text
from app.language.words import tr
from app.look.theme import Look, Role, Theme

WIDTH: Final = 480
TALLEST: Final = 400
PADDING: Final = 24
BUTTON_HEIGHT: Final = 34
RADIUS: Final = 10


class SunkenArea(QScrollArea):
    """Scrolls on a sunken ground with round corners."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.viewport().setAutoFillBackground(False)
        self.viewport().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The viewport paints the ground; what scrolls has none."""
        if watched is self.viewport() and event.type() is QEvent.Type.Paint:
            painter = QPainter(self.viewport())
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self._theme.color("sunken"))
            radius = self._theme.px(RADIUS)
            painter.drawRoundedRect(QRectF(self.viewport().rect()), radius, radius)
        return super().eventFilter(watched, event)


class InfoDialog(QDialog):
    """The facts of one reply.

    Attributes:
        copy_button: puts them on the clipboard.
        close_button: closes, and has the focus.
    """

    def __init__(self, look: Look, lines: tuple[InfoLine, ...], parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme = look.theme
        self._lines = lines
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self.setWindowTitle(tr("About this reply"))
        self.setProperty("layer", "surface")
        self.setFixedWidth(theme.px(WIDTH))
        title = QLabel(tr("About this reply"), self)
        title.setFont(theme.font(Role.PAGE))
        self.copy_button = self._button(tr("Copy"))
        self.close_button = self._button(tr("Close"))
        self.copy_button.clicked.connect(self._on_copy)
        self.close_button.clicked.connect(self.reject)
        buttons = QHBoxLayout()
        buttons.setSpacing(theme.px(8))
        buttons.addStretch(1)
        buttons.addWidget(self.copy_button)
        buttons.addWidget(self.close_button)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(*(theme.px(PADDING),) * 4)
        whole.setSpacing(theme.px(16))
        whole.addWidget(title)
        whole.addWidget(self._facts())
        whole.addLayout(buttons)
        self.close_button.setDefault(True)
        self.close_button.setFocus()

    def _facts(self) -> SunkenArea:
        """Names at the left, values beside them."""
        theme = self._theme
        inside = QWidget(self)
        grid = QGridLayout(inside)
        grid.setContentsMargins(*(theme.px(14),) * 4)
        grid.setHorizontalSpacing(theme.px(16))
        grid.setVerticalSpacing(theme.px(6))
        grid.setColumnStretch(1, 1)
        for row, line in enumerate(self._lines):
            name, value = QLabel(line.name, inside), QLabel(line.value, inside)
            name.setProperty("tone", "quiet")
            for label in (name, value):
                label.setFont(theme.font(Role.INTERFACE))
            value.setTextFormat(Qt.TextFormat.PlainText)
            value.setWordWrap(True)
            value.setTextInteractionFlags(
                Qt.TextInteractionFlag.TextSelectableByMouse
                | Qt.TextInteractionFlag.TextSelectableByKeyboard
            )
            value.setAccessibleName(f"{line.name}: {line.value}")
            grid.addWidget(name, row, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(value, row, 1, Qt.AlignmentFlag.AlignTop)
        area = SunkenArea(theme, self)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidgetResizable(True)
        area.setWidget(inside)
        inside.setAutoFillBackground(False)
        area.setAccessibleName(tr("About this reply"))
        wide = theme.px(WIDTH) - 2 * theme.px(PADDING)
        tall = max(inside.heightForWidth(wide), inside.sizeHint().height())
        area.setFixedHeight(min(tall, theme.px(TALLEST)))
        return area

    def _button(self, text: str) -> QPushButton:
        button = QPushButton(text, self)
        button.setProperty("kind", "tinted")
        button.setFixedHeight(self._theme.px(BUTTON_HEIGHT))
        button.setAutoDefault(False)
        return button

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(info_text(self._lines))
