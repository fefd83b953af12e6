"""The row over a page: its name, what can be done there, and buttons of the closed sidebar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QIcon, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QPushButton, QWidget

from app.language.words import tr
from app.look.icons import Icons
from app.look.theme import Look, Role
from app.widgets.icon_button import IconButton

SIDE: Final = 24
BUTTON_HEIGHT: Final = 34


@dataclass(frozen=True, slots=True)
class HeadAction:
    """What the button at the end says; ``hint`` is its tooltip."""

    icon: str
    text: str
    hint: str = ""


NOTHING: Final = HeadAction("more", "")


class PageHead(QWidget):
    """Emits ``sidebar_wanted`` and ``chat_wanted`` from the sidebar's buttons.

    Attributes:
        action: the button at the end, there while something is offered.
    """

    sidebar_wanted = Signal()
    chat_wanted = Signal()

    def __init__(
        self,
        look: Look,
        icons: Icons,
        parent: QWidget,
        title: str,
        action: HeadAction = NOTHING,
    ) -> None:
        super().__init__(parent)
        self._look = look
        self._icons = icons
        self._title = title
        self._facts = action
        self._sidebar = IconButton(look, icons, "sidebar", tr("Show the sidebar (Ctrl+B)"), self)
        self._new_chat = IconButton(look, icons, "edit", tr("New chat (Ctrl+N)"), self)
        self._sidebar.clicked.connect(self.sidebar_wanted)
        self._new_chat.clicked.connect(self.chat_wanted)
        self.action = self._button(action)
        self.show_sidebar_buttons(shown=False)
        look.changed.connect(self._on_look_changed)
        self._on_look_changed()

    def show_sidebar_buttons(self, *, shown: bool) -> None:
        """Show the two buttons that the closed sidebar would have."""
        self._sidebar.setVisible(shown)
        self._new_chat.setVisible(shown)
        self._arrange()

    def offer(self, description: str) -> None:
        """Show the button, for what ``description`` names; hide it where that is empty."""
        self.action.setVisible(bool(description))
        self.action.setAccessibleDescription(description)
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
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, self._title)

    def _button(self, action: HeadAction) -> QPushButton:
        # A blank before the word keeps it apart from the icon.
        button = QPushButton(f" {action.text}", self)
        button.setAccessibleName(action.text)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.setToolTip(action.hint)
        button.hide()
        return button

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
        self.action.resize(self.action.sizeHint().width(), tall)
        left = self.width() - theme.px(SIDE) - self.action.width()
        self.action.move(left, (self.height() - 1 - tall) // 2)

    def _on_look_changed(self, _theme: object = None) -> None:
        theme = self._look.theme
        size = theme.px(18)
        icon = self._icons.pixmap(
            self._facts.icon, size, theme.tokens.text, self.devicePixelRatioF()
        )
        self.action.setIcon(QIcon(icon))
        self.action.setIconSize(QSize(size, size))
        self.action.setFont(theme.font(Role.STRONG))
        self._arrange()
        self.update()
