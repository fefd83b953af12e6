"""What a conversation is set to: pinned, preset, sampling, thinking, and where it is read."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from app.chat.conversation import Scroll
from app.chat.storage.database import Database, Value
from app.settings.sampling import SamplingSettings


class OptionTable:
    """Options of all conversations. Each method is one transaction; raises StoreError."""

    def __init__(self, database: Database, clock_ms: Callable[[], int]) -> None:
        self._database = database
        self._clock_ms = clock_ms

    def pin(self, conversation: int, pinned: bool) -> None:
        """Keep it at the top of the list, or no more."""
        self._change(conversation, "pinned_ms = ?", self._clock_ms() if pinned else None)

    def set_preset(self, conversation: int, preset: str | None) -> None:
        """Remember the name of the preset that it was given."""
        self._change(conversation, "preset = ?", preset)

    def set_sampling(self, conversation: int, sampling: SamplingSettings | None) -> None:
        """Set how replies are drawn here; None is as everywhere."""
        text = None if sampling is None else msgspec.json.encode(sampling).decode()
        self._change(conversation, "sampling = ?", text)

    def set_thinking(self, conversation: int, thinking: bool | None) -> None:
        """Set whether the model thinks before a reply; None is as it likes."""
        self._change(conversation, "thinking = ?", None if thinking is None else int(thinking))

    def scroll(self, conversation: int) -> Scroll | None:
        """Where the chat was read when it was left; None at its end."""
        rows = self._database.read(
            "SELECT scroll_turn, scroll_share FROM conversation WHERE id = ?", (conversation,)
        )
        if not rows or rows[0][0] is None or rows[0][1] is None:
            return None
        return Scroll(rows[0][0], rows[0][1])

    def set_scroll(self, conversation: int, scroll: Scroll | None) -> None:
        """Remember where the chat is read; None is its end."""
        turn, share = (None, None) if scroll is None else (scroll.turn, scroll.share)
        with self._database.transaction():
            self._database.write(
                "UPDATE conversation SET scroll_turn = ?, scroll_share = ? WHERE id = ?",
                (turn, share, conversation),
            )

    def _change(self, conversation: int, assignment: str, value: Value) -> None:
        with self._database.transaction():
            self._database.write(
                f"UPDATE conversation SET {assignment} WHERE id = ?", (value, conversation)
            )
