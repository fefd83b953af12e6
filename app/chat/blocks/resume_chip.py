"""The chip at the end of a status line: how the prompt of a reply was resumed, and from where."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.chat.kept.words import ResumeWords
from app.look.theme import Look, Role
from app.widgets.state_dot import paint_state_dot

HEIGHT: Final = 24
RADIUS: Final = 6
SIDE: Final = 10
MARK: Final = 12
GAP: Final = 6


class ResumeChip(QAbstractButton):
    """Tinted where a kept state helped, quiet where most was read again; a press tells more."""

    def __init__(self, look: Look, words: ResumeWords, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self.words = words
        self.setText(words.text)
        self.setAccessibleName(words.text)
        self.setAccessibleDescription(words.sentence)
        self.setToolTip(words.sentence)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def sizeHint(self) -> QSize:
        """As wide as its words and the dot before them."""
        theme = self._look.theme
        wide = QFontMetricsF(theme.font(Role.CAPTION)).horizontalAdvance(self.words.text)
        mark = theme.px(MARK + GAP) if self.words.tier is not None else 0
        return QSize(int(wide) + 1 + mark + 2 * theme.px(SIDE), theme.px(HEIGHT))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Ground, dot, words."""
        theme = self._look.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect())
        helped = self.words.tier is not None
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("accent_soft" if helped else "button"))
        painter.drawRoundedRect(box, theme.px(RADIUS), theme.px(RADIUS))
        left = theme.px(SIDE)
        if self.words.tier is not None:
            size = theme.px(MARK)
            mark = QRectF(left, (box.height() - size) / 2, size, size)
            paint_state_dot(painter, mark, self.words.tier, theme)
            left += theme.px(MARK + GAP)
        painter.setFont(theme.font(Role.CAPTION))
        painter.setPen(theme.color("on_accent_soft" if helped else "text2"))
        room = box.adjusted(left, 0, -theme.px(SIDE), 0)
        shown = painter.fontMetrics().elidedText(
            self.words.text, Qt.TextElideMode.ElideRight, int(room.width()) + 1
        )
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, shown)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(theme.color("focus"), 2))
            painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), theme.px(RADIUS), theme.px(RADIUS))
