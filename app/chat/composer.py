"""Where a message is written: a field in a painted frame, a line of its cost, one button.

Knows nothing of conversations: it emits ``submitted`` with the text and ``stopped``. Enter, or
Ctrl+Enter by choice, sends unless an input method is composing; while a reply is written it keeps
the text until that ends.
"""

from __future__ import annotations

from typing import Final, Literal

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import (
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QWidget

from app.chat.options.cost import Cost, Fit, cost_text
from app.chat.options.think_button import ThinkButton
from app.language.words import tr
from app.look.icons import Icons
from app.look.theme import Look, Role
from app.widgets.message_field import MessageField
from app.widgets.send_button import SendButton

PADDING: Final = 12
ROW_GAP: Final = 8
FOOT: Final = 8
RADIUS: Final = 14
LOOKED_AT: Final = 10_000
"""A longer text is not looked through at each key."""


def queued_hint() -> str:
    """What is said of a message that waits for the reply before it."""
    return tr("sends when this reply ends")


class Composer(QWidget):
    """The composer. ``height_wanted`` tells the page that its height should be asked again."""

    submitted = Signal(str)
    stopped = Signal()
    height_wanted = Signal()

    def __init__(self, look: Look, icons: Icons, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._accepting = False
        self._answering = False
        self._queued = False
        self._hint = ""
        self._tallest = 0
        self._cost: Cost | None = None
        self.think = ThinkButton(look, icons, self)
        self.think.hide()
        self.field = MessageField(self)
        self.button = SendButton(look, icons, self)
        self.field.entered.connect(self._on_entered)
        self.field.textChanged.connect(self._on_text_changed)
        self.button.clicked.connect(self._on_clicked)
        self.setFocusProxy(self.field)
        look.changed.connect(self._on_look_changed)
        self._on_look_changed()

    # What the page tells -------------------------------------------------------------------------

    def accept(self) -> None:
        """There is a chat to send to; before that, what is typed waits in the field."""
        self._accepting = True
        self._refresh()

    def set_answering(self, answering: bool) -> None:
        """A reply is being written, or has ended; a kept message then goes out."""
        if answering == self._answering:
            return
        self._answering = answering
        self.button.show_stop(stops=answering)
        self._refresh()
        if not answering and self._queued:
            self._submit()

    def forget_queue(self) -> None:
        """Keep the text but do not send it by itself."""
        self._queued = False
        self._refresh()

    def send_with(self, key: Literal["enter", "ctrl+enter"]) -> None:
        """Which key sends."""
        self.field.send_with(key)
        self.button.name_key(key)

    def set_placeholder(self, text: str) -> None:
        """What the empty field says."""
        self.field.setPlaceholderText(text)

    def set_hint(self, text: str) -> None:
        """A few words beside the button."""
        self._hint = text
        self.update()

    def show_cost(self, cost: Cost | None) -> None:
        """What the message takes; one that is too long is not sent."""
        self._cost = cost
        self._refresh()

    def show_thinking(self, thinking: bool | None, *, can_think: bool) -> None:
        """Whether the model thinks, where it can."""
        self.think.show_thinking(thinking)
        self.think.setVisible(can_think)
        self.update()

    def set_draft(self, text: str) -> None:
        """Put ``text`` into the field as a draft."""
        self.field.setPlainText(text)
        self.field.moveCursor(self.field.textCursor().MoveOperation.End)

    def draft(self) -> str:
        """What is written and not sent."""
        return self.field.exact_text()

    def set_tallest(self, height: int) -> None:
        """The most height the page gives; beyond it the field scrolls."""
        self._tallest = height

    def wanted_height(self) -> int:
        """The height that shows the whole text, up to the tallest."""
        theme = self._look.theme
        lines = self.field.document().size().height()
        line = self.field.fontMetrics().lineSpacing()
        text = max(theme.line_px(Role.BODY), round(lines * line) + self._lead())
        around = theme.px(PADDING + ROW_GAP + FOOT) + self.button.height() + 1
        return min(text + around, max(self._tallest, theme.line_px(Role.BODY) + around))

    # Painting and places -------------------------------------------------------------------------

    def resizeEvent(self, _event: QResizeEvent) -> None:
        """Field above, button in the lower end corner."""
        theme = self._look.theme
        pad, foot = theme.px(PADDING), theme.px(FOOT)
        side = self.button.height()
        field_height = self.height() - pad - theme.px(ROW_GAP) - side - foot - 1
        self.field.setGeometry(pad, pad + self._lead() // 2, self.width() - 2 * pad, field_height)
        place = self.button.height() - self.think.height()
        y = self.height() - foot - 1 - side + place // 2
        self.think.move(pad - theme.px(8), y)
        self.button.move(self.width() - foot - 1 - side, self.height() - foot - 1 - side)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """The frame and the hint."""
        theme = self._look.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.color("control"), 1))
        painter.setBrush(theme.color("surface"))
        radius = theme.px(RADIUS)
        frame = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(frame, radius, radius)
        hint = self.shown_hint()
        if hint:
            painter.setFont(theme.font(Role.CAPTION))
            painter.setPen(theme.color("danger" if self._is_too_long() else "text2"))
            right = self.button.x() - theme.px(16)
            left = theme.px(PADDING)
            if self.think.isVisibleTo(self):
                left = self.think.geometry().right() + theme.px(8)
            box = QRectF(left, self.button.y(), right - left, self.button.height())
            shown = painter.fontMetrics().elidedText(
                hint, Qt.TextElideMode.ElideRight, int(box.width())
            )
            painter.drawText(
                box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, shown
            )

    def shown_hint(self) -> str:
        """The words beside the button."""
        if self._queued:
            return queued_hint()
        if self._cost is not None and (self._is_too_long() or not self._hint):
            return cost_text(self._cost)
        return self._hint

    def _lead(self) -> int:
        """What a line of the reference is taller than one of the field."""
        theme = self._look.theme
        return max(0, theme.line_px(Role.BODY) - self.field.fontMetrics().lineSpacing())

    # Sending -------------------------------------------------------------------------------------

    def _on_entered(self) -> None:
        if not self._accepting or not self._has_words() or self._is_too_long():
            return
        if self._answering:
            self._queued = True
            self._refresh()
        else:
            self._submit()

    def _on_clicked(self) -> None:
        if self._answering:
            self.stopped.emit()
        else:
            self._on_entered()

    def _submit(self) -> None:
        text = self.field.exact_text()
        self._queued = False
        if not text.strip():
            return
        self.submitted.emit(text)
        self.field.clear()

    def _has_words(self) -> bool:
        long = self.field.document().characterCount() > LOOKED_AT
        return long or bool(self.field.exact_text().strip())

    def _is_too_long(self) -> bool:
        return self._cost is not None and self._cost.fit is Fit.TOO_LONG

    def _on_text_changed(self) -> None:
        if self._queued and not self._has_words():
            self._queued = False
        self._refresh()
        self.height_wanted.emit()

    def _refresh(self) -> None:
        sends = self._has_words() and not self._is_too_long()
        self.button.setEnabled(self._accepting and (self._answering or sends))
        self.update()

    def _on_look_changed(self, _theme: object = None) -> None:
        theme = self._look.theme
        self.field.setFont(theme.font(Role.BODY))
        palette = self.field.palette()
        palette.setColor(QPalette.ColorRole.Base, theme.color("surface"))
        palette.setColor(QPalette.ColorRole.Text, theme.color("text"))
        palette.setColor(QPalette.ColorRole.PlaceholderText, theme.color("text2"))
        self.field.setPalette(palette)
        self._refresh()
        self.height_wanted.emit()
