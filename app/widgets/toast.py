"""A toast: something is done and can be undone. It floats in the lower end corner of the window.

One at a time; it goes by itself after eight seconds, but not while the pointer or the keyboard is
on it. Owns a timer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, QTimer
from PySide6.QtGui import QEnterEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QPushButton, QWidget

from app.look.icons import Icons
from app.look.theme import Look, Role
from app.widgets.icon_button import IconButton
from app.widgets.shadow import paint_shadow

WIDTH: Final = 352
HEIGHT: Final = 62
FROM_EDGE: Final = 24
MARGIN: Final = 16
STAYS_MS: Final = 8000


@dataclass(frozen=True, slots=True)
class ToastFacts:
    """What was done, to what, and how to undo it; no button where there is no ``action``."""

    icon: str
    line: str
    caption: str
    action: str = ""
    run: Callable[[], None] | None = None


class Toast(QWidget):
    """The toast of a window; hidden while there is nothing to tell."""

    def __init__(self, look: Look, icons: Icons, parent: QWidget) -> None:
        super().__init__(parent)
        self._window = parent
        self._look = look
        self._icons = icons
        self._facts: ToastFacts | None = None
        self.button = QPushButton(self)
        self.button.setProperty("size", "small")
        self.button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.button.clicked.connect(self.undo)
        self._close = IconButton(look, icons, "x", "Close", self)
        self._close.clicked.connect(self.hide)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(STAYS_MS)
        self._timer.timeout.connect(self._on_time_up)
        self.hide()

    def tell(self, facts: ToastFacts) -> None:
        """Show ``facts`` for a while, instead of what is shown."""
        self._facts = facts
        self.button.setText(facts.action)
        self.button.setVisible(bool(facts.action))
        self.setAccessibleName(f"{facts.line}: {facts.caption}")
        self.show()
        self.raise_()
        self.place()
        self._timer.start()
        self.update()

    def undo(self) -> None:
        """Do the action of what is shown; nothing where nothing is."""
        facts, self._facts = self._facts, None
        self._timer.stop()
        self.hide()
        if facts is not None and facts.run is not None:
            facts.run()

    def place(self) -> None:
        """Go to the corner of the parent."""
        theme = self._look.theme
        around = self._window.rect()
        edge = theme.px(FROM_EDGE) - MARGIN
        width = min(theme.px(WIDTH), around.width() - 2 * theme.px(FROM_EDGE)) + 2 * MARGIN
        height = theme.px(HEIGHT) + 2 * MARGIN
        self.setGeometry(
            around.width() - edge - width, around.height() - edge - height, width, height
        )
        self.button.setFixedHeight(theme.px(30))
        self.button.adjustSize()
        inner = width - MARGIN - theme.px(8)
        middle = height // 2
        self._close.move(inner - self._close.width(), middle - self._close.height() // 2)
        self.button.move(
            self._close.x() - theme.px(8) - self.button.width(), middle - self.button.height() // 2
        )

    def enterEvent(self, _event: QEnterEvent) -> None:
        """Stay under the pointer."""
        self._timer.stop()

    def leaveEvent(self, _event: QEvent) -> None:
        """The time begins again."""
        if self.isVisible():
            self._timer.start()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Shadow, card, icon, two lines."""
        facts = self._facts
        if facts is None:
            return
        theme = self._look.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(MARGIN, MARGIN, -MARGIN, -MARGIN)
        radius = theme.px(10)
        paint_shadow(painter, box, radius, theme)
        painter.setBrush(theme.color("surface"))
        painter.setPen(QPen(theme.color("line_strong"), 1))
        painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
        size = theme.px(18)
        icon = self._icons.pixmap(facts.icon, size, theme.tokens.text2, self.devicePixelRatioF())
        painter.drawPixmap(QPointF(box.left() + theme.px(14), box.center().y() - size / 2), icon)
        left = box.left() + theme.px(45)
        beside = self.button if self.button.isVisibleTo(self) else self._close
        room = beside.x() - theme.px(8) - left
        top = box.center().y() - theme.line_px(Role.STRONG)
        for role, token, text in (
            (Role.STRONG, "text", facts.line),
            (Role.CAPTION, "text2", facts.caption),
        ):
            painter.setFont(theme.font(role))
            painter.setPen(theme.color(token))
            shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, int(room))
            line = QRectF(left, top, room, theme.line_px(role))
            painter.drawText(line, Qt.AlignmentFlag.AlignVCenter, shown)
            top += theme.line_px(role)

    def _on_time_up(self) -> None:
        if self.button.hasFocus() or self._close.hasFocus():
            self._timer.start()
        else:
            self._facts = None
            self.hide()
