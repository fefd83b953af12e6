"""A reply on the screen: its Markdown as parts, made when they are first seen.

Until then it stands there with a height that is guessed from its length. Owns its parts and the
widgets of boxes; the exact text stays what it is, and selections are offsets into it. UI thread
only.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QWidget

from app.chat.blocks.text_blocks import Selectable
from app.chat.markdown import records
from app.chat.markdown.records import Code, Formula, Heading, Paragraph, Plain, Rule, Table
from app.chat.rendered.box_widgets import BoxWidgets
from app.chat.rendered.boxes import BoxPart, CodePart, TablePart
from app.chat.rendered.formulas import Formulas
from app.chat.rendered.highlight import spans_of
from app.chat.rendered.parts import FormulaPart, Part, PlainPart, RulePart, TextPart
from app.chat.rendered.reading import Change, Reading
from app.chat.rendered.setting import Setting
from app.desktop.answers import Background
from app.language.words import tr
from app.look.icons import Icons
from app.look.theme import Look, Role

PAUSE_MS: Final = 33
"""Between two readings of a growing text: what the eye sees as one."""
SIGNS_A_LINE: Final = 90
"""Of a line of the transcript, for guessing."""


@dataclass(frozen=True, slots=True)
class Press:
    """What replies are made with: the icons of their buttons, formulas, a thread that reads."""

    icons: Icons
    formulas: Formulas
    background: Background


class Reply(Selectable):
    """A reply. Emits ``link_wanted`` with the address of a link that was pressed."""

    gap = 10
    link_wanted = Signal(str)

    def __init__(
        self,
        look: Look,
        column: QWidget,
        press: Press,
        grew: Callable[[Reply], None],
        text: str = "",
    ) -> None:
        super().__init__(look, column, text)
        self._press = press
        self._grew = grew
        self._parts: list[Part] = []
        self._tops: list[float] = []
        self._awake = False
        self._open = False
        self._released = False
        self._boxes = BoxWidgets(self, look, press.icons)
        self._reading = Reading(press.background, self._on_changed)
        self._pressed: str | None = None
        self._more = False
        self._pause = QTimer(self, singleShot=True, interval=PAUSE_MS)
        self._pause.timeout.connect(self._read_more)
        self.setMouseTracking(True)
        self.setAccessibleName(tr("Reply"))
        self.setAccessibleDescription(text)
        press.formulas.drawn.connect(self._on_drawn)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts as far as the text has been read."""
        return tuple(self._parts)

    def wake(self) -> None:
        """Read the text; what is there at first is only a guess of its height."""
        if not self._awake:
            self._awake = True
            self._reading.read(self.text)

    def append(self, text: str) -> None:
        """Add newly generated text; ``grew`` is called once it is read."""
        self.text += text
        self._open = self._awake = True
        if self._pause.isActive():
            self._more = True
        else:
            self._pause.start()
            self._reading.read(self.text)

    def finish(self, text: str) -> None:
        """End with the final text, which is also what a screen reader reads."""
        self.text = text
        self._open = self._more = False
        self.setAccessibleDescription(text)
        if self._awake:
            self._reading.read(text)
            self._colour(self._parts)

    def code(self) -> str:
        """The last block of code, empty where there is none."""
        found = [part.code.text for part in self._parts if isinstance(part, CodePart)]
        return found[-1] if found else ""

    def lay_out(self, width: int) -> int:
        """Parts under each other; a guess while they are not made."""
        theme = self.look.theme
        line = theme.line_px(Role.BODY)
        if not self._awake:
            lines = self.text.count("\n") + len(self.text) // SIGNS_A_LINE + 1
            return lines * line
        self._tops = []
        y = 0.0
        for number, part in enumerate(self._parts):
            y += theme.px(part.gap_after(self._parts[number - 1])) if number else 0
            part.set_width(width)
            self._tops.append(y)
            y += part.height
        self._place_boxes()
        return max(line, round(y))

    def restyle(self) -> None:
        """Everything anew in the current theme."""
        self._boxes.clear()
        blocks = [part.block for part in self._parts]
        self._parts = [self._made(block) for block in blocks]
        self._colour(self._parts)
        self.update()

    def release(self) -> None:
        """The column takes this away."""
        self._released = True
        self._reading.close()

    # Text ----------------------------------------------------------------------------------------

    def offset_at(self, point: QPointF) -> int:
        """The offset into the text nearest to a point."""
        self.wake()
        found = self._part_at(point.y())
        if found is None or point.y() < 0:
            return 0
        part, top = found
        if point.y() >= self.height():
            return len(self.text)
        return part.source_at(point - QPointF(0, top))

    def word_at(self, offset: int) -> range:
        """The word around an offset."""
        for part in self._parts:
            if part.block.span.start <= offset < part.block.span.stop:
                return part.word_at(offset)
        return range(offset, offset)

    def plain_text(self) -> str:
        """The selected text, or all of it, as it is read: without the marks of Markdown."""
        chosen = self.selection or range(len(self.text))
        return plain_text([part.block for part in self._parts], chosen)

    # Events --------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        """The parts that can be seen; the first time, they are made."""
        if not self._awake:
            QTimer.singleShot(0, self, self.wake)
            return
        painter = QPainter(self)
        clip = QRectF(event.rect())
        first = max(0, bisect_right(self._tops, clip.top()) - 1)
        bottom = 0.0
        for number in range(first, len(self._parts)):
            part, top = self._parts[number], self._tops[number]
            if top > clip.bottom():
                return
            quoted = number and part.nest.quotes and self._parts[number - 1].nest.quotes
            bottom = self._tops[number - 1] + self._parts[number - 1].height if quoted else top
            origin = QPointF(0, top)
            part.paint_nest(painter, origin, top - bottom)
            part.paint(painter, origin, clip, self.selection)
            if isinstance(part, BoxPart):
                self._boxes.show(part, top, self._open and number == len(self._parts) - 1)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """The hand over links; the column goes on selecting."""
        link = self._link_at(event.position())
        shape = Qt.CursorShape.PointingHandCursor if link else Qt.CursorShape.ArrowCursor
        self.setCursor(shape)
        event.ignore()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Remember a link that is pressed."""
        self._pressed = self._link_at(event.position())
        event.ignore()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A link was pressed and nothing selected meanwhile."""
        pressed, self._pressed = self._pressed, None
        if pressed and not self.selection and self._link_at(event.position()) == pressed:
            self.link_wanted.emit(pressed)
        event.ignore()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """To the side inside a box; else the transcript scrolls."""
        sideways = event.angleDelta().x()
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            sideways = sideways or event.angleDelta().y()
        found = self._part_at(event.position().y())
        part = found[0] if found is not None else None
        if sideways and isinstance(part, BoxPart) and part.surplus:
            self._boxes.scroll(part, -sideways // 2)
            event.accept()
        else:
            event.ignore()

    # Parts ---------------------------------------------------------------------------------------

    def _on_changed(self, change: Change) -> None:
        """Replace what followed the kept parts; parts of unchanged blocks stay."""
        old = self._parts[change.kept :]
        made = [
            old[n] if n < len(old) and old[n].block == block else self._made(block)
            for n, block in enumerate(change.blocks)
        ]
        for part in old:
            if part not in made:
                self._boxes.forget(part)
        self._parts[change.kept :] = made
        self._colour(made[:-1] if self._open else made)
        self._grew(self)
        self.update()

    def _read_more(self) -> None:
        """Read what came during the pause."""
        if self._more and not self._released:
            self._more = False
            self._pause.start()
            self._reading.read(self.text)

    def _made(self, block: records.Block) -> Part:
        setting = Setting(self.look.theme, Role.BODY, self._press.formulas)
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

    def _colour(self, parts: list[Part]) -> None:
        """Have code coloured that gets no more."""
        for part in parts:
            if isinstance(part, CodePart) and part.is_plain and part.code.language:
                self._press.background.ask(_spans(part.code), self._coloured(part))

    def _coloured(self, part: CodePart) -> Callable[[object], None]:
        def take(spans: object) -> None:
            if not self._released and isinstance(spans, tuple):
                part.colour(spans)
                self.update()

        return take

    def _on_drawn(self, tex: str) -> None:
        """Set the parts that hold a formula anew, now that it can be painted."""
        if self._released or tex not in self.text:
            return
        touched = False
        for number, part in enumerate(self._parts):
            if holds(part.block, tex):
                self._parts[number] = self._made(part.block)
                touched = True
        if touched:
            self._grew(self)
            self.update()

    def _part_at(self, y: float) -> tuple[Part, float] | None:
        if not self._tops:
            return None
        number = max(0, bisect_right(self._tops, y) - 1)
        return self._parts[number], self._tops[number]

    def _link_at(self, point: QPointF) -> str | None:
        found = self._part_at(point.y())
        return None if found is None else found[0].link_at(point - QPointF(0, found[1]))

    def _place_boxes(self) -> None:
        for part, top in zip(self._parts, self._tops, strict=True):
            if isinstance(part, BoxPart):
                self._boxes.place(part, top)


def holds(block: records.Block, tex: str) -> bool:
    """Whether a block has a formula in it."""
    match block:
        case Formula():
            return block.tex == tex
        case Paragraph() | Heading():
            return any(run.style.tex == tex for run in block.runs)
        case Table():
            return any(run.style.tex == tex for row in block.rows for cell in row for run in cell)
        case _:
            return False


def plain_text(blocks: list[records.Block], chosen: range) -> str:
    """Blocks as they are read, as far as they stand in ``chosen``."""
    lines: list[str] = []
    for block in blocks:
        if block.span.stop <= chosen.start or block.span.start >= chosen.stop:
            continue
        match block:
            case Paragraph() | Heading():
                text = "".join(
                    run.text
                    for run in block.runs
                    if run.span.start < chosen.stop and run.span.stop > chosen.start
                )
                marker = f"{block.nest.marker} " if block.nest.marker else ""
                lines.append(f"{marker}{text}")
            case Code() | Plain():
                lines.append(block.text)
            case Formula():
                lines.append(block.tex)
            case Table():
                rows = ("\t".join("".join(r.text for r in c) for c in row) for row in block.rows)
                lines.append("\n".join(rows))
            case Rule():
                lines.append("")
    return "\n".join(lines)


def _spans(code: Code) -> Callable[[], object]:
    return lambda: spans_of(code.language, code.text)
