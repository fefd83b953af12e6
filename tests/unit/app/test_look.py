"""The look follows the system and the person while the window runs, in palette, sheet and fonts."""

from __future__ import annotations

import re

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QPalette

from app.look.sheet import style_sheet
from app.look.theme import Look, Preference, Role, Theme
from app.look.tokens import DARK, LIGHT
from tests.helpers.qt import application, plain_font
from tests.unit.app.conftest import Stage


def test_the_system_changes_the_theme_while_the_window_runs() -> None:
    qt = application()
    look = Look(qt, Preference.SYSTEM, plain_font())
    seen: list[Theme] = []
    look.changed.connect(seen.append)
    for scheme, tokens in (
        (Qt.ColorScheme.Dark, DARK),
        (Qt.ColorScheme.Light, LIGHT),
        (Qt.ColorScheme.Dark, DARK),
    ):
        qt.styleHints().colorSchemeChanged.emit(scheme)
        assert look.theme.tokens is tokens
        assert qt.palette().color(QPalette.ColorRole.Base) == QColor(tokens.base)
        assert tokens.accent in qt.styleSheet()
    assert [theme.tokens.dark for theme in seen] == [True, False, True]
    look.deleteLater()


def test_a_person_who_chose_a_theme_keeps_it_whatever_the_system_does(stage: Stage) -> None:
    stage.look.prefer(Preference.DARK)
    application().styleHints().colorSchemeChanged.emit(Qt.ColorScheme.Light)
    assert stage.look.theme.tokens is DARK


def test_sizes_follow_the_systems_font_and_text_is_never_below_twelve() -> None:
    qt = application()
    small, large = QFont(plain_font()), QFont(plain_font())
    small.setPixelSize(10)
    large.setPixelSize(26)
    low = Look(qt, Preference.LIGHT, small)
    high = Look(qt, Preference.LIGHT, large)
    assert high.theme.px(264) == 528
    assert high.theme.line_px(Role.BODY) == 46
    assert high.theme.font(Role.BODY).pixelSize() == 30
    assert low.theme.font(Role.CAPTION).pixelSize() == 12
    zoomed = Look(qt, Preference.LIGHT, plain_font(), zoom=2.0)
    assert zoomed.theme.px(264) == 528
    for look in (low, high, zoomed):
        look.deleteLater()


def test_every_role_has_a_font_of_its_own(stage: Stage) -> None:
    assert len(Role) == 15
    assert stage.look.theme.font(Role.CODE).family() == stage.look.theme.mono_family
    assert stage.look.theme.font(Role.INTERFACE).family() == stage.look.theme.family


def test_the_sheet_has_no_rule_for_everything_and_only_colours_of_its_theme() -> None:
    for tokens in (LIGHT, DARK):
        sheet = style_sheet(tokens, 1.0)
        assert not re.search(r"(^|\s)\*\s*[,{]", sheet)
        known = {getattr(tokens, name) for name in tokens.__slots__ if name != "dark"}
        assert set(re.findall(r"#[0-9A-Fa-f]{6}", sheet)) <= known


def test_an_icon_has_the_colour_and_ratio_that_were_asked_for(stage: Stage) -> None:
    pixmap = stage.icons.pixmap("copy", 18, "#B0471B", 1.5)
    assert (pixmap.width(), pixmap.devicePixelRatio()) == (27, 1.5)
    image = pixmap.toImage()
    solid = [
        image.pixelColor(x, y)
        for x in range(27)
        for y in range(27)
        if image.pixelColor(x, y).alpha() > 250
    ]
    assert solid and all(colour.name() == "#b0471b" for colour in solid)
    assert stage.icons.pixmap("copy", 18, "#B0471B", 1.5) is pixmap
