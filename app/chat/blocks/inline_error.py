"""A failure in its place: title, one sentence with numbers, buttons, details folded away.

Takes one frozen record and paints it; its buttons are real buttons.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QGuiApplication, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QPushButton, QWidget

from app.chat.blocks.text_blocks import Block
from app.chat.blocks.text_flow import Ink, TextFlow
from app.look.icons import Icons
from app.look.theme import Look, Role

BUTTON_HEIGHT: Final = 30
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


class InlineError(Block):
    """A failure in its place in the transcript: title, one sentence, details folded.

    Attributes:
        buttons: the choices in their order, then the one for the details.
    """

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
        self.buttons = self._make_buttons()
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
        if self.buttons:
            y += theme.px(12)
            x = self._left()
            for button in self.buttons:
                button.adjustSize()
                button.move(x, y)
                x += button.width() + theme.px(8)
            y += self.buttons[0].height()
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
        button.setFixedHeight(self.look.theme.px(BUTTON_HEIGHT))
        button.clicked.connect(lambda _checked=False: run())
        button.show()
        return button

    def _toggle_details(self) -> None:
        self._open = not self._open
        self.buttons[-1].setText("Copy details" if self._open else "Details")
        if not self._open:
            QGuiApplication.clipboard().setText(self.facts.details)
        self._resized(self)

    def _left(self) -> int:
        return self.look.theme.px(50)

    def _sentence_top(self) -> int:
        theme = self.look.theme
        return theme.px(14) + theme.line_px(Role.TITLE) + theme.px(2)
