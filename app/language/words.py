"""Texts that a person sees, in the language of the window.

The English text is the key; the catalogues under resources/languages hold the others. Without an
installed translation the English text is shown.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QCoreApplication

CONTEXT: Final = "Hearth"
"""The one context of the catalogues."""


def tr(text: str, /, **values: object) -> str:
    """``text`` in the window's language, with ``{name}`` replaced by the value of that name.

    ``text`` must be a literal: the catalogue is gathered from the sources.
    """
    found = QCoreApplication.translate(CONTEXT, text)
    return found.format(**values) if values else found


def tr_count(text: str, count: int, /, **values: object) -> str:
    """``text`` with ``%n`` replaced by ``count``, in the plural form that the language has for it.

    The English form of one is in the English catalogue: ``text`` itself is the form of many.
    """
    found = QCoreApplication.translate(CONTEXT, text, "", count)
    return found.format(**values) if values else found
