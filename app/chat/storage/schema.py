"""Version 3 of the store's tables, and how an older one becomes it.

    conversation   one row a conversation; ``leaf`` is the end of the shown path
    turn           the tree: each row knows its parent and its number among its siblings; a turn in
                   the trash is not read, nor what follows it
    reply          facts of an assistant's turn; exact ids as little-endian int32
    blob           contents in the blob folder, by SHA-256
    turn_blob      which blobs a turn carries, in order
    turn_words     full-text index over ``turn.text``, by triples of letters: any part of a word is
                   found in any language, once a reply is no longer written
    title_words    the same over ``conversation.title``

Times are milliseconds since 1970, UTC. Lists and records are JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

VERSION: Final = 3
APPLICATION_ID: Final = 0x48727468  # "Hrth"

WORDS: Final = (
    "CREATE VIRTUAL TABLE turn_words USING fts5(text, tokenize = 'trigram')",
    "CREATE VIRTUAL TABLE title_words USING fts5(title, tokenize = 'trigram')",
)
"""The indexes; ``WordIndex`` keeps them."""

WORDS_FILLED: Final = (
    "INSERT INTO turn_words (rowid, text) SELECT id, text FROM turn WHERE state <> 'streaming'",
    "INSERT INTO title_words (rowid, title) SELECT id, title FROM conversation",
)
"""Fills empty indexes from the tables."""

CREATE: Final = (
    """
    CREATE TABLE conversation (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        title TEXT NOT NULL,
        title_given INTEGER NOT NULL DEFAULT 0 CHECK (title_given IN (0, 1)),
        created_ms INTEGER NOT NULL,
        updated_ms INTEGER NOT NULL,
        date TEXT,
        system TEXT,
        model TEXT,
        draft TEXT NOT NULL DEFAULT '',
        leaf INTEGER REFERENCES turn(id) ON DELETE SET NULL,
        trashed_ms INTEGER,
        pinned_ms INTEGER,
        preset TEXT,
        sampling TEXT,
        thinking INTEGER CHECK (thinking IN (0, 1)),
        scroll_turn INTEGER,
        scroll_share REAL
    ) STRICT
    """,
    "CREATE INDEX conversation_updated ON conversation (updated_ms)",
    """
    CREATE TABLE turn (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        conversation INTEGER NOT NULL REFERENCES conversation(id) ON DELETE CASCADE,
        parent INTEGER REFERENCES turn(id) ON DELETE CASCADE,
        sibling INTEGER NOT NULL CHECK (sibling >= 0),
        role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
        state TEXT NOT NULL CHECK (state IN ('whole', 'streaming', 'stopped', 'cut', 'failed')),
        text TEXT NOT NULL,
        thinking_text TEXT NOT NULL DEFAULT '',
        created_ms INTEGER NOT NULL,
        trashed_ms INTEGER
    ) STRICT
    """,
    "CREATE UNIQUE INDEX turn_place ON turn (conversation, ifnull(parent, 0), sibling)",
    "CREATE INDEX turn_parent ON turn (parent)",
    "CREATE INDEX turn_streaming ON turn (state) WHERE state = 'streaming'",
    """
    CREATE TABLE reply (
        turn INTEGER PRIMARY KEY REFERENCES turn(id) ON DELETE CASCADE,
        ids BLOB NOT NULL DEFAULT x'',
        template_hash TEXT,
        model_name TEXT NOT NULL,
        model_digest TEXT,
        sampling TEXT NOT NULL,
        seed INTEGER,
        stop_reason TEXT,
        prompt_tokens INTEGER,
        resumed_tokens INTEGER,
        resumed_from TEXT,
        resumed_bytes INTEGER,
        resumed_ms REAL,
        on_gpu INTEGER,
        reason TEXT,
        dropped_messages INTEGER,
        completion_tokens INTEGER,
        timings TEXT,
        problem TEXT,
        thinking_ms REAL,
        thinking_tokens INTEGER,
        notes TEXT NOT NULL DEFAULT '[]'
    ) STRICT
    """,
    """
    CREATE TABLE blob (
        sha256 TEXT PRIMARY KEY CHECK (length(sha256) = 64),
        byte_count INTEGER NOT NULL,
        media_type TEXT NOT NULL,
        created_ms INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE turn_blob (
        turn INTEGER NOT NULL REFERENCES turn(id) ON DELETE CASCADE,
        place INTEGER NOT NULL,
        sha256 TEXT NOT NULL REFERENCES blob(sha256),
        name TEXT NOT NULL,
        PRIMARY KEY (turn, place)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX turn_blob_content ON turn_blob (sha256)",
    *WORDS,
)

STEPS: Final[Mapping[int, Sequence[str]]] = MappingProxyType(
    {
        1: (
            "ALTER TABLE reply ADD COLUMN resumed_from TEXT",
            "ALTER TABLE reply ADD COLUMN resumed_bytes INTEGER",
            "ALTER TABLE reply ADD COLUMN resumed_ms REAL",
            "ALTER TABLE reply ADD COLUMN on_gpu INTEGER",
            "ALTER TABLE reply ADD COLUMN reason TEXT",
            "ALTER TABLE reply ADD COLUMN dropped_messages INTEGER",
        ),
        2: (
            "ALTER TABLE conversation ADD COLUMN pinned_ms INTEGER",
            "ALTER TABLE conversation ADD COLUMN preset TEXT",
            "ALTER TABLE conversation ADD COLUMN sampling TEXT",
            "ALTER TABLE conversation ADD COLUMN thinking INTEGER CHECK (thinking IN (0, 1))",
            "ALTER TABLE conversation ADD COLUMN scroll_turn INTEGER",
            "ALTER TABLE conversation ADD COLUMN scroll_share REAL",
            "ALTER TABLE turn ADD COLUMN trashed_ms INTEGER",
            "ALTER TABLE reply ADD COLUMN thinking_ms REAL",
            "ALTER TABLE reply ADD COLUMN thinking_tokens INTEGER",
            *WORDS,
            *WORDS_FILLED,
        ),
    }
)
"""By the version they start from, statements that lead to the next one."""
