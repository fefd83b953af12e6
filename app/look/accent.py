"""A theme in a person's own accent: the colour as chosen, and texts in it that can be read.

Contrast is WCAG 2's: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from app.look.tokens import Tokens

TEXT: Final = 4.5
"""Least contrast of text with what it stands on."""
GRAPHIC: Final = 3.0
BLACK: Final = "#000000"
WHITE: Final = "#FFFFFF"
STEPS: Final = 50

Rgb = tuple[float, float, float]


def with_accent(tokens: Tokens, accent: str) -> Tokens:
    """``tokens`` with ``accent`` ("#rrggbb") where a person acts.

    The fill keeps the colour unless it could not be told from the ground; texts in it move towards
    black or white until they can be read.
    """
    away = WHITE if tokens.dark else BLACK
    grounds = (tokens.window, tokens.base, tokens.surface, tokens.bubble, tokens.selected)
    fill = _moved(accent, away, grounds, GRAPHIC)
    on_fill = max((BLACK, WHITE), key=lambda colour: contrast(colour, fill))
    soft = mixed(tokens.base, fill, 0.18 if tokens.dark else 0.12)
    return replace(
        tokens,
        accent=fill,
        accent_hover=_kept_readable(mixed(fill, away, 0.12), on_fill),
        accent_pressed=_kept_readable(mixed(fill, BLACK, 0.2), on_fill),
        on_accent=on_fill,
        accent_text=_moved(accent, away, (tokens.pressed, *grounds, soft), TEXT),
        accent_soft=soft,
        on_accent_soft=_moved(accent, away, (soft,), TEXT),
        focus=_moved(accent, away, grounds, GRAPHIC),
    )


def contrast(one: str, other: str) -> float:
    """From 1, the same, to 21, black and white."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def mixed(one: str, other: str, share: float) -> str:
    """``one`` with ``share`` of ``other`` in it."""
    pairs = zip(_channels(one), _channels(other), strict=True)
    return _written([a + (b - a) * share for a, b in pairs])


def _moved(colour: str, towards: str, grounds: Sequence[str], least: float) -> str:
    """The first colour on the way to ``towards`` that has ``least`` contrast with all grounds."""
    for step in range(STEPS + 1):
        found = mixed(colour, towards, step / STEPS)
        if min(contrast(found, ground) for ground in grounds) >= least:
            return found
    return towards


def _kept_readable(fill: str, text: str) -> str:
    """``fill``, moved away from ``text`` until that can be read on it."""
    return _moved(fill, WHITE if text == BLACK else BLACK, (text,), TEXT)


def _luminance(colour: str) -> float:
    def linear(channel: float) -> float:
        share = channel / 255
        return share / 12.92 if share <= 0.04045 else float(((share + 0.055) / 1.055) ** 2.4)

    red, green, blue = map(linear, _channels(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _channels(colour: str) -> Rgb:
    value = int(colour.removeprefix("#"), 16)
    return value >> 16, value >> 8 & 255, value & 255


def _written(channels: Sequence[float]) -> str:
    return "#" + "".join(f"{round(channel):02X}" for channel in channels)
