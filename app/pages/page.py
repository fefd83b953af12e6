"""A page beside the sidebar: a head, and below it one column that scrolls."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from app.look.icons import Icons
from app.look.theme import Look
from app.pages.head import NOTHING, HeadAction, PageHead

MEASURE: Final = 720
HEAD: Final = 52
PADDING: Final = 24


class FullPage(QWidget):
    """Lays its parts out; what stands in the column is put there by who made the page.

    Attributes:
        head: the row over it.
        column: takes widgets, from the top to the bottom.
    """

    def __init__(
        self,
        look: Look,
        icons: Icons,
        title: str,
        parent: QWidget,
        *,
        action: HeadAction = NOTHING,
        fills: bool = False,
    ) -> None:
        """Make an empty page; one that ``fills`` takes the whole width and does not scroll."""
        super().__init__(parent)
        self._look = look
        self._fills = fills
        self.head = PageHead(look, icons, self, title, action)
        self._scroll = QScrollArea(self)
        self._ground = QWidget()
        self.column = QVBoxLayout(self._ground)
        self._scroll.setWidget(self._ground)
        self._scroll.setWidgetResizable(True)
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll.setAccessibleName(title)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.viewport().setAutoFillBackground(False)
        self._ground.setAutoFillBackground(False)
        self.setAccessibleName(title)
        look.changed.connect(self._on_look_changed)
        self._on_look_changed()

    def follow_focus(self, part: QWidget) -> None:
        """Bring ``part`` into view whenever the keyboard reaches it."""
        part.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """What gets the keyboard can be seen."""
        if event.type() is QEvent.Type.FocusIn and isinstance(watched, QWidget):
            self._scroll.ensureWidgetVisible(watched)
        return super().eventFilter(watched, event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """The quiet ground."""
        QPainter(self).fillRect(self.rect(), self._look.theme.color("base"))

    def resizeEvent(self, _event: QResizeEvent) -> None:
        """Head above, the column below it, at most as wide as is good to read."""
        theme = self._look.theme
        head = theme.px(HEAD)
        self.head.setGeometry(0, 0, self.width(), head)
        self._scroll.setGeometry(0, head, self.width(), max(0, self.height() - head))
        side = theme.px(PADDING)
        if not self._fills:
            side = max(side, (self.width() - theme.px(MEASURE)) // 2)
        self.column.setContentsMargins(side, theme.px(18), side, theme.px(PADDING))

    def _on_look_changed(self, _theme: object = None) -> None:
        theme = self._look.theme
        self.column.setSpacing(theme.px(14))
        self._scroll.verticalScrollBar().setSingleStep(theme.px(36))
        self.update()
