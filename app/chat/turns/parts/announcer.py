"""Tells a screen reader of a reply: by the sentence while it comes, and that it is there.

Politely: what is being read out is not cut short. Nothing is done while nobody listens.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QWidget

from app.language.words import tr

SENTENCE: Final = re.compile(r"[.!?…:](?=\s)|[。！？]|\n")
LONGEST: Final = 400
"""Text without an end of sentence is told in parts of so many letters."""


class Announcer:
    """Gathers text and tells it; ``tell`` stands for the accessibility interface in tests."""

    def __init__(self, widget: QWidget, tell: Callable[[str], None] | None = None) -> None:
        self._widget = widget
        self._tell = tell
        self._held = ""

    def hear(self, text: str) -> None:
        """Take more of the reply; tell the sentences that are whole."""
        if self._tell is None and not QAccessible.isActive():
            return
        self._held += text
        ends = [match.end() for match in SENTENCE.finditer(self._held)]
        end = ends[-1] if ends else LONGEST if len(self._held) > LONGEST else 0
        if end:
            said, self._held = self._held[:end].strip(), self._held[end:]
            self._say(said)

    def finish(self) -> None:
        """The reply is there: tell the rest of it, and that it has ended."""
        rest, self._held = self._held.strip(), ""
        self._say(rest)
        self._say(tr("The reply is finished"))

    def forget(self) -> None:
        """Another chat is shown."""
        self._held = ""

    def _say(self, text: str) -> None:
        if not text:
            return
        if self._tell is not None:
            self._tell(text)
        elif QAccessible.isActive():
            event = QAccessibleAnnouncementEvent(self._widget, text)
            event.setPoliteness(QAccessible.AnnouncementPoliteness.Polite)
            QAccessible.updateAccessibility(event)
