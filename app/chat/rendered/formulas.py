"""Formulas as pictures: set by ziamath off the UI thread, kept by their source.

``Formulas`` owns what was drawn at one size and colour; a new look makes a new one. UI thread only,
but for the drawing itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QByteArray, QObject, QPointF, QRectF, QSizeF, Signal
from PySide6.QtGui import QPainter
from PySide6.QtSvg import QSvgRenderer

from app.desktop.answers import Background
from app.look.theme import Look

SIZE: Final = 16
MOST: Final = 2000
"""Formulas that are kept; beyond, all are drawn anew as they are seen."""
LONGEST: Final = 4000


@dataclass(frozen=True, slots=True)
class Drawing:
    """A formula as SVG, with its size and how much of it stands above the line of the text."""

    svg: bytes
    width: float
    height: float
    above: float


@dataclass(frozen=True, slots=True)
class Drawn:
    """A formula that can be painted."""

    renderer: QSvgRenderer
    width: float
    above: float
    below: float

    def paint(self, painter: QPainter, corner: QPointF) -> None:
        """Paint it with its top left corner there."""
        size = QSizeF(self.width, self.above + self.below)
        self.renderer.render(painter, QRectF(corner, size))


class Formulas(QObject):
    """What was drawn so far. Emits ``drawn`` with the source of a formula that can be painted."""

    drawn = Signal(str)

    def __init__(self, look: Look, background: Background) -> None:
        super().__init__(look)
        self._look = look
        self._background = background
        self._found: dict[str, Drawn | None] = {}
        look.changed.connect(self._on_look_changed)

    def found(self, tex: str) -> Drawn | None:
        """The formula where it is drawn; else it is asked for, and its source is shown."""
        if tex not in self._found:
            if len(self._found) >= MOST:
                self._found.clear()
            self._found[tex] = None
            if len(tex) <= LONGEST:
                size, colour = float(self._look.theme.px(SIZE)), self._look.theme.tokens.text
                self._background.ask(
                    lambda: drawing_of(tex, size, colour),
                    lambda drawing: self._on_drawn(tex, drawing),
                )
        return self._found[tex]

    def _on_drawn(self, tex: str, drawing: Drawing | None) -> None:
        if drawing is None:
            return  # Its source stays where it is.
        renderer = QSvgRenderer(QByteArray(drawing.svg), self)
        if renderer.isValid():
            below = max(0.0, drawing.height - drawing.above)
            self._found[tex] = Drawn(renderer, drawing.width, drawing.above, below)
            self.drawn.emit(tex)

    def _on_look_changed(self, _theme: object) -> None:
        self._found.clear()


def drawing_of(tex: str, size: float, colour: str) -> Drawing | None:
    """A formula drawn; None where it cannot be read as LaTeX."""
    from ziafont.config import config  # noqa: PLC0415 - slow, and only where there is a formula
    from ziamath.zmath import Latex  # noqa: PLC0415

    config.svg2 = False  # Qt draws SVG Tiny, which has no symbols.
    try:
        made = Latex(tex, size=size, color=colour)
        width, height = made.getsize()
        return Drawing(made.svg().encode("utf-8"), width, height, height + made.getyofst())
    except Exception:  # noqa: BLE001 - the library raises whatever its parser meets
        return None
