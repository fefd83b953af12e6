"""The top bar: which model is there or how far it is loaded, the chat's title, the context in use.

Shows what it is told; knows neither engine nor store.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QWidget

from app.language.words import tr
from app.library.loaded import ModelPhase, ModelState
from app.look.icons import Icons
from app.look.theme import Look, Role
from app.panels.models.name_button import NameButton
from app.widgets.bar import FractionBar
from app.widgets.icon_button import IconButton

HEIGHT: Final = 52
SIDE: Final = 24
DOT: Final = 10
BAR_WIDTH: Final = 64
BAR_HEIGHT: Final = 6
LOAD_BAR_HEIGHT: Final = 3


def phase_words(phase: ModelPhase) -> str:
    """What is said of a model that is not ready."""
    words = {
        ModelPhase.STARTING: tr("engine starting"),
        ModelPhase.LOADING: tr("loading"),
        ModelPhase.FAILED: tr("not loaded"),
        ModelPhase.UNLOADED: tr("not loaded"),
    }
    return words.get(phase, "")


class ModelBar(QWidget):
    """One row over the page. Emits ``sidebar_wanted`` and ``chat_wanted`` from two buttons,
    ``picker_wanted`` from the model's name, ``eject_wanted`` from the button beside it,
    ``options_wanted`` from the one at the end.

    The first two buttons are shown only while the sidebar is closed.
    """

    sidebar_wanted = Signal()
    chat_wanted = Signal()
    picker_wanted = Signal()
    eject_wanted = Signal()
    options_wanted = Signal()

    def __init__(self, look: Look, icons: Icons, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._state = ModelState(ModelPhase.ABSENT)
        self._title = ""
        self._used = self._limit = 0
        self._sidebar = IconButton(look, icons, "sidebar", tr("Show the sidebar (Ctrl+B)"), self)
        self._new_chat = IconButton(look, icons, "edit", tr("New chat (Ctrl+N)"), self)
        self._sidebar.clicked.connect(self.sidebar_wanted)
        self._new_chat.clicked.connect(self.chat_wanted)
        self.name = NameButton(look, icons, self)
        self.eject = IconButton(look, icons, "eject", tr("Give the memory back"), self, side=28)
        self.name.clicked.connect(self.picker_wanted)
        self.options = IconButton(
            look, icons, "panel", tr("Options of this chat (Ctrl+Alt+P)"), self
        )
        self.options.clicked.connect(self.options_wanted)
        self.eject.clicked.connect(self.eject_wanted)
        self._load_bar = FractionBar(look, tr("Loading the model"), self)
        self._context_bar = FractionBar(look, tr("Context in use"), self, warns=True)
        self.show_sidebar_buttons(shown=False)
        look.changed.connect(self._on_look_changed)
        self._on_look_changed()

    def sizeHint(self) -> QSize:
        """The fixed height."""
        return QSize(400, self._look.theme.px(HEIGHT))

    def show_model(self, state: ModelState) -> None:
        """Show where the model stands."""
        self._state = state
        self.setAccessibleName(f"Model: {self._name()} {self._words()}".strip())
        self._arrange()

    def show_title(self, title: str) -> None:
        """Show the chat's title."""
        self._title = title
        self.update()

    def show_context(self, used_tokens: int, limit_tokens: int) -> None:
        """Show how much of the context a chat takes; nothing while ``limit_tokens`` is 0."""
        self._used, self._limit = used_tokens, limit_tokens
        self._arrange()

    def show_sidebar_buttons(self, *, shown: bool) -> None:
        """Show the two buttons that the closed sidebar would have."""
        self._sidebar.setVisible(shown)
        self._new_chat.setVisible(shown)
        self._arrange()

    def resizeEvent(self, _event: QResizeEvent) -> None:
        """Children to their places."""
        self._arrange()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Ground, bottom line, dot, names, title, number."""
        theme = self._look.theme
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.color("base"))
        painter.fillRect(QRectF(0, self.height() - 1, self.width(), 1), theme.color("line"))
        self._paint_dot(painter)
        x = self._paint_text(painter, self._text_left(), Role.TITLE, "text", self._name())
        words = self._words()
        if words:
            self._paint_text(painter, x + theme.px(8), Role.TITLE_PLAIN, "text2", words)
        last = self.eject if self.eject.isVisibleTo(self) else self.name
        x = last.geometry().right()
        end = self._context_left() if self._limit else self._end()
        self._paint_title(painter, x + theme.px(24), end - theme.px(24))
        if self._limit:
            left = self._context_left() + theme.px(BAR_WIDTH + 8)
            self._paint_text(painter, left, Role.CAPTION, "text2", self._number())

    # Pieces ------------------------------------------------------------------------------------

    def _paint_dot(self, painter: QPainter) -> None:
        theme = self._look.theme
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        size = theme.px(DOT)
        box = QRectF(self._left(), (self.height() - size) / 2, size, size)
        if self._state.phase is ModelPhase.READY:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("hot"))
            painter.drawEllipse(box.adjusted(0.5, 0.5, -0.5, -0.5))
        else:
            tone = "danger" if self._state.phase is ModelPhase.FAILED else "disk"
            painter.setPen(QPen(theme.color(tone), 1.6))
            painter.drawEllipse(box.adjusted(1.3, 1.3, -1.3, -1.3))
        painter.restore()

    def _paint_text(
        self, painter: QPainter, left: float, role: Role, token: str, text: str
    ) -> float:
        """Draw ``text`` in the middle of the bar; return where it ends."""
        theme = self._look.theme
        font = theme.font(role)
        painter.setFont(font)
        painter.setPen(theme.color(token))
        wide = QFontMetricsF(font).horizontalAdvance(text)
        box = QRectF(left, 0, wide + 2, self.height() - 1)
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, text)
        return left + wide

    def _paint_title(self, painter: QPainter, left: float, right: float) -> None:
        if right - left < self._look.theme.px(60) or not self._title:
            return
        font = self._look.theme.font(Role.INTERFACE)
        metrics = QFontMetricsF(font)
        shown = metrics.elidedText(self._title, Qt.TextElideMode.ElideRight, right - left)
        wide = metrics.horizontalAdvance(shown)
        centred = (self.width() - wide) / 2
        start = min(max(centred, left), right - wide)
        self._paint_text(painter, start, Role.INTERFACE, "text2", shown)

    def _arrange(self) -> None:
        theme = self._look.theme
        y = (self.height() - 1 - self._sidebar.height()) // 2
        self._sidebar.move(theme.px(12), y)
        self._new_chat.move(theme.px(12 + 8) + self._sidebar.width(), y)
        loading = self._state.phase is ModelPhase.LOADING
        self._load_bar.setVisible(loading)
        self._load_bar.show_fraction(self._state.fraction)
        name = QFontMetricsF(theme.font(Role.TITLE)).horizontalAdvance(self._name())
        words = QFontMetricsF(theme.font(Role.TITLE_PLAIN)).horizontalAdvance(self._words())
        top = (self.height() + theme.line_px(Role.TITLE)) // 2 + theme.px(1)
        wide = round(name + words) + theme.px(8)
        middle = (self.height() - 1) // 2
        tall, around = theme.px(32), theme.px(8)
        self.name.setGeometry(
            self._text_left() - around, middle - tall // 2, wide + theme.px(20) + 2 * around, tall
        )
        self.options.move(
            self.width() - theme.px(SIDE - 8) - self.options.width(),
            middle - self.options.height() // 2,
        )
        self.eject.setVisible(self._state.phase in (ModelPhase.READY, ModelPhase.LOADING))
        self.eject.move(
            self.name.geometry().right() + theme.px(10), middle - self.eject.height() // 2
        )
        self._load_bar.setGeometry(self._text_left(), top, wide, theme.px(LOAD_BAR_HEIGHT))
        self._context_bar.setVisible(self._limit > 0)
        if self._limit:
            self._context_bar.show_fraction(self._used / self._limit)
            middle = (self.height() - 1 - theme.px(BAR_HEIGHT)) // 2
            self._context_bar.setGeometry(
                self._context_left(), middle, theme.px(BAR_WIDTH), theme.px(BAR_HEIGHT)
            )
        self.update()

    def _left(self) -> int:
        theme = self._look.theme
        if self._sidebar.isVisibleTo(self):
            return theme.px(12 + 8 + 20) + 2 * self._sidebar.width()
        return theme.px(SIDE)

    def _text_left(self) -> int:
        return self._left() + self._look.theme.px(DOT + 11)

    def _context_left(self) -> int:
        theme = self._look.theme
        number = QFontMetricsF(theme.font(Role.CAPTION)).horizontalAdvance(self._number())
        return self._end() - round(number) - theme.px(BAR_WIDTH + 8)

    def _end(self) -> int:
        """Where the number ends, before the last button."""
        return self.options.x() - self._look.theme.px(16)

    def _number(self) -> str:
        return tr("{used} of {limit}", used=f"{self._used:,}", limit=f"{self._limit:,}")

    def _name(self) -> str:
        return self._state.name or tr("No model")

    def _words(self) -> str:
        if self._state.phase is ModelPhase.READY and self._state.facts is not None:
            return self._state.facts.format
        words = phase_words(self._state.phase)
        if self._state.phase is ModelPhase.LOADING and self._state.fraction > 0:
            return tr("loading {share} %", share=round(100 * self._state.fraction))
        return words

    def _on_look_changed(self, _theme: object = None) -> None:
        self.setFixedHeight(self._look.theme.px(HEIGHT))
        self._arrange()
