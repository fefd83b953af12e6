"""Copying a path of turns into a conversation of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.chat.conversation import Turn
from app.chat.storage.database import Database
from app.chat.storage.rows import REPLY_COLUMNS
from app.chat.storage.words import WordIndex
from app.errors import StoreError


class Copies:
    """Branches. Each method is one transaction; raises StoreError."""

    def __init__(self, database: Database, clock_ms: Callable[[], int]) -> None:
        self._database = database
        self._clock_ms = clock_ms
        self._words = WordIndex(database)

    def branch(self, conversation: int, path: Sequence[Turn], title: str) -> int:
        """A new conversation like this one with the turns of ``path``, pictures too; its id."""
        if not path:
            raise StoreError("There is no message to begin a chat with.")
        now = self._clock_ms()
        with self._database.transaction():
            made = self._database.write(
                "INSERT INTO conversation (title, title_given, created_ms, updated_ms, date,"
                " system, model, preset, sampling, thinking) SELECT ?, 1, ?, ?, date, system,"
                " model, preset, sampling, thinking FROM conversation WHERE id = ?",
                (title, now, now, conversation),
            )
            parent: int | None = None
            for turn in path:
                parent = self._copy(made, parent, turn.id)
            self._database.write("UPDATE conversation SET leaf = ? WHERE id = ?", (parent, made))
            self._words.put_title(made)
        return made

    def _copy(self, conversation: int, parent: int | None, turn: int) -> int:
        made = self._database.write(
            "INSERT INTO turn (conversation, parent, sibling, role, state, text, thinking_text,"
            " created_ms) SELECT ?, ?, 0, role, state, text, thinking_text, created_ms"
            " FROM turn WHERE id = ?",
            (conversation, parent, turn),
        )
        columns = ", ".join(("ids", *REPLY_COLUMNS))
        self._database.write(
            f"INSERT INTO reply (turn, {columns}) SELECT ?, {columns} FROM reply WHERE turn = ?",
            (made, turn),
        )
        self._database.write(
            "INSERT INTO turn_blob (turn, place, sha256, name)"
            " SELECT ?, place, sha256, name FROM turn_blob WHERE turn = ?",
            (made, turn),
        )
        self._words.put_turn(made)
        return made
