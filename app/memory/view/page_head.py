"""The row over the page: its name, what can be done, the sidebar's buttons while that is shut."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QIcon, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QPushButton, QWidget

from app.look.icons import Icons
from app.look.theme import Look, Role
from app.widgets.icon_button import IconButton

SIDE: Final = 24
BUTTON_HEIGHT: Final = 34


class PageHead(QWidget):
    """Emits ``sidebar_wanted``, ``chat_wanted`` and ``unload_wanted`` from its buttons.

    Attributes:
        unload: gives the model's memory back; only there while a model is loaded.
    """

    sidebar_wanted = Signal()
    chat_wanted = Signal()
    unload_wanted = Signal()

    def __init__(self, look: Look, icons: Icons, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._icons = icons
        self._sidebar = IconButton(look, icons, "sidebar", "Show the sidebar (Ctrl+B)", self)
        self._new_chat = IconButton(look, icons, "edit", "New chat (Ctrl+N)", self)
        self._sidebar.clicked.connect(self.sidebar_wanted)
        self._new_chat.clicked.connect(self.chat_wanted)
        # A blank before the word keeps it apart from the icon.
        self.unload = QPushButton(" Unload the model", self)
        self.unload.setAccessibleName("Unload the model")
        self.unload.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.unload.setToolTip("Gives its memory back; chats stay")
        self.unload.clicked.connect(self.unload_wanted)
        self.unload.hide()
        self.show_sidebar_buttons(shown=False)
        look.changed.connect(self._on_look_changed)
        self._on_look_changed()

    def show_sidebar_buttons(self, *, shown: bool) -> None:
        """Show the two buttons that the closed sidebar would have."""
        self._sidebar.setVisible(shown)
        self._new_chat.setVisible(shown)
        self._arrange()

    def show_unload(self, name: str) -> None:
        """Offer to unload the model ``name``; nothing is offered without one."""
        self.unload.setVisible(bool(name))
        self.unload.setAccessibleDescription(name)
        self._arrange()

    def resizeEvent(self, _event: QResizeEvent) -> None:
        """Children to their places."""
        self._arrange()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Ground, bottom line, name."""
        theme = self._look.theme
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.color("base"))
        painter.fillRect(QRectF(0, self.height() - 1, self.width(), 1), theme.color("line"))
        painter.setFont(theme.font(Role.PAGE))
        painter.setPen(theme.color("text"))
        box = QRectF(self._left(), 0, self.width(), self.height() - 1)
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, "Memory")

    def _left(self) -> int:
        theme = self._look.theme
        if self._sidebar.isVisibleTo(self):
            return theme.px(12 + 8 + 12) + 2 * self._sidebar.width()
        return theme.px(SIDE)

    def _arrange(self) -> None:
        theme = self._look.theme
        y = (self.height() - 1 - self._sidebar.height()) // 2
        self._sidebar.move(theme.px(12), y)
        self._new_chat.move(theme.px(12 + 8) + self._sidebar.width(), y)
        tall = theme.px(BUTTON_HEIGHT)
        self.unload.resize(self.unload.sizeHint().width(), tall)
        left = self.width() - theme.px(SIDE) - self.unload.width()
        self.unload.move(left, (self.height() - 1 - tall) // 2)

    def _on_look_changed(self, _theme: object = None) -> None:
        theme = self._look.theme
        size = theme.px(18)
        ratio = self.devicePixelRatioF()
        icon = self._icons.pixmap("eject", size, theme.tokens.text, ratio)
        self.unload.setIcon(QIcon(icon))
        self.unload.setIconSize(QSize(size, size))
        self.unload.setFont(theme.font(Role.STRONG))
        self._arrange()
        self.update()
