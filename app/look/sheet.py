"""The one style sheet, generated from a theme's tokens; class and property selectors only.

What is rounded, animated or drawn over several states is painted by its widget instead. Knows no
Qt: it only writes text.
"""

from __future__ import annotations

from app.look.tokens import Tokens


def style_sheet(tokens: Tokens, scale: float) -> str:
    """Return the style sheet of ``tokens`` with every length multiplied by ``scale``."""
    parts = (_buttons, _fields, _floating, _scrolling)
    return "\n".join(part(tokens, scale) for part in parts)


def _buttons(t: Tokens, scale: float) -> str:
    radius = round(8 * scale)
    small = round(7 * scale)
    side = round(12 * scale)
    return f"""
QPushButton {{
    background: {t.button}; color: {t.text}; border: none; font-weight: 500;
    border-radius: {radius}px; padding: 0 {side}px;
}}
QPushButton:hover {{ background: {t.button_hover}; }}
QPushButton:pressed {{ background: {t.pressed}; }}
QPushButton:focus {{ border: 2px solid {t.focus}; padding: 0 {side - 2}px; }}
QPushButton:disabled {{ color: {t.disabled}; }}
QPushButton[size="small"] {{ border-radius: {small}px; }}
QPushButton[kind="primary"] {{ background: {t.accent}; color: {t.on_accent}; }}
QPushButton[kind="primary"]:hover {{ background: {t.accent_hover}; }}
QPushButton[kind="primary"]:pressed {{ background: {t.accent_pressed}; }}
QPushButton[kind="primary"]:disabled {{ background: {t.track}; color: {t.disabled}; }}
QPushButton[kind="danger"] {{ background: {t.danger_soft}; color: {t.danger}; }}
QPushButton[kind="danger"]:hover {{ background: {t.button_hover}; }}
QPushButton[kind="danger"]:pressed {{ background: {t.pressed}; }}
QPushButton[kind="flat"] {{ background: transparent; }}
QPushButton[kind="flat"]:hover {{ background: {t.hover}; }}
QPushButton[kind="flat"]:pressed {{ background: {t.pressed}; }}
"""


def _fields(t: Tokens, scale: float) -> str:
    radius, side = round(8 * scale), round(10 * scale)
    kinds = ("QComboBox", "QDoubleSpinBox", 'QLineEdit[kind="field"]')
    return f"""
{", ".join(kinds)} {{
    background: {t.surface}; color: {t.text}; border: 1px solid {t.control};
    border-radius: {radius}px; padding: 0 {side}px;
}}
{", ".join(f"{kind}:focus" for kind in kinds)} {{
    border: 2px solid {t.focus}; padding: 0 {side - 1}px;
}}
{", ".join(f"{kind}:disabled" for kind in kinds)} {{ color: {t.disabled}; background: {t.sunken}; }}
QComboBox::drop-down {{ border: none; width: {round(24 * scale)}px; }}
QComboBox QAbstractItemView {{
    background: {t.surface}; color: {t.text}; border: 1px solid {t.line_strong};
    selection-background-color: {t.hover}; selection-color: {t.text};
}}
"""


def _floating(t: Tokens, scale: float) -> str:
    return f"""
QDialog[layer="surface"] {{ background: {t.surface}; }}
QPlainTextEdit[layer="sunken"] {{
    background: {t.sunken}; color: {t.text}; border: 1px solid {t.line};
    border-radius: {round(10 * scale)}px; padding: {round(8 * scale)}px;
}}
QPlainTextEdit[layer="sunken"]:focus {{ border: 2px solid {t.focus}; }}
QLabel[tone="quiet"] {{ color: {t.text2}; }}
QLineEdit[kind="bare"] {{ background: transparent; border: none; }}
QToolTip {{
    background: {t.surface}; color: {t.text}; border: 1px solid {t.line_strong};
    padding: {round(4 * scale)}px {round(8 * scale)}px;
}}
QMenu {{
    background: {t.surface}; color: {t.text}; border: 1px solid {t.line_strong};
    padding: {round(4 * scale)}px;
}}
QMenu::item {{ padding: {round(6 * scale)}px {round(20 * scale)}px; }}
QMenu::item:selected {{ background: {t.hover}; color: {t.text}; }}
QMenu::item:disabled {{ color: {t.disabled}; }}
"""


def _scrolling(t: Tokens, scale: float) -> str:
    width = round(10 * scale)
    return f"""
QScrollBar:vertical {{ background: transparent; width: {width}px; margin: 0; }}
QScrollBar::handle:vertical {{
    background: {t.line_strong}; border-radius: {width // 2 - 2}px; min-height: 32px;
    margin: 2px;
}}
QScrollBar::handle:vertical:hover {{ background: {t.control}; }}
QScrollBar::add-line:vertical, QScrollBar::sub-line:vertical {{ height: 0; }}
QScrollBar::add-page:vertical, QScrollBar::sub-page:vertical {{ background: transparent; }}
"""
