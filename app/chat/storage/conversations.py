"""The table of conversations: make, list, read, change, trash."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from app.chat.conversation import Conversation, with_turns
from app.chat.storage.database import Database, Value
from app.chat.storage.rows import TURN_COLUMNS, kept_rows, turn_of
from app.chat.storage.words import WordIndex
from app.errors import StoreError
from app.settings.sampling import SamplingSettings
from app.text import NEW_CHAT, whole_characters


@dataclass(frozen=True, slots=True)
class ConversationEntry:
    """One line of the list of conversations."""

    id: int
    title: str
    created_ms: int
    updated_ms: int
    model: str | None
    trashed_ms: int | None
    pinned_ms: int | None = None


class ConversationTable:
    """Conversations as a whole. Each method is one transaction; raises StoreError."""

    def __init__(self, database: Database, clock_ms: Callable[[], int]) -> None:
        self._database = database
        self._clock_ms = clock_ms
        self._words = WordIndex(database)

    def entries(self, *, trashed: bool = False) -> tuple[ConversationEntry, ...]:
        """Every conversation that is not in the trash, or is; last used first."""
        where = "trashed_ms IS NOT NULL" if trashed else "trashed_ms IS NULL"
        rows = self._database.read(
            f"SELECT * FROM conversation WHERE {where} ORDER BY updated_ms DESC, id DESC"
        )
        return tuple(map(_entry, rows))

    def titled(self, title: str) -> tuple[ConversationEntry, ...]:
        """The conversations outside the trash that have exactly this title."""
        wanted = whole_characters(title)
        return tuple(entry for entry in self.entries() if entry.title == wanted)

    def every_id(self) -> tuple[int, ...]:
        """Every conversation that is there, those in the trash too."""
        return tuple(row["id"] for row in self._database.read("SELECT id FROM conversation"))

    def create(
        self, *, title: str | None = None, system: str | None = None, model: str | None = None
    ) -> Conversation:
        """A new, empty conversation; without a title its first message gives one."""
        now = self._clock_ms()
        with self._database.transaction():
            made = self._database.write(
                "INSERT INTO conversation (title, title_given, created_ms, updated_ms, system,"
                " model) VALUES (?, ?, ?, ?, ?, ?)",
                (
                    whole_characters(title) if title is not None else NEW_CHAT,
                    int(title is not None),
                    now,
                    now,
                    None if system is None else whole_characters(system),
                    model,
                ),
            )
            self._words.put_title(made)
        return self.read(made)

    def read(self, conversation: int) -> Conversation:
        """A conversation with all its turns; raises StoreError when there is none."""
        rows = self._database.read("SELECT * FROM conversation WHERE id = ?", (conversation,))
        if not rows:
            raise StoreError("This conversation is not there any more.")
        turns = self._database.read(
            f"SELECT {TURN_COLUMNS} FROM turn LEFT JOIN reply ON reply.turn = turn.id"
            " WHERE turn.conversation = ? ORDER BY turn.id",
            (conversation,),
        )
        return with_turns(_conversation(rows[0]), map(turn_of, kept_rows(turns)))

    def draft(self, conversation: int) -> str:
        """What was typed but not sent."""
        rows = self._database.read("SELECT draft FROM conversation WHERE id = ?", (conversation,))
        return rows[0][0] if rows else ""

    def rename(self, conversation: int, title: str) -> None:
        """Give a title; it is kept whatever is said later."""
        with self._database.transaction():
            self._database.write(
                "UPDATE conversation SET title = ?, title_given = 1 WHERE id = ?",
                (whole_characters(title), conversation),
            )
            self._words.put_title(conversation)

    def set_system(self, conversation: int, system: str | None) -> None:
        """Set the system prompt; None leaves it to the template."""
        text = None if system is None else whole_characters(system)
        self._change(conversation, "system = ?", text)

    def set_model(self, conversation: int, model: str) -> None:
        """Remember which checkpoint the conversation was last held with."""
        self._change(conversation, "model = ?", model)

    def suggest_title(self, conversation: int, title: str) -> None:
        """Give a title that the model made; one that a person gave stays."""
        with self._database.transaction():
            self._database.write(
                "UPDATE conversation SET title = ? WHERE id = ? AND NOT title_given",
                (whole_characters(title), conversation),
            )
            self._words.put_title(conversation)

    def set_draft(self, conversation: int, draft: str) -> None:
        """Remember what was typed but not sent."""
        self._change(conversation, "draft = ?", whole_characters(draft))

    def show(self, conversation: int, leaf: int | None) -> None:
        """Remember which path is shown."""
        self._change(conversation, "leaf = ?", leaf)

    def trash(self, conversation: int) -> None:
        """Put into the trash, from where ``restore`` brings it back."""
        self._change(conversation, "trashed_ms = ?", self._clock_ms())

    def restore(self, conversation: int) -> None:
        """Take out of the trash."""
        self._change(conversation, "trashed_ms = ?", None)

    def erase(self, conversation: int) -> None:
        """Remove a conversation and its turns for good."""
        with self._database.transaction():
            self._words.forget(conversation)
            self._database.write("DELETE FROM conversation WHERE id = ?", (conversation,))

    def _change(self, conversation: int, assignment: str, value: Value) -> None:
        with self._database.transaction():
            self._database.write(
                f"UPDATE conversation SET {assignment} WHERE id = ?", (value, conversation)
            )


def _entry(row: sqlite3.Row) -> ConversationEntry:
    return ConversationEntry(
        id=row["id"],
        title=row["title"],
        created_ms=row["created_ms"],
        updated_ms=row["updated_ms"],
        model=row["model"],
        trashed_ms=row["trashed_ms"],
        pinned_ms=row["pinned_ms"],
    )


def _conversation(row: sqlite3.Row) -> Conversation:
    return Conversation(
        id=row["id"],
        title=row["title"],
        created_ms=row["created_ms"],
        updated_ms=row["updated_ms"],
        system=row["system"],
        date=row["date"],
        model=row["model"],
        leaf=row["leaf"],
        preset=row["preset"],
        sampling=None
        if row["sampling"] is None
        else msgspec.json.decode(row["sampling"], type=SamplingSettings),
        thinking=None if row["thinking"] is None else bool(row["thinking"]),
    )
