"""Whether the model thinks before it replies: as it likes, yes, or no; chosen from a small menu."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QMenu, QWidget

from app.language.words import tr
from app.look.icons import Icons
from app.look.theme import Look, Role

HEIGHT: Final = 28
CHOICES: Final = (None, True, False)


def think_words(thinking: bool | None) -> str:
    """How the button calls a choice."""
    words = {None: tr("Think: auto"), True: tr("Think: on"), False: tr("Think: off")}
    return words[thinking]


class ThinkButton(QAbstractButton):
    """Bulb, words, chevron. Emits ``chosen`` with True, False or None."""

    chosen = Signal(object)

    def __init__(self, look: Look, icons: Icons, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._icons = icons
        self._thinking: bool | None = None
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setToolTip(tr("Whether the model thinks before it replies"))
        self.clicked.connect(self._on_clicked)
        look.changed.connect(self._on_look_changed)
        self.show_thinking(None)

    @property
    def thinking(self) -> bool | None:
        """What is shown."""
        return self._thinking

    def show_thinking(self, thinking: bool | None) -> None:
        """Show a choice."""
        self._thinking = thinking
        self.setText(think_words(thinking))
        self.setAccessibleName(self.text())
        self._on_look_changed()

    def menu(self) -> QMenu:
        """A menu of the choices, the one that holds checked; the caller deletes it."""
        menu = QMenu(self)
        for choice in CHOICES:
            action = menu.addAction(think_words(choice))
            action.setCheckable(True)
            action.setChecked(choice is self._thinking)
            action.triggered.connect(lambda _on=False, what=choice: self._choose(what))
        return menu

    def sizeHint(self) -> QSize:
        """Icon, words and chevron in a row."""
        theme = self._look.theme
        words = QFontMetricsF(theme.font(Role.STRONG)).horizontalAdvance(self.text())
        return QSize(round(words) + theme.px(8 + 16 + 8 + 8 + 16 + 4), theme.px(HEIGHT))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Flat; hover and press are fills; the accent where thinking is on."""
        theme = self._look.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box, radius = QRectF(self.rect()), theme.px(7)
        painter.setPen(Qt.PenStyle.NoPen)
        if self.isDown() or self.underMouse():
            painter.setBrush(theme.color("pressed" if self.isDown() else "hover"))
            painter.drawRoundedRect(box, radius, radius)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(theme.color("focus"), 2))
            painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), radius, radius)
        tone = theme.tokens.accent if self._thinking else theme.tokens.text2
        size, ratio = theme.px(16), self.devicePixelRatioF()
        y = (self.height() - size) / 2
        painter.drawPixmap(QPointF(theme.px(8), y), self._icons.pixmap("bulb", size, tone, ratio))
        chevron = self._icons.pixmap("chevd", size, theme.tokens.text2, ratio)
        painter.drawPixmap(QPointF(self.width() - size - theme.px(4), y), chevron)
        painter.setFont(theme.font(Role.STRONG))
        painter.setPen(theme.color("accent" if self._thinking else "text2"))
        words = QRectF(theme.px(32), 0, self.width(), self.height())
        painter.drawText(words, Qt.AlignmentFlag.AlignVCenter, self.text())

    def _on_clicked(self) -> None:
        menu = self.menu()
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        above = self.mapToGlobal(QPoint(0, -menu.sizeHint().height()))
        menu.popup(above)

    def _choose(self, thinking: bool | None) -> None:
        self.show_thinking(thinking)
        self.chosen.emit(thinking)

    def _on_look_changed(self, _theme: object = None) -> None:
        self.setFixedSize(self.sizeHint())
        self.update()
