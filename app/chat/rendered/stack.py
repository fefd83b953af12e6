"""The parts of one reply, under each other: made from blocks, laid out, painted, asked for places.

Owned by the reply whose widgets it places. UI thread only.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter

from app.chat.markdown.records import Block, Code, Formula, Heading, Paragraph, Plain, Rule, Table
from app.chat.rendered.box_widgets import BoxWidgets
from app.chat.rendered.boxes import BoxPart, CodePart, TablePart
from app.chat.rendered.formulas import Formulas
from app.chat.rendered.highlight import Spans, spans_of
from app.chat.rendered.parts import FormulaPart, Part, PlainPart, RulePart, TextPart
from app.chat.rendered.plain import holds
from app.chat.rendered.setting import Setting
from app.desktop.answers import Background
from app.look.icons import Icons
from app.look.theme import Look, Role


@dataclass(frozen=True, slots=True)
class Press:
    """What replies are made with: the icons of their buttons, formulas, a thread that reads."""

    icons: Icons
    formulas: Formulas
    background: Background


class PartStack:
    """Parts in their order.

    Attributes:
        parts: as far as the text has been read.
        growing: whether the last part may still get more.
    """

    def __init__(
        self, look: Look, press: Press, boxes: BoxWidgets, touched: Callable[[], None]
    ) -> None:
        """Make an empty stack; ``touched`` is called when something has other colours."""
        self._look = look
        self._press = press
        self._boxes = boxes
        self._touched = touched
        self._tops: list[float] = []
        self._closed = False
        self.parts: list[Part] = []
        self.growing = False

    def replace(self, kept: int, blocks: Sequence[Block]) -> None:
        """Let ``blocks`` follow the first ``kept`` parts; parts of unchanged blocks stay."""
        old = self.parts[kept:]
        made = [
            old[n] if n < len(old) and old[n].block == block else self._made(block)
            for n, block in enumerate(blocks)
        ]
        for part in old:
            if part not in made:
                self._boxes.forget(part)
        self.parts[kept:] = made
        self.colour()

    def renew(self) -> None:
        """Make every part anew in the current theme."""
        self._boxes.clear()
        self.parts = [self._made(part.block) for part in self.parts]
        self.colour()

    def renew_formula(self, tex: str) -> bool:
        """Make the parts anew that hold a formula; whether there were any."""
        found = [n for n, part in enumerate(self.parts) if holds(part.block, tex)]
        for number in found:
            self._boxes.forget(self.parts[number])
            self.parts[number] = self._made(self.parts[number].block)
        return bool(found)

    def close(self) -> None:
        """Take nothing from the thread any more."""
        self._closed = True

    def lay_out(self, width: int) -> float:
        """Put the parts under each other; returns the height."""
        self._tops = []
        y = 0.0
        for number, part in enumerate(self.parts):
            gap = part.gap_after(self.parts[number - 1]) if number else 0
            y += self._look.theme.px(gap)
            part.set_width(width)
            self._tops.append(y)
            y += part.height
        for part, top in zip(self.parts, self._tops, strict=True):
            if isinstance(part, BoxPart):
                self._boxes.place(part, top)
        return y

    def paint(self, painter: QPainter, clip: QRectF, selection: range) -> None:
        """Draw the parts that ``clip`` touches."""
        first = max(0, bisect_right(self._tops, clip.top()) - 1)
        for number in range(first, len(self._tops)):
            part, top = self.parts[number], self._tops[number]
            if top > clip.bottom():
                return
            part.paint_nest(painter, QPointF(0, top), self._joined(number))
            part.paint(painter, QPointF(0, top), clip, selection)
            if isinstance(part, BoxPart):
                self._boxes.show(part, top, self.growing and number == len(self.parts) - 1)

    def at(self, y: float) -> tuple[Part, float] | None:
        """The part at a height, and where it begins."""
        if not self._tops:
            return None
        number = max(0, bisect_right(self._tops, y) - 1)
        return self.parts[number], self._tops[number]

    def link_at(self, point: QPointF) -> str | None:
        """Where the link under a point leads."""
        found = self.at(point.y())
        return None if found is None else found[0].link_at(point - QPointF(0, found[1]))

    def colour(self) -> None:
        """Have code coloured that gets no more."""
        parts = self.parts[:-1] if self.growing else self.parts
        for part in parts:
            if isinstance(part, CodePart) and part.is_plain and part.code.language:
                self._press.background.ask(_spans(part.code), self._coloured(part))

    def _coloured(self, part: CodePart) -> Callable[[Spans], None]:
        def take(spans: Spans) -> None:
            if not self._closed:
                part.colour(spans)
                self._touched()

        return take

    def _joined(self, number: int) -> float:
        """How far the bars of a quote reach up to the part above."""
        part, before = self.parts[number], self.parts[number - 1]
        if not number or not part.nest.quotes or not before.nest.quotes:
            return 0.0
        return self._tops[number] - self._tops[number - 1] - before.height

    def _made(self, block: Block) -> Part:
        setting = Setting(self._look.theme, Role.BODY, self._press.formulas)
        match block:
            case Paragraph() | Heading():
                return TextPart(block, setting)
            case Code():
                return CodePart(block, setting)
            case Table():
                return TablePart(block, setting)
            case Rule():
                return RulePart(block, setting)
            case Formula():
                return FormulaPart(block, setting)
            case Plain():
                return PlainPart(block, setting)


def _spans(code: Code) -> Callable[[], Spans]:
    return lambda: spans_of(code.language, code.text)
