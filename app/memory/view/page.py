"""The memory page: a card for each pool, and below the chats of which the engine keeps a state.

Shows what it is told and says what a person wants; asks nothing itself.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QModelIndex, QRectF, Qt, Signal
from PySide6.QtGui import QHideEvent, QPainter, QPaintEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget

from app.language.words import tr
from app.look.icons import Icons
from app.look.theme import Look
from app.memory.model import MemoryView
from app.memory.rows import Column, count_words, filtered_rows, sorted_rows
from app.memory.view.kept_list import KeptList
from app.memory.view.kept_model import COLUMNS
from app.memory.view.pool_card import PoolCard
from app.pages.head import HeadAction, PageHead

PADDING: Final = 24
TOP: Final = 18
BETWEEN_CARDS: Final = 14
LEAST_CARD: Final = 272
BETWEEN: Final = 18
HEAD: Final = 52


class MemoryPage(QWidget):
    """The page.

    Signals: ``shown_changed`` whether it can be seen; the head's buttons ask for the sidebar, a new
    chat and for the model to be unloaded; the list's own signals carry rows.
    """

    shown_changed = Signal(bool)

    def __init__(self, look: Look, icons: Icons, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._icons = icons
        self._view = MemoryView()
        self._sort = Column.WHERE
        self._falling = False
        self.head = PageHead(
            look,
            icons,
            self,
            tr("Memory"),
            HeadAction("eject", tr("Unload the model"), tr("Gives its memory back; chats stay")),
        )
        self._scroll = QScrollArea(self)
        self._ground = QWidget()
        self._scroll.setWidget(self._ground)
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setAccessibleName("Memory")
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.viewport().setAutoFillBackground(False)
        self._ground.setAutoFillBackground(False)
        self._cards: list[PoolCard] = []
        self.kept = KeptList(look, icons, self._ground)
        self.kept.filter.line.textChanged.connect(self._on_filter_changed)
        self.kept.table.head.sectionClicked.connect(self._on_head_clicked)
        self.kept.table.selectionModel().currentChanged.connect(self._on_current_changed)
        look.changed.connect(self._on_look_changed)
        self._on_look_changed()
        self.setFocusProxy(self.kept.table)

    @property
    def cards(self) -> tuple[PoolCard, ...]:
        """The cards that are shown."""
        return tuple(self._cards)

    def show_view(self, view: MemoryView) -> None:
        """Show ``view`` in place of what is shown."""
        self._view = view
        for surplus in self._cards[len(view.cards) :]:
            surplus.hide()
            surplus.deleteLater()
        del self._cards[len(view.cards) :]
        while len(self._cards) < len(view.cards):
            made = PoolCard(self._look, self._icons, self._ground)
            made.show()
            self._cards.append(made)
        for card, facts in zip(self._cards, view.cards, strict=True):
            card.show_card(facts)
        self._show_rows()

    def showEvent(self, event: QShowEvent) -> None:
        """Figures are asked for while the page can be seen."""
        super().showEvent(event)
        self.shown_changed.emit(True)

    def hideEvent(self, event: QHideEvent) -> None:
        """Nothing is asked while it cannot."""
        super().hideEvent(event)
        self.shown_changed.emit(False)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """The quiet ground."""
        QPainter(self).fillRect(QRectF(self.rect()), self._look.theme.color("base"))

    def resizeEvent(self, _event: QResizeEvent) -> None:
        """Head above, the rest scrolls below it."""
        self._arrange()

    # Rows ----------------------------------------------------------------------------------------

    def _show_rows(self) -> None:
        wanted = self.kept.filter.line.text()
        rows = self._view.rows
        shown = sorted_rows(filtered_rows(rows, wanted), self._sort, falling=self._falling)
        self.kept.show_rows(shown, count_words(rows), self._why_empty(wanted))
        self._arrange()

    def _why_empty(self, wanted: str) -> tuple[str, str]:
        """Title and sentence of a list without rows."""
        if not self._view.there:
            return "The engine is not there yet", "Figures come as soon as it has started."
        if not self._view.known:
            return "One moment", "The engine tells its figures as soon as it has time."
        if self._view.rows:
            return f"No chat has “{wanted.strip()}”", "Titles, models and places are searched."
        return (
            "Nothing is kept yet",
            "After a reply, Hearth keeps what the model has read, so that a chat goes on at once.",
        )

    def _on_filter_changed(self, _text: str) -> None:
        self._show_rows()

    def _on_head_clicked(self, section: int) -> None:
        column = COLUMNS[section].value[1]
        if column is None:
            return
        self._falling = column is self._sort and not self._falling
        self._sort = column
        order = Qt.SortOrder.DescendingOrder if self._falling else Qt.SortOrder.AscendingOrder
        self.kept.table.head.setSortIndicator(section, order)
        self.kept.table.head.setSortIndicatorShown(True)
        self._show_rows()

    def _on_current_changed(self, current: QModelIndex, _before: QModelIndex) -> None:
        """The row that the keys have reached can be seen."""
        table = self.kept.table
        if current.isValid() and table.hasFocus():
            box = table.visualRect(current)
            place = table.viewport().mapTo(self._ground, box.center())
            margin = box.height()
            self._scroll.ensureVisible(place.x(), place.y(), 0, margin)

    # Places --------------------------------------------------------------------------------------

    def _arrange(self) -> None:
        theme = self._look.theme
        head = theme.px(HEAD)
        self.head.setGeometry(0, 0, self.width(), head)
        self._scroll.setGeometry(0, head, self.width(), max(0, self.height() - head))
        # The scroll bar lies in the padding, so that nothing moves when it comes.
        side = theme.px(PADDING)
        wide = max(theme.px(200), self.width() - 2 * side)
        bottom = self._place_cards(side, theme.px(TOP), wide)
        top = bottom + theme.px(BETWEEN) if self._cards else theme.px(TOP)
        tall = self.kept.wanted_height()
        self.kept.setGeometry(side, top, wide, tall)
        self._ground.resize(side + wide, top + tall + side)

    def _place_cards(self, left: int, top: int, wide: int) -> int:
        """Put the cards side by side in as many columns as fit; return where they end."""
        if not self._cards:
            return top
        theme = self._look.theme
        gap = theme.px(BETWEEN_CARDS)
        columns = max(1, min(len(self._cards), (wide + gap) // (theme.px(LEAST_CARD) + gap)))
        for first in range(0, len(self._cards), columns):
            beside = self._cards[first : first + columns]
            tall = max(card.wanted_height() for card in beside)
            for column, card in enumerate(beside):
                # The last row may have fewer; they share its whole width.
                x = left + round(column * (wide + gap) / len(beside))
                end = left + round((column + 1) * (wide + gap) / len(beside)) - gap
                card.setGeometry(x, top, end - x, tall)
            top += tall + gap
        return top - gap

    def _on_look_changed(self, _theme: object = None) -> None:
        self._scroll.verticalScrollBar().setSingleStep(self._look.theme.px(36))
        self._arrange()
        self.update()
