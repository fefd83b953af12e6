"""What becomes of text before it is stored or sent. Pure."""

from __future__ import annotations

import unicodedata
from typing import Final

TITLE_CHARACTERS: Final = 60
NEW_CHAT: Final = "New chat"


def whole_characters(text: str) -> str:
    """``text`` with each unpaired surrogate replaced by one U+FFFD; pairs become characters."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def title_of(text: str) -> str:
    """A title from the first words of the first message, at most 60 characters long.

    Controls and direction marks are left out; a cut is marked by an ellipsis at a word's end.
    """
    kept = "".join(c if unicodedata.category(c)[0] != "C" else " " for c in whole_characters(text))
    words = " ".join(kept[: 20 * TITLE_CHARACTERS].split())
    if not words:
        return NEW_CHAT
    if len(words) <= TITLE_CHARACTERS:
        return words
    cut = words[: TITLE_CHARACTERS - 1]
    head, _, _ = cut.rpartition(" ")
    return f"{head if len(head) > TITLE_CHARACTERS // 2 else cut}…"
