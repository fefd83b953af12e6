"""Which version of a turn is shown, between two arrows that show another: "‹ 2 / 3 ›"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app.chat.turns.deeds import TurnVerb, Version
from app.language.words import tr
from app.look.icons import Icons
from app.look.theme import Look, Role
from app.widgets.icon_button import IconButton

SIDE: Final = 28
GAP: Final = 2


class VersionArrows(QWidget):
    """Two arrows and a number between them.

    Attributes:
        earlier, later: the arrows; one that leads nowhere is disabled.
    """

    def __init__(
        self,
        look: Look,
        icons: Icons,
        version: Version,
        run: Callable[[TurnVerb], None],
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._look = look
        self._words = f"{version.number} / {version.count}"
        place = tr("Version {number} of {count}", number=version.number, count=version.count)
        self.setAccessibleName(place)
        self.earlier = IconButton(look, icons, "chevl", tr("Earlier version"), self, side=SIDE)
        self.later = IconButton(look, icons, "chevr", tr("Later version"), self, side=SIDE)
        self.earlier.setAccessibleDescription(place)
        self.later.setAccessibleDescription(place)
        self.earlier.setEnabled(version.number > 1)
        self.later.setEnabled(version.number < version.count)
        self.earlier.clicked.connect(lambda: run(TurnVerb.EARLIER))
        self.later.clicked.connect(lambda: run(TurnVerb.LATER))
        self.arrange()

    def arrange(self) -> None:
        """Take the size of the current theme."""
        theme = self._look.theme
        side, gap = theme.px(SIDE), theme.px(GAP)
        width = QFontMetricsF(theme.font(Role.CAPTION)).horizontalAdvance(self._words)
        self.resize(2 * side + int(width) + 1 + 2 * gap, side)
        self.later.move(self.width() - side, 0)
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """The number, in the middle."""
        theme = self._look.theme
        painter = QPainter(self)
        painter.setFont(theme.font(Role.CAPTION))
        painter.setPen(theme.color("text2"))
        painter.drawText(QRectF(self.rect()), Qt.AlignmentFlag.AlignCenter, self._words)
