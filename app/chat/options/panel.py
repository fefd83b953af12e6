"""The options of the chat that is shown: system prompt, preset, and how replies are drawn.

Shows what it is told and emits what a person sets; a field that is emptied is as everywhere again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import msgspec
from PySide6.QtCore import Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QComboBox, QLabel, QLineEdit, QPlainTextEdit, QVBoxLayout, QWidget

from app.chat.options.record import NONE, ChatOptions
from app.language.words import tr
from app.look.theme import Look, Role
from app.settings.sampling import Preset, SamplingSettings

WIDTH: Final = 300
FIELD: Final = 32


def field_names() -> dict[str, str]:
    """The fields of how replies are drawn, in words."""
    return {
        "temperature": tr("Temperature"),
        "top_k": tr("Top-k"),
        "top_p": tr("Top-p"),
        "min_p": tr("Min-p"),
        "repetition_penalty": tr("Repetition penalty"),
        "seed": tr("Seed"),
        "max_tokens": tr("Most tokens of a reply"),
    }


def read_field(name: str, text: str, before: SamplingSettings) -> SamplingSettings | None:
    """``before`` with a field as it was typed, empty for None; None where it makes no sense."""
    said = msgspec.to_builtins(before)
    said.pop(name, None)
    if text.strip():
        said[name] = text.strip().replace(",", ".")
    try:
        return msgspec.convert(said, SamplingSettings, strict=False)
    except msgspec.ValidationError:
        return None


class OptionsPanel(QWidget):
    """Emits ``changed`` with the ChatOptions that a person set."""

    changed = Signal(object)

    def __init__(self, look: Look, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._options = NONE
        self._presets: Sequence[Preset] = ()
        self.setAccessibleName(tr("Options of this chat"))
        self._column = QVBoxLayout(self)
        self.preset = QComboBox(self)
        self.preset.activated.connect(self._on_preset)
        self._add(tr("Preset"), self.preset)
        self.system = QPlainTextEdit(self)
        self.system.setProperty("layer", "sunken")
        self.system.setTabChangesFocus(True)
        self.system.setPlaceholderText(tr("As the model has it. A change is read again once."))
        self.system.textChanged.connect(self._on_system)
        self._add(tr("System prompt"), self.system)
        self.fields: dict[str, QLineEdit] = {}
        for name, words in field_names().items():
            line = QLineEdit(self)
            line.setProperty("kind", "field")
            line.setPlaceholderText(tr("as the model recommends"))
            line.setClearButtonEnabled(True)
            line.editingFinished.connect(lambda what=name: self._on_field(what))
            self.fields[name] = line
            self._add(words, line)
        self._column.addStretch(1)
        look.changed.connect(self._on_look_changed)
        self._on_look_changed()

    def show_options(self, options: ChatOptions, presets: Sequence[Preset]) -> None:
        """Show these; nothing is emitted."""
        self._options, self._presets = options, presets
        self.preset.clear()
        self.preset.addItems([tr("None"), *(preset.name for preset in presets)])
        names = [preset.name for preset in presets]
        chosen = names.index(options.preset) + 1 if options.preset in names else 0
        self.preset.setCurrentIndex(chosen)
        self.system.blockSignals(True)
        self.system.setPlainText(options.system or "")
        self.system.blockSignals(False)
        for name, line in self.fields.items():
            value = getattr(options.sampling, name)
            line.setText("" if value is None else str(value))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """A ground of its own, a line at the side."""
        theme = self._look.theme
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.color("base"))
        painter.fillRect(0, 0, 1, self.height(), theme.color("line"))

    def _add(self, words: str, part: QWidget) -> None:
        label = QLabel(words, self)
        label.setFont(self._look.theme.font(Role.CAPTION_STRONG))
        label.setBuddy(part)
        part.setAccessibleName(words)
        self._column.addWidget(label)
        self._column.addWidget(part)

    def _on_preset(self, place: int) -> None:
        preset = self._presets[place - 1] if place else None
        self._tell(self._options.following(preset))
        self.show_options(self._options, self._presets)

    def _on_system(self) -> None:
        self._tell(replace(self._options, system=self.system.toPlainText() or None))

    def _on_field(self, name: str) -> None:
        read = read_field(name, self.fields[name].text(), self._options.sampling)
        if read is None:
            self.show_options(self._options, self._presets)
        else:
            self._tell(replace(self._options, sampling=read))

    def _tell(self, options: ChatOptions) -> None:
        if options != self._options:
            self._options = options
            self.changed.emit(options)

    def _on_look_changed(self, _theme: object = None) -> None:
        theme = self._look.theme
        side = theme.px(16)
        self._column.setContentsMargins(side, side, side, side)
        self._column.setSpacing(theme.px(6))
        self.setFixedWidth(theme.px(WIDTH))
        for part in (self.preset, *self.fields.values()):
            part.setFont(theme.font(Role.INTERFACE))
            part.setFixedHeight(theme.px(FIELD))
        self.system.setFont(theme.font(Role.INTERFACE))
        self.system.setFixedHeight(theme.px(110))
        self.update()
