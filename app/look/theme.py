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

from app.look.accent import with_accent
from app.look.sheet import style_sheet
from app.look.tokens import DARK, LIGHT, Tokens

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


@dataclass(frozen=True, slots=True)
class TypeSize:
    """Height, line and letter spacing in px of the reference; ``name`` keeps roles apart."""

    name: str
    height: int
    line: int
    weight: int = 400
    spacing: float = 0.0
    mono: bool = False


class Role(Enum):
    """What a text is, and so how it is set."""

    CAPTION = TypeSize("caption", 12, 16)
    CAPTION_STRONG = TypeSize("caption strong", 12, 16, weight=500)
    INTERFACE = TypeSize("interface", 13, 20)
    STRONG = TypeSize("strong", 13, 20, weight=500)
    TITLE = TypeSize("title", 14, 20, weight=600)
    TITLE_PLAIN = TypeSize("title plain", 14, 20)
    BODY = TypeSize("body", 15, 23)
    BRAND = TypeSize("brand", 15, 24, weight=600)
    PAGE = TypeSize("page title", 16, 24, weight=600)
    BIG = TypeSize("big number", 20, 26, weight=600)
    HEADING = TypeSize("heading", 20, 28, weight=600, spacing=-0.2)
    HEADING_2 = TypeSize("second heading", 18, 26, weight=600, spacing=-0.2)
    TABLE = TypeSize("table", 14, 20)
    THOUGHT = TypeSize("thinking", 14, 21)
    CODE = TypeSize("code", 13, 20, mono=True)


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
        return round(role.value.line * self.scale)

    def font(self, role: Role) -> QFont:
        """The font of ``role``, with figures of equal width."""
        kind = role.value
        font = QFont(self.mono_family if kind.mono else self.family)
        font.setPixelSize(max(SMALLEST_TEXT_PX, round(kind.height * self.scale)))
        font.setWeight(QFont.Weight(kind.weight))
        font.setFeature(QFont.Tag("tnum"), 1)
        if kind.spacing:
            font.setLetterSpacing(QFont.SpacingType.AbsoluteSpacing, kind.spacing * self.scale)
        if kind.mono:
            font.setFeature(QFont.Tag("liga"), 0)
            font.setFeature(QFont.Tag("calt"), 0)
        return font

    def color(self, token: str) -> QColor:
        """The colour of the token with this field name."""
        return QColor(getattr(self.tokens, token))


class Look(QObject):
    """Owns the current theme and puts it on the application; ``zoom`` multiplies every size.

    Emits ``changed`` with the new ``Theme`` after palette and style sheet are in place.
    """

    changed = Signal(object)

    def __init__(
        self,
        application: QApplication,
        preference: Preference = Preference.SYSTEM,
        font: QFont | None = None,
        *,
        zoom: float = 1.0,
        accent: str | None = None,
    ) -> None:
        super().__init__(application)
        self._accent = accent
        self._application = application
        self._zoom = zoom
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

    def magnify(self, zoom: float) -> None:
        """Multiply every size by ``zoom``."""
        self._zoom = zoom
        self._renew()

    def colour(self, accent: str | None) -> None:
        """Take another accent, "#rrggbb"; None is ember."""
        self._accent = accent
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
        tokens = DARK if dark else LIGHT
        info = QFontInfo(self._font)
        return Theme(
            tokens=tokens if self._accent is None else with_accent(tokens, self._accent),
            family=self._font.family(),
            mono_family=_mono_family(),
            scale=self._zoom * info.pixelSize() / SYSTEM_FONT_PX,
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
