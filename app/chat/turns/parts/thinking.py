"""What a model thought before it answered: one row, and the text below it once it is opened.

While it is closed nothing of the text is laid out; opened, a long one is laid out piece by piece,
a piece at each turn of the event loop. UI thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QElapsedTimer, QPointF, QRectF, QSize, QTimer
from PySide6.QtGui import QFontMetricsF, QHideEvent, QPainter, QPaintEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from app.chat.blocks.text_blocks import Block
from app.chat.blocks.text_flow import Ink, TextFlow
from app.chat.turns.parts.thinking_words import thinking_words, thought_words
from app.language.words import tr
from app.look.icons import Icons
from app.look.theme import Look, Role
from app.widgets.busy import BusyTurn
from app.widgets.fold_button import FoldButton

ROW: Final = 28
ARC: Final = 14
GAP: Final = 14
RULE: Final = 2
PIECE: Final = 8_000
"""Characters that are laid out at once."""
SECOND_MS: Final = 1000


class ThinkingHead(FoldButton):
    """The row: a chevron, words, and the arc while it goes on. Owns the arc."""

    def __init__(self, look: Look, icons: Icons, parent: QWidget) -> None:
        super().__init__(look, icons, "", parent)
        self._sizes = look
        self._busy: BusyTurn | None = None
        self._runs = False

    def say(self, words: str, *, runs: bool) -> None:
        """Show other words; ``runs`` says whether there is more to come."""
        self._runs = runs
        if runs and self._busy is None:
            self._busy = BusyTurn(self)
            self._busy.turned.connect(self.update)
        if self._busy is not None:
            self._busy.need(runs and self.isVisible())
        self.setText(words)
        self.setAccessibleName(words)
        self.resize(self.sizeHint())
        self.update()

    def sizeHint(self) -> QSize:
        """As high as the row."""
        theme = self._sizes.theme
        arc = theme.px(ARC + 8) if self._runs else 0
        return QSize(super().sizeHint().width() + arc + theme.px(8), theme.px(ROW))

    def paintEvent(self, event: QPaintEvent) -> None:
        """The row, and the arc behind its words."""
        super().paintEvent(event)
        if self._runs and self._busy is not None:
            theme = self._sizes.theme
            words = QFontMetricsF(theme.font(Role.INTERFACE)).horizontalAdvance(self.text())
            size = theme.px(ARC)
            box = QRectF(theme.px(16 + 8) + words, (self.height() - size) / 2, size, size)
            self._busy.paint(QPainter(self), box, theme)

    def showEvent(self, _event: QShowEvent) -> None:
        """Turn while visible."""
        if self._busy is not None:
            self._busy.need(self._runs)

    def hideEvent(self, _event: QHideEvent) -> None:
        """Stand still while hidden."""
        if self._busy is not None:
            self._busy.need(False)


class ThinkingFold(Block):
    """The thoughts of one reply. Owns two timers.

    Attributes:
        text: exact, also while nothing of it is shown.
        head: the row; checked is open.
    """

    gap = 10

    def __init__(
        self, look: Look, icons: Icons, column: QWidget, text: str, grew: Callable[[Block], None]
    ) -> None:
        super().__init__(look, column)
        self._grew = grew
        self._flow: TextFlow | None = None
        self._clock = QElapsedTimer()
        self.text = text
        self.head = ThinkingHead(look, icons, self)
        self.head.toggled.connect(self._on_toggled)
        self._feed: QTimer | None = None
        self._seconds: QTimer | None = None
        self.setAccessibleName(tr("Thoughts"))

    # What is thought -----------------------------------------------------------------------------

    def begin(self) -> None:
        """Thinking begins now, or goes on."""
        self._clock.start()
        self._seconds = QTimer(self)
        self._seconds.setInterval(SECOND_MS)
        self._seconds.timeout.connect(self._count)
        self._seconds.start()
        self._count()

    def append(self, text: str) -> None:
        """Add newly generated text; nothing is laid out while the fold is closed."""
        self.text += text
        if self._feed is not None:
            self._feed.start()

    def finish(self, text: str, milliseconds: float | None, tokens: int | None) -> None:
        """End with the final text, how long it took and how many tokens it has, where known."""
        if self._seconds is not None:
            self._seconds.stop()
        if text != self.text:
            self.text = text
            if self._flow is not None:
                self._open()
        self.head.say(thought_words(milliseconds, tokens), runs=False)

    @property
    def is_open(self) -> bool:
        """Whether the text is shown."""
        return self._flow is not None

    # Places --------------------------------------------------------------------------------------

    def lay_out(self, width: int) -> int:
        """The row, and below it the text where it is open."""
        theme = self.look.theme
        if self._flow is None:
            return theme.px(ROW)
        self._flow.set_width(width - self._left())
        return theme.px(ROW) + theme.px(4) + max(round(self._flow.height), theme.px(21))

    def restyle(self) -> None:
        """Fonts of the current theme."""
        super().restyle()
        self.head.resize(self.head.sizeHint())
        if self._flow is not None:
            theme = self.look.theme
            self._flow.set_style(theme.font(Role.THOUGHT), theme.line_px(Role.THOUGHT))

    def paintEvent(self, event: QPaintEvent) -> None:
        """A rule at the side, and the lines that need it."""
        if self._flow is None:
            return
        theme = self.look.theme
        painter = QPainter(self)
        top = theme.px(ROW) + theme.px(4)
        rule = max(1, theme.px(RULE))
        painter.fillRect(QRectF(0, top, rule, self.height() - top), theme.color("line_strong"))
        ink = Ink(theme.color("text2"), theme.color("selection"))
        self._flow.paint(painter, QPointF(self._left(), top), QRectF(event.rect()), ink, range(0))

    def _left(self) -> int:
        return self.look.theme.px(RULE) + self.look.theme.px(GAP)

    # Open and closed -----------------------------------------------------------------------------

    def _on_toggled(self, opened: bool) -> None:
        if opened:
            self._open()
        else:
            self._close()
            self.setAccessibleDescription("")
        self._grew(self)
        self.update()

    def _open(self) -> None:
        theme = self.look.theme
        self._flow = TextFlow(theme.font(Role.THOUGHT), theme.line_px(Role.THOUGHT))
        self._flow.set_width(max(1, self.width() - self._left()))
        self.setAccessibleDescription(self.text[:PIECE])
        self._flow.append(self.text[:PIECE])
        if self._feed is None:
            self._feed = QTimer(self)
            self._feed.setInterval(0)
            self._feed.timeout.connect(self._lay_out_more)
        self._feed.start()

    def _close(self) -> None:
        self._flow = None
        if self._feed is not None:
            self._feed.stop()
            self._feed.deleteLater()
            self._feed = None

    def _lay_out_more(self) -> None:
        """One more piece; done where all is there."""
        flow = self._flow
        done = len(flow.text) if flow is not None else 0
        if flow is None or self._feed is None:
            return
        if done >= len(self.text):
            self._feed.stop()
            return
        flow.append(self.text[done : done + PIECE])
        self._grew(self)
        self.update()

    def _count(self) -> None:
        self.head.say(thinking_words(self._clock.elapsed() // SECOND_MS), runs=True)
