"""The settings page: every field of the record with a control, each change told at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec
from PySide6.QtCore import QLocale, Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from app.language.install import languages
from app.language.words import tr
from app.look.icons import Icons
from app.look.theme import Look, Role
from app.pages.page import FullPage
from app.pages.settings.card import Card, SettingsRow
from app.pages.settings.controls import Control, control_for
from app.pages.settings.fields import Button, Field, Wanted, sections
from app.pages.settings.folders import FolderControl
from app.pages.settings.switch import SwitchButton
from app.settings.record import Settings

HEIGHT: Final = 34


class SettingsPage(FullPage):
    """All settings. Emits ``changed`` with the new Settings, ``wanted`` with a Wanted.

    Attributes:
        controls: by the name of the field.
        buttons: by what they ask for.
    """

    changed = Signal(object)
    wanted = Signal(object)

    def __init__(
        self, look: Look, icons: Icons, read: Callable[[], Settings], parent: QWidget
    ) -> None:
        """Make the page; ``read`` gives the settings as they are, for others set some too."""
        super().__init__(look, icons, tr("Settings"), parent)
        self._icons = icons
        self._read = read
        self._headings: list[QLabel] = []
        self._parts: list[QWidget] = []
        self.controls: dict[str, Control | FolderControl] = {}
        self.buttons: dict[Wanted, QPushButton] = {}
        for section in sections(_names()):
            self._add_heading(section.title)
            card = Card(look, self)
            for row in section.rows:
                made = self._field(row, card) if isinstance(row, Field) else self._button(row, card)
                card.add(made)
            self.column.addWidget(card)
        self.column.addStretch(1)
        look.changed.connect(self._restyle)
        self._restyle()
        self.setFocusProxy(self.controls["theme"])

    def refresh(self) -> None:
        """Show the settings as they are."""
        settings = self._read()
        for name, control in self.controls.items():
            control.show_value(getattr(settings, name))

    def showEvent(self, event: QShowEvent) -> None:
        """What is set now, whoever set it."""
        super().showEvent(event)
        self.refresh()

    def _field(self, field: Field, card: QWidget) -> SettingsRow:
        control = control_for(field, self._look, self._icons, card)
        control.changed.connect(partial(self._on_changed, field.name))
        self.controls[field.name] = control
        self._take(control.focusProxy() or control)
        parts = (field.hint, tr("from the next start")) if field.at_start else (field.hint,)
        return SettingsRow(self._look, field.title, " · ".join(parts), control, card)

    def _button(self, facts: Button, card: QWidget) -> SettingsRow:
        button = QPushButton(facts.verb, card)
        button.setAccessibleName(tr("{verb}: {title}", verb=facts.verb, title=facts.title))
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.clicked.connect(partial(self.wanted.emit, facts.wanted))
        self.buttons[facts.wanted] = button
        self._take(button)
        return SettingsRow(self._look, facts.title, facts.hint, button, card)

    def _take(self, part: QWidget) -> None:
        """A part that the keyboard reaches, and that is as high as all are."""
        self.follow_focus(part)
        if not isinstance(part, SwitchButton):
            self._parts.append(part)

    def _on_changed(self, name: str, value: object) -> None:
        changes = {name: value}
        try:
            # Read back as the file would be, so that what cannot be kept is never shown as set.
            table = msgspec.to_builtins(msgspec.structs.replace(self._read(), **changes))
            settings = msgspec.convert(table, Settings)
        except msgspec.ValidationError:
            self.refresh()
            return
        self.changed.emit(settings)

    def _add_heading(self, text: str) -> None:
        label = QLabel(text, self)
        self._headings.append(label)
        self.column.addWidget(label)

    def _restyle(self, _theme: object = None) -> None:
        theme = self._look.theme
        for label in self._headings:
            label.setFont(theme.font(Role.TITLE))
        for part in self._parts:
            part.setFixedHeight(theme.px(HEIGHT))


def _names() -> tuple[tuple[str, str], ...]:
    """Tags and names of the languages that there are, each in its own."""
    found = [(tag, QLocale(tag).nativeLanguageName()) for tag in languages()]
    return tuple((tag, name[:1].upper() + name[1:]) for tag, name in found)
