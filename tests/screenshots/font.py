"""The font of the reference's pictures, where it is installed."""

from __future__ import annotations

from PySide6.QtGui import QFont, QFontDatabase


def inter() -> QFont | None:
    """Inter at 13 px; None where it is not installed, so that the system's font is taken."""
    if "Inter" not in QFontDatabase.families():
        return None
    font = QFont("Inter")
    font.setPixelSize(13)
    return font
