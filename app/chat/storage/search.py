"""Finding chats by any part of any word of their titles and texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from app.chat.storage.database import Database, Value

LEAST_INDEXED: Final = 3
"""Letters of a word that the index can find; shorter ones are looked for row by row."""
BEFORE: Final = 40
AFTER: Final = 80
MOST: Final = 100


@dataclass(frozen=True, slots=True)
class Hit:
    """A turn, or a title where ``turn`` is None, that has all the words.

    Attributes:
        snippet: of the text, around the first of the words, in one line.
        marks: where words stand in the snippet.
    """

    conversation: int
    title: str
    turn: int | None
    snippet: str
    marks: tuple[range, ...]
    updated_ms: int


class Search:
    """Reads only. Chats and turns in the trash are not found."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, words: str, limit: int = MOST) -> tuple[Hit, ...]:
        """What has all of ``words``, titles first, then texts, the last used first."""
        wanted = words.casefold().split()
        if not wanted:
            return ()
        titles = self._rows("title_words", "title", _TITLES, wanted, limit)
        turns = self._rows("turn_words", "text", _TURNS, wanted, limit - len(titles))
        return tuple(
            Hit(row[0], row[1], row[2], *snippet_of(row[3], wanted), row[4])
            for row in (*titles, *turns)
        )

    def _rows(
        self, index: str, column: str, query: str, wanted: list[str], limit: int
    ) -> list[tuple[int, str, int | None, str, int]]:
        long = [word for word in wanted if len(word) >= LEAST_INDEXED]
        short = [word for word in wanted if len(word) < LEAST_INDEXED]
        conditions: list[str] = []
        values: list[Value] = []
        if long:
            # In quotes a word is only letters: no operator of the index gets in.
            match = " AND ".join('"{}"'.format(word.replace('"', '""')) for word in long)
            conditions.append(f"found.id IN (SELECT rowid FROM {index} WHERE {index} MATCH ?)")
            values.append(match)
        for word in short:
            conditions.append(f"found.{column} LIKE ? ESCAPE '\\'")
            values.append(f"%{_escaped(word)}%")
        sql = query.replace("CONDITIONS", " AND ".join(conditions))
        rows = self._database.read(sql, (*values, max(0, limit)))
        return [(row[0], row[1], row[2], row[3], row[4]) for row in rows]


_TITLES: Final = (
    "SELECT found.id, found.title, NULL, found.title, found.updated_ms"
    " FROM conversation AS found WHERE CONDITIONS AND found.trashed_ms IS NULL"
    " ORDER BY found.updated_ms DESC LIMIT ?"
)
_TURNS: Final = (
    "SELECT conversation.id, conversation.title, found.id, found.text, conversation.updated_ms"
    " FROM turn AS found JOIN conversation ON conversation.id = found.conversation"
    " WHERE CONDITIONS AND conversation.trashed_ms IS NULL AND found.trashed_ms IS NULL"
    " ORDER BY conversation.updated_ms DESC, found.id DESC LIMIT ?"
)


def snippet_of(text: str, words: list[str]) -> tuple[str, tuple[range, ...]]:
    """The text around the first of ``words`` that it has, and where they stand in it."""
    folded = text.casefold()
    same = len(folded) == len(text)
    places = [place for word in words if (place := folded.find(word)) >= 0]
    first = min(places, default=0) if same else 0
    start = max(0, first - BEFORE)
    cut = text[start : first + AFTER]
    shown = (
        ("…" if start else "") + " ".join(cut.split()) + ("…" if first + AFTER < len(text) else "")
    )
    lower = shown.casefold()
    if len(lower) != len(shown):
        return shown, ()
    marks: list[range] = []
    for word in dict.fromkeys(words):
        at = lower.find(word)
        while at >= 0:
            marks.append(range(at, at + len(word)))
            at = lower.find(word, at + len(word))
    return shown, tuple(sorted(marks, key=lambda mark: mark.start))


def _escaped(word: str) -> str:
    """A word for LIKE."""
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
