"""The table of turns: what a person said, what is replied while it is replied."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from app.chat.conversation import (
    Conversation,
    ReplyContent,
    ReplyFacts,
    Turn,
    TurnState,
    with_turns,
)
from app.chat.storage.database import Database
from app.chat.storage.rows import (
    REPLY_COLUMNS,
    TURN_COLUMNS,
    ids_to_bytes,
    kept_rows,
    reply_values,
    turn_of,
)
from app.chat.storage.words import WordIndex
from app.errors import StoreError
from app.text import title_of, whole_characters


class TurnTable:
    """Turns of all conversations. Each method is one transaction; raises StoreError."""

    def __init__(self, database: Database, clock_ms: Callable[[], int]) -> None:
        self._database = database
        self._clock_ms = clock_ms
        self._words = WordIndex(database)

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
            self._words.put_turn(turn)
            self._words.put_title(conversation)
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
            self._words.put_turn(turn)
        return self.read(turn)

    def add_reply(self, conversation: int, parent: int, text: str, facts: ReplyFacts) -> Turn:
        """Store a reply that a person wrote, whole, beside the others to ``parent``."""
        turn = self.begin_reply(conversation, parent, facts)
        content = ReplyContent(text=whole_characters(text))
        return self.end_reply(turn.id, TurnState.WHOLE, content, facts)

    def trash(self, turn: int) -> None:
        """Put a turn into the trash, and with it what follows; ``restore`` undoes it.

        Where the shown path went through it, the newest one beside it is shown.
        """
        with self._database.transaction():
            self._database.write(
                "UPDATE turn SET trashed_ms = ? WHERE id = ?", (self._clock_ms(), turn)
            )
            self._show_what_is_left(self._conversation_of(turn))

    def restore(self, turn: int) -> None:
        """Take a turn out of the trash, and show the path through it."""
        with self._database.transaction():
            self._database.write("UPDATE turn SET trashed_ms = NULL WHERE id = ?", (turn,))
            conversation = self._conversation_of(turn)
            self._database.write(
                "UPDATE conversation SET leaf = ? WHERE id = ?",
                (self._kept(conversation).newest_leaf(turn), conversation),
            )

    def mark_cut(self) -> int:
        """Mark replies that an ended process left unfinished; how many there were.

        Only for who holds the data directory's lock: nobody else can be writing one.
        """
        found = self._database.read("SELECT id FROM turn WHERE state = 'streaming'")
        if found:
            with self._database.transaction():
                self._database.write("UPDATE turn SET state = 'cut' WHERE state = 'streaming'")
                for row in found:
                    self._words.put_turn(row["id"])
        return len(found)

    def _conversation_of(self, turn: int) -> int:
        rows = self._database.read("SELECT conversation FROM turn WHERE id = ?", (turn,))
        if not rows:
            raise StoreError("This message is not there any more.")
        return int(rows[0][0])

    def _kept(self, conversation: int) -> Conversation:
        """The turns of a conversation that are not in the trash."""
        rows = self._database.read(
            f"SELECT {TURN_COLUMNS} FROM turn LEFT JOIN reply ON reply.turn = turn.id"
            " WHERE turn.conversation = ? ORDER BY turn.id",
            (conversation,),
        )
        return with_turns(Conversation(conversation, "", 0, 0), map(turn_of, kept_rows(rows)))

    def _show_what_is_left(self, conversation: int) -> None:
        rows = self._database.read("SELECT leaf FROM conversation WHERE id = ?", (conversation,))
        leaf, kept = rows[0][0], self._kept(conversation)
        while leaf is not None and leaf not in kept.turns:
            leaf = self._database.read("SELECT parent FROM turn WHERE id = ?", (leaf,))[0][0]
        first = kept.children(None)
        if leaf is None and first:
            leaf = first[-1].id
        self._database.write(
            "UPDATE conversation SET leaf = ? WHERE id = ?",
            (None if leaf is None else kept.newest_leaf(leaf), conversation),
        )

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
