"""Controls of the settings page: each shows one value and tells of a new one.

``control_for`` chooses by the field's kind. Values are those of the record's field.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import (
    QComboBox,
    QDoubleSpinBox,
    QHBoxLayout,
    QLineEdit,
    QWidget,
)

from app.language.words import tr
from app.look.icons import Icons
from app.look.theme import Look
from app.pages.settings.fields import Choice, Colour, Field, Folders, Line, Number, Switch
from app.pages.settings.folders import FolderControl
from app.pages.settings.switch import SwitchButton

WIDE: Final = 180

ACCENTS: Final = ("#2F6FB5", "#2E7D5B", "#7A4FB3", "#B03A6B", "#5B6570")
"""Accents to choose from besides ember."""


class Control(QWidget):
    """One value. Emits ``changed`` with a new one, never for ``show_value``."""

    changed = Signal(object)

    @abstractmethod
    def show_value(self, value: object) -> None:
        """Show ``value``."""

    def hold(self, part: QWidget, name: str) -> None:
        """Fill this with ``part``, which takes the keyboard and the name."""
        part.setAccessibleName(name)
        self.setFocusProxy(part)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(part)


class ListBox(QComboBox):
    """A list that is not changed by a wheel that only scrolls the page."""

    def __init__(self, look: Look, icons: Icons, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._icons = icons

    def paintEvent(self, event: QPaintEvent) -> None:
        """The chevron says that there is more."""
        super().paintEvent(event)
        theme = self._look.theme
        size = theme.px(16)
        right_to_left = self.layoutDirection() is Qt.LayoutDirection.RightToLeft
        x = theme.px(8) if right_to_left else self.width() - theme.px(8) - size
        ratio = self.devicePixelRatioF()
        mark = self._icons.pixmap("chevd", size, theme.tokens.text2, ratio)
        QPainter(self).drawPixmap(QPointF(x, (self.height() - size) / 2), mark)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """The page scrolls."""
        event.ignore()


class _Spin(QDoubleSpinBox):
    """A number that is not changed by a wheel that only scrolls the page."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        """The page scrolls."""
        event.ignore()


class ChoiceControl(Control):
    """One of several, in a list."""

    def __init__(
        self,
        look: Look,
        icons: Icons,
        name: str,
        options: tuple[tuple[str | None, str], ...],
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._box = ListBox(look, icons, self)
        self._box.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._values = [value for value, _ in options]
        for _, words in options:
            self._box.addItem(words)
        self._box.setMinimumWidth(look.theme.px(WIDE))
        self._box.activated.connect(lambda place: self.changed.emit(self._values[place]))
        self.hold(self._box, name)

    def show_value(self, value: object) -> None:
        """Show ``value``; one that is not in the list is added to it as it is."""
        if value not in self._values:
            self._values.append(None if value is None else str(value))
            self._box.addItem(str(value))
        self._box.setCurrentIndex(self._values.index(None if value is None else str(value)))


class SwitchControl(Control):
    """On or off."""

    def __init__(self, look: Look, name: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._switch = SwitchButton(look, name, self)
        self._switch.clicked.connect(lambda on: self.changed.emit(bool(on)))
        self.hold(self._switch, name)

    def show_value(self, value: object) -> None:
        """Show ``value``."""
        self._switch.setChecked(bool(value))


class NumberControl(Control):
    """A number, or None one step below the least where the kind has words for that."""

    def __init__(self, look: Look, name: str, kind: Number, parent: QWidget) -> None:
        super().__init__(parent)
        self._kind = kind
        self._spin = _Spin(self)
        self._spin.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._spin.setButtonSymbols(QDoubleSpinBox.ButtonSymbols.NoButtons)
        self._spin.setDecimals(kind.decimals)
        self._spin.setRange(kind.least - (kind.step if kind.none else 0), kind.most)
        self._spin.setSingleStep(kind.step)
        self._spin.setSuffix(kind.unit)
        self._spin.setSpecialValueText(kind.none)
        self._spin.setKeyboardTracking(False)
        self._spin.setMinimumWidth(look.theme.px(WIDE))
        self._spin.valueChanged.connect(self._on_changed)
        self.hold(self._spin, name)

    def show_value(self, value: object) -> None:
        """Show ``value``."""
        self._spin.blockSignals(True)
        shown = self._spin.minimum() if value is None else float(str(value)) * self._kind.factor
        self._spin.setValue(shown)
        self._spin.blockSignals(False)

    def _on_changed(self, shown: float) -> None:
        if self._kind.none and shown < self._kind.least:
            below = shown > self._spin.minimum()
            self.changed.emit(self._kind.least / self._kind.factor if below else None)
        else:
            self.changed.emit(shown / self._kind.factor)


class LineControl(Control):
    """A line of text; told when it is left or Enter is pressed."""

    def __init__(self, look: Look, name: str, kind: Line, parent: QWidget) -> None:
        super().__init__(parent)
        self._shown: str | None = None
        self._line = QLineEdit(self)
        self._line.setProperty("kind", "field")
        self._line.setPlaceholderText(kind.none)
        self._line.setMinimumWidth(look.theme.px(WIDE))
        self._line.editingFinished.connect(self._on_finished)
        self.hold(self._line, name)

    def show_value(self, value: object) -> None:
        """Show ``value``."""
        self._shown = None if value is None else str(value)
        self._line.setText(self._shown or "")

    def _on_finished(self) -> None:
        text = self._line.text().strip() or None
        if text != self._shown:
            self._shown = text
            self.changed.emit(text)


def control_for(field: Field, look: Look, icons: Icons, parent: QWidget) -> Control | FolderControl:
    """The control of a field."""
    match field.kind:
        case Choice(options):
            return ChoiceControl(look, icons, field.title, options, parent)
        case Switch():
            return SwitchControl(look, field.title, parent)
        case Number():
            return NumberControl(look, field.title, field.kind, parent)
        case Line():
            return LineControl(look, field.title, field.kind, parent)
        case Colour():
            return ChoiceControl(look, icons, field.title, _accents(), parent)
        case Folders():
            return FolderControl(look, icons, field.title, parent)


def _accents() -> tuple[tuple[str | None, str], ...]:
    names = (tr("Blue"), tr("Green"), tr("Violet"), tr("Berry"), tr("Slate"))
    return ((None, tr("Ember")), *zip(ACCENTS, names, strict=True))
