"""The look of the window: fonts, sizes, palette and style sheet, made from one theme record.

``Look`` owns the current ``Theme`` and replaces it when the system's colour scheme or the person's
choice changes. Widgets that paint themselves take the ``Look`` and paint from ``look.theme``; no
other file holds a colour. Used from the UI thread only.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontInfo, QPalette
from PySide6.QtWidgets import QApplication

from app.theme_sheet import style_sheet
from app.theme_tokens import DARK, LIGHT, Tokens

SYSTEM_FONT_PX: Final = 13
"""Every size of the reference holds where the system font has this height."""

SMALLEST_TEXT_PX: Final = 12

MONO_FAMILIES: Final = (
    "Cascadia Mono",
    "Consolas",
    "Adwaita Mono",
    "JetBrains Mono",
    "DejaVu Sans Mono",
)


class Role(Enum):
    """What a text is, as (height px, line px, weight, letter spacing px)."""

    CAPTION = (12, 16, 400, 0.0)
    CAPTION_STRONG = (12, 16, 500, 0.0)
    INTERFACE = (13, 20, 400, 0.0)
    STRONG = (13, 20, 500, 0.0)
    TITLE = (14, 20, 600, 0.0)
    TITLE_PLAIN = (14, 20, 400, 0.0)
    BODY = (15, 23, 400, 0.0)
    BRAND = (16, 24, 600, 0.0)
    HEADING = (20, 28, 600, -0.2)
    CODE = (13, 20, 400, 0.0)


class Preference(Enum):
    """Which theme the person asked for."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


@dataclass(frozen=True, slots=True)
class Theme:
    """Everything a painter needs: colours, font families and the scale of all sizes."""

    tokens: Tokens
    family: str
    mono_family: str
    scale: float

    def px(self, size: float) -> int:
        """A length of the reference in logical pixels of this system."""
        return round(size * self.scale)

    def line_px(self, role: Role) -> int:
        """The least height of a line of ``role``; scripts with tall letters may exceed it."""
        return round(role.value[1] * self.scale)

    def font(self, role: Role) -> QFont:
        """The font of ``role``, with figures of equal width."""
        size, _, weight, spacing = role.value
        font = QFont(self.mono_family if role is Role.CODE else self.family)
        font.setPixelSize(max(SMALLEST_TEXT_PX, round(size * self.scale)))
        font.setWeight(QFont.Weight(weight))
        font.setFeature(QFont.Tag("tnum"), 1)
        if spacing:
            font.setLetterSpacing(QFont.SpacingType.AbsoluteSpacing, spacing * self.scale)
        if role is Role.CODE:
            font.setFeature(QFont.Tag("liga"), 0)
            font.setFeature(QFont.Tag("calt"), 0)
        return font

    def color(self, token: str) -> QColor:
        """The colour of the token with this field name."""
        return QColor(getattr(self.tokens, token))


class Look(QObject):
    """Owns the current theme and puts it on the application.

    Emits ``changed`` with the new ``Theme`` after palette and style sheet are in place.
    """

    changed = Signal(object)

    def __init__(
        self,
        application: QApplication,
        preference: Preference = Preference.SYSTEM,
        font: QFont | None = None,
    ) -> None:
        super().__init__(application)
        self._application = application
        self._preference = preference
        self._hints = application.styleHints()
        self._system_dark = self._hints.colorScheme() is Qt.ColorScheme.Dark
        self._font = font or QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont)
        application.setStyle("Fusion")
        self._tell_system()
        self.theme = self._resolve()
        self._apply()
        self._hints.colorSchemeChanged.connect(self._on_scheme_changed)

    def prefer(self, preference: Preference) -> None:
        """Follow the system, or stay light or dark."""
        self._preference = preference
        self._tell_system()
        self._renew()

    def _on_scheme_changed(self, scheme: Qt.ColorScheme) -> None:
        self._system_dark = scheme is Qt.ColorScheme.Dark
        self._renew()

    def _tell_system(self) -> None:
        """Let the frame and native dialogs follow the person's choice, where the system can."""
        if self._preference is Preference.SYSTEM:
            self._hints.unsetColorScheme()
        elif self._preference is Preference.DARK:
            self._hints.setColorScheme(Qt.ColorScheme.Dark)
        else:
            self._hints.setColorScheme(Qt.ColorScheme.Light)

    def _renew(self) -> None:
        theme = self._resolve()
        if theme == self.theme:
            return
        self.theme = theme
        self._apply()
        self.changed.emit(theme)

    def _resolve(self) -> Theme:
        follow = self._preference is Preference.SYSTEM
        dark = self._system_dark if follow else self._preference is Preference.DARK
        info = QFontInfo(self._font)
        return Theme(
            tokens=DARK if dark else LIGHT,
            family=self._font.family(),
            mono_family=_mono_family(),
            scale=info.pixelSize() / SYSTEM_FONT_PX,
        )

    def _apply(self) -> None:
        self._application.setFont(self.theme.font(Role.INTERFACE))
        self._application.setPalette(palette(self.theme.tokens))
        self._application.setStyleSheet(style_sheet(self.theme.tokens, self.theme.scale))


def palette(tokens: Tokens) -> QPalette:
    """The Qt palette of a theme: for every widget that does not paint itself."""
    role = QPalette.ColorRole
    made = QPalette()
    for target, colour in (
        (role.Window, tokens.window),
        (role.Base, tokens.base),
        (role.AlternateBase, tokens.sunken),
        (role.Button, tokens.button),
        (role.Mid, tokens.line),
        (role.Midlight, tokens.line_strong),
        (role.Dark, tokens.control),
        (role.WindowText, tokens.text),
        (role.Text, tokens.text),
        (role.ButtonText, tokens.text),
        (role.PlaceholderText, tokens.text2),
        (role.ToolTipBase, tokens.surface),
        (role.ToolTipText, tokens.text),
        (role.Accent, tokens.accent),
        (role.Link, tokens.accent_text),
        (role.BrightText, tokens.danger),
        (role.Highlight, tokens.selection),
        (role.HighlightedText, tokens.text),
    ):
        made.setColor(target, QColor(colour))
    for target in (role.WindowText, role.Text, role.ButtonText):
        made.setColor(QPalette.ColorGroup.Disabled, target, QColor(tokens.disabled))
    return made


def _mono_family() -> str:
    """The first family of the list that is installed, else the system's fixed font."""
    installed = set(QFontDatabase.families())
    for family in MONO_FAMILIES:
        if family in installed:
            return family
    return QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family()
