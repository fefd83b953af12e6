"""The pages that the window can show; the chat is one of them."""

from __future__ import annotations

from enum import Enum


class PageName(Enum):
    """Which page."""

    CHAT = "chat"
    MEMORY = "memory"
    TRASH = "trash"
    SETTINGS = "settings"
    LOG = "log"
    DOCTOR = "doctor"
    ABOUT = "about"
