"""The row under a turn: buttons that come with the pointer or the keyboard, and its versions.

Its room is always kept, so nothing moves. The buttons are made when they are shown: a long chat has
thousands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent, QResizeEvent
from PySide6.QtWidgets import QMenu, QWidget

from app.chat.blocks.text_blocks import Block
from app.chat.turns.deeds import TurnDeed, TurnVerb, TurnWish, Version
from app.chat.turns.parts.versions import VersionArrows
from app.language.words import tr
from app.look.icons import Icons
from app.look.theme import Look
from app.widgets.icon_button import IconButton

ROW_HEIGHT: Final = 28
INSET: Final = 5
"""The first icon, not its button, stands at the text's edge."""


@dataclass(frozen=True, slots=True)
class RowFacts:
    """Whose row it is.

    Attributes:
        turn: its number.
        name: what it is called for a screen reader.
        deeds: what can be done now; asked each time.
        run: does it.
        at_end: whether the buttons stand at the end of the line instead of its beginning.
    """

    turn: int
    name: str
    deeds: Callable[[], tuple[TurnDeed, ...]]
    run: Callable[[TurnWish], None]
    version: Version | None = None
    at_end: bool = False


class ActionRow(Block):
    """What can be done with one turn.

    Attributes:
        buttons: those that are shown, "more" last; none while the row is quiet.
        versions: the arrows; None where there is one version.
    """

    gap = 2

    def __init__(self, look: Look, icons: Icons, column: QWidget, facts: RowFacts) -> None:
        super().__init__(look, column)
        self._icons = icons
        self.facts = facts
        self.buttons: list[IconButton] = []
        self.versions: VersionArrows | None = None
        if facts.version is not None:
            self.versions = VersionArrows(look, icons, facts.version, self._run, self)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName(facts.name)

    def reveal(self) -> None:
        """Show the buttons, with what can be done now."""
        focused, old = self._focused(), self.buttons
        row = [deed for deed in self.facts.deeds() if deed.in_row]
        self.buttons = [self._button(deed) for deed in row]
        more = IconButton(self.look, self._icons, "more", tr("More"), self, side=ROW_HEIGHT)
        more.setAccessibleDescription(self.facts.name)
        more.clicked.connect(lambda: self._open_menu(more))
        self.buttons.append(more)
        self._place()
        last: QWidget = self
        for button in self.buttons:
            QWidget.setTabOrder(last, button)
            button.show()
            last = button
        # The keyboard is at a button, never at a row that shows them; and it is never nowhere.
        if focused is not None:
            self.buttons[min(focused, len(self.buttons) - 1)].setFocus()
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        _drop(old)

    def conceal(self) -> None:
        """Take the buttons away; the row can be reached with Tab."""
        _drop(self.buttons)
        self.buttons = []
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def fill(self, menu: QMenu) -> None:
        """Put everything that can be done into ``menu``."""
        for deed in self.facts.deeds():
            action = menu.addAction(deed.hint)
            action.setEnabled(deed.enabled)
            action.triggered.connect(lambda _checked=False, verb=deed.verb: self._run(verb))

    def lay_out(self, width: int) -> int:  # noqa: ARG002 - one row at any width
        """As high as a button."""
        return self.look.theme.px(ROW_HEIGHT)

    def restyle(self) -> None:
        """Sizes of the current theme."""
        super().restyle()
        if self.versions is not None:
            self.versions.arrange()

    def resizeEvent(self, _event: QResizeEvent) -> None:
        """The buttons stand at the bottom."""
        self._place()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """The menu of the turn, by keyboard too."""
        self._popup(event.globalPos())

    # Parts ---------------------------------------------------------------------------------------

    def _button(self, deed: TurnDeed) -> IconButton:
        button = IconButton(self.look, self._icons, deed.icon, deed.hint, self, side=ROW_HEIGHT)
        button.setAccessibleName(deed.name)
        button.setAccessibleDescription(self.facts.name)
        button.setEnabled(deed.enabled)
        button.clicked.connect(lambda _checked=False, verb=deed.verb: self._run(verb))
        return button

    def _focused(self) -> int | None:
        """Which button the keyboard is at, the first where it is at the row itself."""
        if self.hasFocus():
            return 0
        return next((i for i, button in enumerate(self.buttons) if button.hasFocus()), None)

    def _place(self) -> None:
        theme = self.look.theme
        side, inset = theme.px(ROW_HEIGHT), theme.px(INSET)
        y = self.height() - side
        wide = sum(button.width() for button in self.buttons)
        x = self.width() + inset - wide if self.facts.at_end else -inset
        if self.versions is not None:
            room = wide if self.facts.at_end else 0
            self.versions.move(self.width() + inset - room - self.versions.width(), y)
        for button in self.buttons:
            button.move(x, y)
            x += button.width()

    def _run(self, verb: TurnVerb) -> None:
        self.facts.run(TurnWish(verb, self.facts.turn))

    def _open_menu(self, button: QWidget) -> None:
        self._popup(button.mapToGlobal(button.rect().bottomLeft()))

    def _popup(self, place: QPoint) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.fill(menu)
        menu.popup(place)


def _drop(buttons: list[IconButton]) -> None:
    for button in buttons:
        button.hide()
        button.deleteLater()
