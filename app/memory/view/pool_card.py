"""One pool as a card: what it is, how much is used, the bar with its legend, the foot line."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.look.icons import Icons
from app.look.theme import Look, Role
from app.memory.cards import Card, Mark
from app.memory.view.bar import paint_memory_bar, paint_swatch

PADDING: Final = 17
RADIUS: Final = 12
BAR_TOP: Final = 80
BAR_HEIGHT: Final = 14
LEGEND_TOP: Final = 104
LEGEND_ROW: Final = 22
COLUMN_GAP: Final = 24
FOOT_HEIGHT: Final = 58
"""From the last line of the legend to the lower edge."""


class PoolCard(QWidget):
    """Paints one ``Card``; its description tells all of it to a screen reader."""

    def __init__(self, look: Look, icons: Icons, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._icons = icons
        self._card: Card | None = None
        look.changed.connect(self._on_look_changed)

    def show_card(self, card: Card) -> None:
        """Show ``card``; nothing is painted again where it is the same."""
        if card != self._card:
            self._card = card
            self.setAccessibleName(" ".join(filter(None, (card.title, card.label))))
            self.setAccessibleDescription(card.description)
            self.setToolTip(card.foot)
            self.update()

    def wanted_height(self) -> int:
        """The height that the legend needs, in logical pixels."""
        lines = (len(self._card.parts) + 1) // 2 if self._card is not None else 0
        return self._look.theme.px(LEGEND_TOP + LEGEND_ROW * lines + FOOT_HEIGHT)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Ground, then the rows from above."""
        card = self._card
        if card is None:
            return
        theme = self._look.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(theme.color("surface"))
        painter.setPen(QPen(theme.color("line"), 1))
        box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(box, theme.px(RADIUS), theme.px(RADIUS))
        inner = QRectF(self.rect()).adjusted(theme.px(PADDING), 0, -theme.px(PADDING), 0)
        self._paint_head(painter, inner, card)
        self._paint_figure(painter, inner, card)
        bar = QRectF(inner.left(), theme.px(BAR_TOP), inner.width(), theme.px(BAR_HEIGHT))
        paint_memory_bar(painter, bar, card.parts, theme, theme.px(4))
        self._paint_legend(painter, inner, card)
        self._paint_foot(painter, inner, card)

    def _paint_head(self, painter: QPainter, inner: QRectF, card: Card) -> None:
        theme = self._look.theme
        size, middle = theme.px(20), theme.px(24)
        icon = self._icons.pixmap(card.icon, size, theme.tokens.text2, self.devicePixelRatioF())
        painter.drawPixmap(QPointF(inner.left(), middle - size / 2), icon)
        line = QRectF(inner.left(), theme.px(14), inner.width(), theme.line_px(Role.TITLE))
        left = line.adjusted(theme.px(30), 0, 0, 0)
        font = theme.font(Role.TITLE)
        self._text(painter, left, Role.TITLE, "text", card.title)
        taken = theme.px(30 + 16) + QFontMetricsF(font).horizontalAdvance(card.title)
        rest = line.adjusted(taken, 0, 0, 0)
        self._text(painter, rest, Role.INTERFACE, "text2", card.label, end=True)

    def _paint_figure(self, painter: QPainter, inner: QRectF, card: Card) -> None:
        theme = self._look.theme
        line = QRectF(inner.left(), theme.px(43), inner.width(), theme.line_px(Role.BIG))
        self._text(painter, line, Role.BIG, "text", card.used)
        big, small = (QFontMetricsF(theme.font(role)) for role in (Role.BIG, Role.INTERFACE))
        left = line.left() + big.horizontalAdvance(card.used) + theme.px(6)
        # Both stand on one baseline.
        down = (big.ascent() - big.descent() - small.ascent() + small.descent()) / 2
        rest = QRectF(left, line.top() + down, line.right() - left, line.height())
        self._text(painter, rest, Role.INTERFACE, "text2", card.whole)

    def _paint_legend(self, painter: QPainter, inner: QRectF, card: Card) -> None:
        theme = self._look.theme
        lines = (len(card.parts) + 1) // 2
        wide = (inner.width() - theme.px(COLUMN_GAP)) / 2
        side, tall = theme.px(10), theme.px(LEGEND_ROW)
        for number, part in enumerate(card.parts):
            column, row = divmod(number, lines)
            left = inner.left() + column * (wide + theme.px(COLUMN_GAP))
            line = QRectF(left, theme.px(LEGEND_TOP) + row * tall, wide, tall)
            swatch = QRectF(left, line.center().y() - side / 2, side, side)
            paint_swatch(painter, swatch, part.kind, theme)
            figure = QFontMetricsF(theme.font(Role.CAPTION_STRONG)).horizontalAdvance(part.figure)
            name = line.adjusted(theme.px(18), 0, -figure - theme.px(8), 0)
            self._text(painter, name, Role.CAPTION, "text2", part.name)
            self._text(painter, line, Role.CAPTION_STRONG, "text", part.figure, end=True)

    def _paint_foot(self, painter: QPainter, inner: QRectF, card: Card) -> None:
        if not card.foot:
            return
        theme = self._look.theme
        top = self.height() - theme.px(42)
        painter.fillRect(QRectF(inner.left(), top, inner.width(), 1), theme.color("line"))
        line = QRectF(inner.left(), top + theme.px(9), inner.width(), theme.px(20))
        if card.mark is not Mark.NONE:
            size = theme.px(14)
            tone = theme.tokens.success if card.mark is Mark.GOOD else theme.tokens.warn
            icon = self._icons.pixmap(card.mark.value, size, tone, self.devicePixelRatioF())
            painter.drawPixmap(QPointF(line.left(), line.center().y() - size / 2), icon)
            line.setLeft(line.left() + theme.px(20))
        self._text(painter, line, Role.CAPTION, "text2", card.foot)

    def _text(
        self,
        painter: QPainter,
        line: QRectF,
        role: Role,
        token: str,
        text: str,
        *,
        end: bool = False,
    ) -> None:
        """One line in the middle of ``line``, cut with an ellipsis where there is no room."""
        theme = self._look.theme
        font = theme.font(role)
        painter.setFont(font)
        painter.setPen(theme.color(token))
        shown = QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideRight, line.width() + 1)
        side = Qt.AlignmentFlag.AlignRight if end else Qt.AlignmentFlag.AlignLeft
        painter.drawText(line, side | Qt.AlignmentFlag.AlignVCenter, shown)

    def _on_look_changed(self, _theme: object) -> None:
        self.update()
