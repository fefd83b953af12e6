"""The table of turns: what a person said, what is replied while it is replied."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from app.chat.conversation import ReplyContent, ReplyFacts, Turn, TurnState
from app.chat.storage.database import Database
from app.chat.storage.rows import (
    REPLY_COLUMNS,
    TURN_COLUMNS,
    ids_to_bytes,
    reply_values,
    turn_of,
)
from app.errors import StoreError
from app.text import title_of, whole_characters


class TurnTable:
    """Turns of all conversations. Each method is one transaction; raises StoreError."""

    def __init__(self, database: Database, clock_ms: Callable[[], int]) -> None:
        self._database = database
        self._clock_ms = clock_ms

    def read(self, turn: int) -> Turn:
        """One turn; raises StoreError when there is none."""
        rows = self._database.read(
            f"SELECT {TURN_COLUMNS} FROM turn LEFT JOIN reply ON reply.turn = turn.id"
            " WHERE turn.id = ?",
            (turn,),
        )
        if not rows:
            raise StoreError("This message is not there any more.")
        return turn_of(rows[0])

    def add_user(self, conversation: int, parent: int | None, text: str) -> Turn:
        """Store what a person said, as the newest turn after ``parent``; it becomes the leaf.

        The first one gives the conversation its date, and its title unless it has one.
        """
        text = whole_characters(text)
        with self._database.transaction():
            turn = self._add(conversation, parent, "user", TurnState.WHOLE, text)
            now = self._clock_ms()
            date = datetime.fromtimestamp(now / 1000, UTC).astimezone().date().isoformat()
            self._database.write(
                "UPDATE conversation SET draft = '', date = ifnull(date, ?), title ="
                " CASE WHEN title_given OR date IS NOT NULL THEN title ELSE ? END WHERE id = ?",
                (date, title_of(text), conversation),
            )
        return self.read(turn)

    def begin_reply(self, conversation: int, parent: int, facts: ReplyFacts) -> Turn:
        """Store an empty reply to ``parent`` that is being written; it becomes the leaf."""
        with self._database.transaction():
            turn = self._add(conversation, parent, "assistant", TurnState.STREAMING, "")
            columns = ", ".join(("turn", *REPLY_COLUMNS))
            marks = ", ".join("?" for _ in range(len(REPLY_COLUMNS) + 1))
            self._database.write(
                f"INSERT INTO reply ({columns}) VALUES ({marks})", (turn, *reply_values(facts))
            )
        return self.read(turn)

    def write_reply(self, turn: int, content: ReplyContent) -> None:
        """Store what has come of a reply so far: all of it, not the difference."""
        with self._database.transaction():
            self._write_content(turn, TurnState.STREAMING, content)

    def end_reply(
        self, turn: int, state: TurnState, content: ReplyContent, facts: ReplyFacts
    ) -> Turn:
        """Store a reply that gets no more."""
        with self._database.transaction():
            self._write_content(turn, state, content)
            assignments = ", ".join(f"{column} = ?" for column in REPLY_COLUMNS)
            self._database.write(
                f"UPDATE reply SET {assignments} WHERE turn = ?", (*reply_values(facts), turn)
            )
            self._database.write(
                "UPDATE conversation SET updated_ms = ? WHERE id ="
                " (SELECT conversation FROM turn WHERE id = ?)",
                (self._clock_ms(), turn),
            )
        return self.read(turn)

    def mark_cut(self) -> int:
        """Mark replies that an ended process left unfinished; how many there were.

        Only for who holds the data directory's lock: nobody else can be writing one.
        """
        found = self._database.read("SELECT count(*) FROM turn WHERE state = 'streaming'")[0][0]
        if found:
            with self._database.transaction():
                self._database.write("UPDATE turn SET state = 'cut' WHERE state = 'streaming'")
        return int(found)

    def _add(
        self, conversation: int, parent: int | None, role: str, state: TurnState, text: str
    ) -> int:
        self._check_parent(conversation, parent)
        now = self._clock_ms()
        turn = self._database.write(
            "INSERT INTO turn (conversation, parent, sibling, role, state, text, created_ms)"
            " VALUES (?, ?, (SELECT ifnull(max(sibling) + 1, 0) FROM turn"
            " WHERE conversation = ? AND parent IS ?), ?, ?, ?, ?)",
            (conversation, parent, conversation, parent, role, state.value, text, now),
        )
        self._database.write(
            "UPDATE conversation SET leaf = ?, updated_ms = ? WHERE id = ?",
            (turn, now, conversation),
        )
        return turn

    def _check_parent(self, conversation: int, parent: int | None) -> None:
        if parent is None:
            query = "SELECT 1 FROM conversation WHERE id = ?"
            rows = self._database.read(query, (conversation,))
        else:
            query = "SELECT 1 FROM turn WHERE id = ? AND conversation = ?"
            rows = self._database.read(query, (parent, conversation))
        if not rows:
            raise StoreError("This conversation or message is not there any more.")

    def _write_content(self, turn: int, state: TurnState, content: ReplyContent) -> None:
        text, thinking = whole_characters(content.text), whole_characters(content.thinking_text)
        self._database.write(
            "UPDATE turn SET state = ?, text = ?, thinking_text = ? WHERE id = ?",
            (state.value, text, thinking, turn),
        )
        self._database.write(
            "UPDATE reply SET ids = ? WHERE turn = ?", (ids_to_bytes(content.ids), turn)
        )
