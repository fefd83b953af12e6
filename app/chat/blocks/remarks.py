"""Blocks that are not a turn's text: status line, note between turns, inline error.

Each takes one frozen record and paints it; the error's buttons are real buttons.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QGuiApplication, QPainter, QPainterPath, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QPushButton, QWidget

from app.chat.blocks.text_blocks import Block
from app.chat.blocks.text_flow import Ink, TextFlow
from app.icons import Icons
from app.theme import Look, Role
from app.widgets.icon_button import IconButton

STATUS_HEIGHT: Final = 24
ACTION_HEIGHT: Final = 28
NOTE_HEIGHT: Final = 24
STRIP: Final = 4
RADIUS: Final = 10


@dataclass(frozen=True, slots=True)
class Choice:
    """One button of an inline error: a verb and what it does."""

    text: str
    run: Callable[[], None]


@dataclass(frozen=True, slots=True)
class ErrorFacts:
    """What went wrong, in words. ``recovered`` things are told without alarm.

    ``details`` is for a report and folded away; empty means there is nothing more to tell. An
    ``icon`` of its own marks what is no failure at all.
    """

    title: str
    sentence: str
    details: str = ""
    choices: tuple[Choice, ...] = ()
    recovered: bool = False
    icon: str = ""

    @property
    def calm(self) -> bool:
        """Whether nothing is lost, so that nothing is red."""
        return self.recovered or bool(self.icon)


@dataclass(frozen=True, slots=True)
class TurnAction:
    """One icon under a turn: its name and what it does."""

    icon: str
    name: str
    run: Callable[[], None]


class StatusLine(Block):
    """The facts of a finished reply in one line; below it the room of the turn's actions."""

    gap = 8

    def __init__(self, look: Look, column: QWidget, text: str) -> None:
        super().__init__(look, column)
        self.text = text
        self._buttons: list[IconButton] = []
        self.setAccessibleName(text)

    def show_actions(self, icons: Icons, actions: tuple[TurnAction, ...]) -> None:
        """Show these actions; their room is always kept."""
        for button in self._buttons:
            button.hide()
            button.deleteLater()
        self._buttons = [self._button(icons, action) for action in actions]
        self._place_buttons()

    def _button(self, icons: Icons, action: TurnAction) -> IconButton:
        button = IconButton(self.look, icons, action.icon, action.name, self, side=ACTION_HEIGHT)
        button.clicked.connect(lambda _checked=False: action.run())
        button.show()
        return button

    def _place_buttons(self) -> None:
        # The first icon, not its button, stands at the text's edge.
        x = -self.look.theme.px(5)
        for button in self._buttons:
            button.move(x, self.height() - button.height())
            x += button.width()

    def resizeEvent(self, _event: QResizeEvent) -> None:
        """The actions stand at the bottom."""
        self._place_buttons()

    def lay_out(self, width: int) -> int:  # noqa: ARG002 - one line at any width
        """Room for the line and for the actions, which never move what is below."""
        theme = self.look.theme
        return theme.px(STATUS_HEIGHT) + theme.px(4) + theme.px(ACTION_HEIGHT)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Caption text, elided at the end."""
        theme = self.look.theme
        painter = QPainter(self)
        painter.setFont(theme.font(Role.CAPTION))
        painter.setPen(theme.color("text2"))
        box = QRectF(0, 0, self.width(), theme.px(STATUS_HEIGHT))
        shown = painter.fontMetrics().elidedText(
            self.text, Qt.TextElideMode.ElideRight, self.width()
        )
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, shown)


class Note(Block):
    """One quiet sentence between two lines: a restart, another model, a cut context."""

    gap = 16

    def __init__(self, look: Look, icons: Icons, column: QWidget, text: str) -> None:
        super().__init__(look, column)
        self._icons = icons
        self.text = text
        self.setAccessibleName(text)
        self.setToolTip(text)

    def lay_out(self, width: int) -> int:  # noqa: ARG002 - one line at any width
        """One line."""
        return self.look.theme.px(NOTE_HEIGHT)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Line, icon, text, line."""
        theme = self.look.theme
        painter = QPainter(self)
        painter.setFont(theme.font(Role.CAPTION))
        icon, space = theme.px(14), theme.px(8)
        room = self.width() - 2 * theme.px(24) - icon - 3 * space
        shown = painter.fontMetrics().elidedText(self.text, Qt.TextElideMode.ElideRight, room)
        wide = painter.fontMetrics().horizontalAdvance(shown) + icon + space
        left = (self.width() - wide) / 2
        middle = self.height() / 2
        painter.setPen(QPen(theme.color("line"), 1))
        line = round(middle) + 0.5
        painter.drawLine(QPointF(0, line), QPointF(left - space, line))
        painter.drawLine(QPointF(left + wide + space, line), QPointF(self.width(), line))
        pixmap = self._icons.pixmap("info", icon, theme.tokens.text2, self.devicePixelRatioF())
        painter.drawPixmap(QPointF(left, middle - icon / 2), pixmap)
        painter.setPen(theme.color("text2"))
        box = QRectF(left + icon + space, 0, wide, self.height())
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, shown)


class InlineError(Block):
    """A failure in its place in the transcript: title, one sentence, buttons, details folded."""

    gap = 18

    def __init__(
        self,
        look: Look,
        icons: Icons,
        column: QWidget,
        facts: ErrorFacts,
        resized: Callable[[Block], None],
    ) -> None:
        super().__init__(look, column)
        self._icons = icons
        self._resized = resized
        self.facts = facts
        theme = look.theme
        self._sentence = TextFlow(theme.font(Role.INTERFACE), theme.line_px(Role.INTERFACE))
        self._sentence.set_text(facts.sentence)
        self._details = TextFlow(theme.font(Role.CAPTION), theme.line_px(Role.CAPTION))
        self._details.set_text(facts.details)
        self._open = False
        self._buttons = self._make_buttons()
        self.setAccessibleName(facts.title)
        self.setAccessibleDescription(facts.sentence)

    def restyle(self) -> None:
        """Fonts of the current theme."""
        theme = self.look.theme
        self._sentence.set_style(theme.font(Role.INTERFACE), theme.line_px(Role.INTERFACE))
        self._details.set_style(theme.font(Role.CAPTION), theme.line_px(Role.CAPTION))
        self.update()

    def lay_out(self, width: int) -> int:
        """Text beside the icon, buttons in a row below it, the open details last."""
        theme = self.look.theme
        inner = width - self._left() - theme.px(16)
        self._sentence.set_width(inner)
        self._details.set_width(inner - theme.px(24))
        y = self._sentence_top() + round(self._sentence.height)
        if self._buttons:
            y += theme.px(12)
            x = self._left()
            for button in self._buttons:
                button.adjustSize()
                button.move(x, y)
                x += button.width() + theme.px(8)
            y += self._buttons[0].height()
        if self._open:
            y += theme.px(10) + round(self._details.height) + theme.px(16)
        return y + theme.px(14)

    def paintEvent(self, event: QPaintEvent) -> None:
        """The card with its strip, the icon and the words."""
        theme = self.look.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_card(painter)
        name, colour = self._icon()
        pixmap = self._icons.pixmap(name, theme.px(20), colour, self.devicePixelRatioF())
        painter.drawPixmap(QPointF(theme.px(18), theme.px(14)), pixmap)
        painter.setFont(theme.font(Role.TITLE))
        painter.setPen(theme.color("text"))
        title = QRectF(
            self._left(), theme.px(14), self.width() - self._left(), theme.line_px(Role.TITLE)
        )
        painter.drawText(title, Qt.AlignmentFlag.AlignVCenter, self.facts.title)
        clip = QRectF(event.rect())
        ink = Ink(theme.color("text"), theme.color("selection"))
        self._sentence.paint(
            painter, QPointF(self._left(), self._sentence_top()), clip, ink, range(0)
        )
        if self._open:
            self._paint_details(painter, clip)

    def _icon(self) -> tuple[str, str]:
        tokens = self.look.theme.tokens
        if self.facts.icon:
            return self.facts.icon, tokens.text2
        return ("refresh", tokens.warn) if self.facts.recovered else ("warn", tokens.danger)

    def _paint_card(self, painter: QPainter) -> None:
        theme = self.look.theme
        box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        radius = theme.px(RADIUS)
        shape = QPainterPath()
        shape.addRoundedRect(box, radius, radius)
        painter.fillPath(shape, theme.color("surface"))
        if not self.facts.calm:
            painter.save()
            painter.setClipPath(shape)
            painter.fillRect(QRectF(0, 0, theme.px(STRIP), self.height()), theme.color("danger"))
            painter.restore()
        painter.strokePath(shape, QPen(theme.color("line_strong"), 1))

    def _paint_details(self, painter: QPainter, clip: QRectF) -> None:
        theme = self.look.theme
        tall = self._details.height + theme.px(16)
        top = self.height() - theme.px(14) - tall
        box = QRectF(self._left(), top, self.width() - self._left() - theme.px(16), tall)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("sunken"))
        painter.drawRoundedRect(box, theme.px(6), theme.px(6))
        ink = Ink(theme.color("text2"), theme.color("selection"))
        origin = QPointF(box.left() + theme.px(12), box.top() + theme.px(8))
        self._details.paint(painter, origin, clip, ink, range(0))

    def _make_buttons(self) -> list[QPushButton]:
        made: list[QPushButton] = []
        for number, choice in enumerate(self.facts.choices):
            primary = number == 0 and not self.facts.recovered
            made.append(self._button(choice.text, "primary" if primary else "tinted", choice.run))
        if self.facts.details:
            made.append(self._button("Details", "flat", self._toggle_details))
        return made

    def _button(self, text: str, kind: str, run: Callable[[], None]) -> QPushButton:
        button = QPushButton(text, self)
        button.setProperty("kind", kind)
        button.setProperty("size", "small")
        button.clicked.connect(lambda _checked=False: run())
        button.show()
        return button

    def _toggle_details(self) -> None:
        self._open = not self._open
        self._buttons[-1].setText("Copy details" if self._open else "Details")
        if not self._open:
            QGuiApplication.clipboard().setText(self.facts.details)
        self._resized(self)

    def _left(self) -> int:
        return self.look.theme.px(50)

    def _sentence_top(self) -> int:
        theme = self.look.theme
        return theme.px(14) + theme.line_px(Role.TITLE) + theme.px(2)
