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
from app.language.words import tr
from app.look.icons import Icons
from app.look.theme import Look, Role
from app.widgets.fold_button import FoldButton
from app.widgets.icon_button import IconButton

BUTTON_HEIGHT: Final = 30
STRIP: Final = 4
RADIUS: Final = 10
ROW_WIDTH: Final = 480


@dataclass(frozen=True, slots=True)
class Choice:
    """One button of an inline error: a verb and what it does; ``quiet`` has no ground."""

    text: str
    run: Callable[[], None]
    quiet: bool = False


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

    What was put right already stands in one calm row; what was lost has a strip and its buttons
    below.

    Attributes:
        buttons: the choices in their order.
        fold: opens the details; None where there are none.
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
        self._copy = IconButton(look, icons, "copy", tr("Copy the details"), self, side=28)
        self._copy.clicked.connect(self._copy_details)
        self._copy.hide()
        self.buttons = self._make_buttons()
        self.fold = self._make_fold()
        self.setAccessibleName(facts.title)
        self.setAccessibleDescription(facts.sentence)

    def restyle(self) -> None:
        """Fonts of the current theme."""
        theme = self.look.theme
        self._sentence.set_style(theme.font(Role.INTERFACE), theme.line_px(Role.INTERFACE))
        self._details.set_style(theme.font(Role.CAPTION), theme.line_px(Role.CAPTION))
        self.update()

    # Places --------------------------------------------------------------------------------------

    def lay_out(self, width: int) -> int:
        """Text beside the icon, buttons below it or in its row, the open details last."""
        theme = self.look.theme
        for button in self.buttons:
            button.adjustSize()
        in_row = self.facts.recovered and width >= theme.px(ROW_WIDTH)
        inner = width - self._left() - theme.px(16)
        self._details.set_width(inner - theme.px(56))
        if in_row:
            beside = sum(b.width() + theme.px(8) for b in self.buttons)
            self._sentence.set_width(inner - beside)
            y = self._text_bottom() + theme.px(13)
            self._place_in_row(width, y)
        else:
            self._sentence.set_width(inner)
            y = self._place_below(self._text_bottom())
        if self.fold is not None:
            self.fold.resize(self.fold.sizeHint())
            self.fold.move(self._left(), y if not in_row else y - theme.px(6))
            y += self.fold.height() + (theme.px(2) if not in_row else 0)
        if self._is_open():
            self._copy.move(width - theme.px(20) - self._copy.width(), y + theme.px(6))
            y += theme.px(2) + round(self._details.height) + theme.px(24)
        return y + theme.px(12) if not in_row or self.fold is not None else y

    def _place_below(self, y: int) -> int:
        theme = self.look.theme
        if not self.buttons:
            return y
        x, y = self._left(), y + theme.px(13)
        for button in self.buttons:
            button.move(x, y)
            x += button.width() + theme.px(8)
        return y + self.buttons[0].height() + theme.px(6)

    def _place_in_row(self, width: int, height: int) -> None:
        x = width - self.look.theme.px(13)
        for button in self.buttons:
            x -= button.width()
            button.move(x, (height - button.height()) // 2)
            x -= self.look.theme.px(8)

    def _left(self) -> int:
        return self.look.theme.px(46 if self.facts.recovered else 50)

    def _text_top(self) -> int:
        return self.look.theme.px(12 if self.facts.recovered else 14)

    def _sentence_top(self) -> int:
        theme = self.look.theme
        between = 0 if self.facts.recovered else theme.px(2)
        return self._text_top() + theme.line_px(Role.TITLE) + between

    def _text_bottom(self) -> int:
        return self._sentence_top() + round(self._sentence.height)

    # Painting ------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        """The card with its strip, the icon and the words."""
        theme = self.look.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_card(painter)
        name, colour = self._icon()
        pixmap = self._icons.pixmap(name, theme.px(20), colour, self.devicePixelRatioF())
        painter.drawPixmap(QPointF(theme.px(18), self._text_top()), pixmap)
        painter.setFont(theme.font(Role.STRONG if self.facts.recovered else Role.TITLE))
        painter.setPen(theme.color("text"))
        title = QRectF(self._left(), self._text_top(), self.width(), theme.line_px(Role.TITLE))
        painter.drawText(title, Qt.AlignmentFlag.AlignVCenter, self.facts.title)
        clip = QRectF(event.rect())
        tone = "text2" if self.facts.recovered else "text"
        ink = Ink(theme.color(tone), theme.color("selection"))
        origin = QPointF(self._left(), self._sentence_top())
        self._sentence.paint(painter, origin, clip, ink, range(0))
        if self._is_open():
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
        edge = "line" if self.facts.recovered else "line_strong"
        painter.strokePath(shape, QPen(theme.color(edge), 1))

    def _paint_details(self, painter: QPainter, clip: QRectF) -> None:
        theme = self.look.theme
        tall = self._details.height + theme.px(20)
        top = self.height() - theme.px(14) - tall
        box = QRectF(self._left(), top, self.width() - self._left() - theme.px(16), tall)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("sunken"))
        painter.drawRoundedRect(box, theme.px(6), theme.px(6))
        ink = Ink(theme.color("text2"), theme.color("selection"))
        origin = QPointF(box.left() + theme.px(12), box.top() + theme.px(10))
        self._details.paint(painter, origin, clip, ink, range(0))

    # Buttons -------------------------------------------------------------------------------------

    def _make_buttons(self) -> list[QPushButton]:
        made: list[QPushButton] = []
        for number, choice in enumerate(self.facts.choices):
            primary = number == 0 and not self.facts.recovered
            button = QPushButton(choice.text, self)
            kind = "primary" if primary else "flat" if choice.quiet else "tinted"
            button.setProperty("kind", kind)
            button.setProperty("size", "small")
            button.setFixedHeight(self.look.theme.px(BUTTON_HEIGHT))
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            button.clicked.connect(lambda _checked=False, run=choice.run: run())
            button.show()
            made.append(button)
        return made

    def _make_fold(self) -> FoldButton | None:
        if not self.facts.details:
            return None
        fold = FoldButton(self.look, self._icons, tr("Details"), self)
        fold.toggled.connect(self._on_folded)
        fold.show()
        return fold

    def _is_open(self) -> bool:
        return self.fold is not None and self.fold.isChecked()

    def _on_folded(self, opened: bool) -> None:
        self._copy.setVisible(opened)
        self._resized(self)
        self.update()

    def _copy_details(self) -> None:
        QGuiApplication.clipboard().setText(self.facts.details)
