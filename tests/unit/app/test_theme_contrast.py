"""Every text of both themes can be read: the contrast tables of the reference, computed again."""

from __future__ import annotations

import dataclasses
import re

import pytest

from app.look.tokens import DARK, LIGHT, Tokens

BACKGROUNDS = (
    "window", "base", "surface", "sunken", "bubble", "button", "hover", "selected", "pressed",
)  # fmt: skip

# Published values, light / dark, over BACKGROUNDS in their order.
PUBLISHED = {
    "text": (
        (14.2, 15.7, 16.4, 14.7, 14.0, 13.5, 13.2, 12.0, 11.4),
        (15.2, 14.4, 13.0, 15.5, 11.8, 10.9, 12.4, 10.7, 10.3),
    ),
    "text2": (
        (5.9, 6.6, 6.9, 6.2, 5.9, 5.7, 5.5, 5.0, 4.8),
        (8.0, 7.5, 6.8, 8.1, 6.2, 5.7, 6.5, 5.6, 5.4),
    ),
    "accent_text": (
        (5.6, 6.2, 6.5, 5.8, 5.5, 5.3, 5.2, 4.7, 4.5),
        (8.0, 7.5, 6.8, 8.1, 6.2, 5.7, 6.5, 5.6, 5.4),
    ),
    "success": (
        (5.7, 6.3, 6.6, 5.9, 5.6, 5.4, 5.3, 4.8, 4.6),
        (8.7, 8.2, 7.4, 8.8, 6.7, 6.2, 7.1, 6.1, 5.9),
    ),
    "warn": (
        (5.8, 6.4, 6.7, 6.0, 5.7, 5.5, 5.4, 4.9, 4.6),
        (9.4, 8.9, 8.0, 9.6, 7.3, 6.8, 7.7, 6.7, 6.4),
    ),
    "danger": (
        (5.9, 6.5, 6.8, 6.1, 5.8, 5.6, 5.5, 5.0, 4.7),
        (7.2, 6.8, 6.2, 7.4, 5.6, 5.2, 5.9, 5.1, 4.9),
    ),
}

# (text, background): published light, dark.
PAIRS = {
    ("on_accent", "accent"): (5.6, 6.4),
    ("on_accent", "accent_hover"): (7.1, 7.8),
    ("on_accent", "accent_pressed"): (8.9, 4.9),
    ("on_accent_soft", "accent_soft"): (7.0, 8.1),
    ("text", "accent_soft"): (14.1, 11.7),
    ("text2", "accent_soft"): (5.9, 6.1),
    ("accent_text", "accent_soft"): (5.6, 6.1),
    ("text", "selection"): (11.7, 8.5),
    ("success", "success_soft"): (5.6, 6.4),
    ("warn", "warn_soft"): (5.7, 7.1),
    ("danger", "danger_soft"): (5.7, 5.9),
    ("text", "button_hover"): (12.3, 9.4),
    ("code_keyword", "sunken"): (6.1, 8.5),
    ("code_string", "sunken"): (5.9, 9.9),
    ("code_number", "sunken"): (5.8, 8.9),
    ("code_name", "sunken"): (6.1, 9.1),
    ("code_comment", "sunken"): (5.3, 6.1),
}

CONTROL_GROUNDS = ("window", "base", "surface", "bubble", "selected")
CONTROLS = {
    "control": (3.1, 3.3),
    "focus": (4.1, 5.6),
    "accent": (4.1, 4.4),
    "hot": (3.3, 4.8),
    "warm": (3.1, 5.6),
    "disk": (3.6, 3.9),
}

BAR_GROUNDS = ("base", "surface", "sunken")
BARS = {
    "bar_weights": (5.0, 5.3),
    "bar_chats": (3.1, 3.6),
    "bar_kept": (3.9, 6.8),
    "bar_pictures": (4.4, 5.5),
    "bar_workspace": (3.8, 3.9),
    "bar_other": (8.1, 5.7),
}

THEMES = ((0, LIGHT), (1, DARK))


def luminance(colour: str) -> float:
    """WCAG 2.x relative luminance of ``#rrggbb``."""
    linear = []
    for start in (1, 3, 5):
        part = int(colour[start : start + 2], 16) / 255
        linear.append(part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4)
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(tokens: Tokens, front: str, back: str) -> float:
    one, other = luminance(getattr(tokens, front)), luminance(getattr(tokens, back))
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


@pytest.mark.parametrize(("which", "tokens"), THEMES)
def test_every_text_on_every_background_has_the_published_contrast(
    which: int, tokens: Tokens
) -> None:
    for front, published in PUBLISHED.items():
        for back, wanted in zip(BACKGROUNDS, published[which], strict=True):
            found = contrast(tokens, front, back)
            assert found == pytest.approx(wanted, abs=0.051), (front, back)
            assert found >= 4.45, (front, back)


@pytest.mark.parametrize(("which", "tokens"), THEMES)
def test_fixed_pairs_have_the_published_contrast(which: int, tokens: Tokens) -> None:
    for (front, back), published in PAIRS.items():
        found = contrast(tokens, front, back)
        assert found == pytest.approx(published[which], abs=0.051), (front, back)
        assert found >= 4.5, (front, back)


@pytest.mark.parametrize(("which", "tokens"), THEMES)
def test_controls_and_bar_parts_stand_out_three_to_one(which: int, tokens: Tokens) -> None:
    for grounds, table in ((CONTROL_GROUNDS, CONTROLS), (BAR_GROUNDS, BARS)):
        for front, published in table.items():
            found = min(contrast(tokens, front, back) for back in grounds)
            assert found == pytest.approx(published[which], abs=0.051), front
            assert found >= 3.0, front


def test_every_token_is_a_six_digit_colour_and_both_themes_differ() -> None:
    for field in dataclasses.fields(Tokens):
        light, dark = getattr(LIGHT, field.name), getattr(DARK, field.name)
        assert light != dark, field.name
        if field.name != "dark":
            assert re.fullmatch(r"#[0-9A-F]{6}", light), field.name
            assert re.fullmatch(r"#[0-9A-F]{6}", dark), field.name


def test_a_wrong_colour_would_be_seen() -> None:
    """Control: the table is sensitive to a token one step lighter."""
    paler = dataclasses.replace(LIGHT, text2="#81796F")
    assert contrast(paler, "text2", "pressed") < 4.5
