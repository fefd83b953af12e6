"""The full-text index: which words stand in which turn and title.

Written by hand, not by triggers: the schema of a file that may come from elsewhere is not trusted
(``trusted_schema``), and SQLite then keeps virtual tables out of triggers. Every method belongs
into a transaction of the table that changes. A damaged index is made again from the tables: what
was said is not lost with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.chat.storage.database import Database, Value
from app.chat.storage.schema import WORDS, WORDS_FILLED
from app.errors import StoreDamaged, StoreError


class WordIndex:
    """Keeps the index beside the tables."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def check(self) -> None:
        """Whether the index can be read at all, outside a transaction; raises StoreDamaged."""
        try:
            for index in ("turn_words", "title_words"):
                self._database.read(f"SELECT rowid FROM {index} LIMIT 1")
        except StoreError as error:
            raise StoreDamaged(error.sentence) from error

    def put_turn(self, turn: int) -> None:
        """The turn's text is what it is now."""
        self._change("DELETE FROM turn_words WHERE rowid = ?", (turn,))
        self._change(
            "INSERT INTO turn_words (rowid, text) SELECT id, text FROM turn WHERE id = ?"
            " AND id NOT IN (SELECT rowid FROM turn_words)",
            (turn,),
        )

    def put_title(self, conversation: int) -> None:
        """The conversation's title is what it is now."""
        self._change("DELETE FROM title_words WHERE rowid = ?", (conversation,))
        self._change(
            "INSERT INTO title_words (rowid, title) SELECT id, title FROM conversation"
            " WHERE id = ? AND id NOT IN (SELECT rowid FROM title_words)",
            (conversation,),
        )

    def forget(self, conversation: int) -> None:
        """Nothing of the conversation is found any more, nor stays in the index."""
        self._change(
            "DELETE FROM turn_words WHERE rowid IN (SELECT id FROM turn WHERE conversation = ?)",
            (conversation,),
        )
        self._change("DELETE FROM title_words WHERE rowid = ?", (conversation,))
        for index in ("turn_words", "title_words"):
            # Until its parts are merged the index keeps the letters of what was deleted.
            self._change(f"INSERT INTO {index} ({index}) VALUES ('optimize')")

    def make_again(self) -> None:
        """Drop the index and fill it from the tables."""
        # SQLite drops only an index that it can open: what is inside is first that of an empty one.
        self._database.write("CREATE VIRTUAL TABLE no_words USING fts5(text)")
        for index in ("turn_words", "title_words"):
            for part in ("data", "config"):
                self._database.write(f"DELETE FROM {index}_{part}")
                self._database.write(f"INSERT INTO {index}_{part} SELECT * FROM no_words_{part}")
            self._database.write(f"DROP TABLE {index}")
        self._database.write("DROP TABLE no_words")
        for statement in (*WORDS, *WORDS_FILLED):
            self._database.write(statement)

    def _change(self, sql: str, values: Sequence[Value] = ()) -> None:
        try:
            self._database.write(sql, values)
        except StoreDamaged:
            self.make_again()
            self._database.write(sql, values)
