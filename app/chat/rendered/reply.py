"""A reply on the screen: its Markdown as parts, made when they are first seen.

Until then it stands there with a height that is guessed from its length. Owns its parts and the
widgets of boxes; the exact text stays what it is, and selections are offsets into it. UI thread
only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QWidget

from app.chat.blocks.text_blocks import Selectable
from app.chat.rendered.box_widgets import BoxWidgets
from app.chat.rendered.boxes import BoxPart
from app.chat.rendered.parts import Part
from app.chat.rendered.reading import Change, Reading
from app.chat.rendered.stack import PartStack, Press
from app.language.words import tr
from app.look.theme import Look, Role

SIGNS_A_LINE: Final = 90
"""Of a line of the transcript, for guessing."""


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
        self._grew = grew
        self._awake = False
        self._boxes = BoxWidgets(self, look, press.icons)
        self._stack = PartStack(look, press, self._boxes, self.update)
        self._reading = Reading(press.background, self._on_changed, self)
        self._pressed: str | None = None
        self.setMouseTracking(True)
        self.setAccessibleName(tr("Reply"))
        self.setAccessibleDescription(text)
        press.formulas.drawn.connect(self._on_drawn)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts as far as the text has been read."""
        return tuple(self._stack.parts)

    def wake(self) -> None:
        """Read the text; what is there at first is only a guess of its height."""
        if not self._awake:
            self._awake = True
            self._reading.read(self.text)

    def append(self, text: str) -> None:
        """Add newly generated text; ``grew`` is called once it is read."""
        self.text += text
        self._awake = self._stack.growing = True
        self._reading.grow(self.text)

    def finish(self, text: str) -> None:
        """End with the final text, which is also what a screen reader reads."""
        self.text = text
        self._stack.growing = False
        self.setAccessibleDescription(text)
        if self._awake:
            self._reading.read(text)
            self._stack.colour()

    def lay_out(self, width: int) -> int:
        """Parts under each other; a guess while they are not made."""
        line = self.look.theme.line_px(Role.BODY)
        if not self._awake:
            lines = self.text.count("\n") + len(self.text) // SIGNS_A_LINE + 1
            return lines * line
        return max(line, round(self._stack.lay_out(width)))

    def restyle(self) -> None:
        """Everything anew in the current theme."""
        self._stack.renew()
        self.update()

    def release(self) -> None:
        """The column takes this away."""
        self._stack.close()
        self._reading.close()

    # Text ----------------------------------------------------------------------------------------

    def offset_at(self, point: QPointF) -> int:
        """The offset into the text nearest to a point."""
        self.wake()
        found = self._stack.at(point.y())
        if found is None or point.y() < 0:
            return 0
        part, top = found
        if point.y() >= self.height():
            return len(self.text)
        return part.source_at(point - QPointF(0, top))

    def word_at(self, offset: int) -> range:
        """The word around an offset."""
        for part in self._stack.parts:
            if part.block.span.start <= offset < part.block.span.stop:
                return part.word_at(offset)
        return range(offset, offset)

    # Events --------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        """The parts that can be seen; the first time, they are made."""
        if self._awake:
            self._stack.paint(QPainter(self), QRectF(event.rect()), self.selection)
        else:
            QTimer.singleShot(0, self, self.wake)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """The hand over links; the column goes on selecting."""
        link = self._stack.link_at(event.position())
        shape = Qt.CursorShape.PointingHandCursor if link else Qt.CursorShape.ArrowCursor
        self.setCursor(shape)
        event.ignore()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Remember a link that is pressed."""
        self._pressed = self._stack.link_at(event.position())
        event.ignore()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A link was pressed and nothing selected meanwhile."""
        pressed, self._pressed = self._pressed, None
        there = self._stack.link_at(event.position())
        if pressed and there == pressed and not self.selection:
            self.link_wanted.emit(pressed)
        event.ignore()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """To the side inside a box; else the transcript scrolls."""
        sideways = event.angleDelta().x()
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            sideways = sideways or event.angleDelta().y()
        found = self._stack.at(event.position().y())
        part = found[0] if found is not None else None
        if sideways and isinstance(part, BoxPart) and part.surplus:
            self._boxes.scroll(part, -sideways // 2)
            event.accept()
        else:
            event.ignore()

    # What is read --------------------------------------------------------------------------------

    def _on_changed(self, change: Change) -> None:
        self._stack.replace(change.kept, change.blocks)
        self._grew(self)
        self.update()

    def _on_drawn(self, tex: str) -> None:
        """A formula can be painted now."""
        if tex in self.text and self._stack.renew_formula(tex):
            self._grew(self)
            self.update()
