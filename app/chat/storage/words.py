"""The full-text index: which words stand in which turn and title.

Written by hand, not by triggers: the schema of a file that may come from elsewhere is not trusted
(``trusted_schema``), and SQLite then keeps virtual tables out of triggers. Every method belongs
into a transaction of the table that changes.
"""

from __future__ import annotations

from app.chat.storage.database import Database


class WordIndex:
    """Keeps the index beside the tables."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put_turn(self, turn: int) -> None:
        """The turn's text is what it is now."""
        self._database.write("DELETE FROM turn_words WHERE rowid = ?", (turn,))
        self._database.write(
            "INSERT INTO turn_words (rowid, text) SELECT id, text FROM turn WHERE id = ?", (turn,)
        )

    def put_title(self, conversation: int) -> None:
        """The conversation's title is what it is now."""
        self._database.write("DELETE FROM title_words WHERE rowid = ?", (conversation,))
        self._database.write(
            "INSERT INTO title_words (rowid, title)"
            " SELECT id, title FROM conversation WHERE id = ?",
            (conversation,),
        )

    def forget(self, conversation: int) -> None:
        """Nothing of the conversation is found any more, nor stays in the index."""
        self._database.write(
            "DELETE FROM turn_words WHERE rowid IN (SELECT id FROM turn WHERE conversation = ?)",
            (conversation,),
        )
        self._database.write("DELETE FROM title_words WHERE rowid = ?", (conversation,))
        for index in ("turn_words", "title_words"):
            # Until its parts are merged the index keeps the letters of what was deleted.
            self._database.write(f"INSERT INTO {index} ({index}) VALUES ('optimize')")
