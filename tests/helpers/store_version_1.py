"""A store as the first version of Hearth wrote it: its own statements, not today's."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

APPLICATION_ID: Final = 0x48727468

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
        trashed_ms INTEGER
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
        created_ms INTEGER NOT NULL
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
        completion_tokens INTEGER,
        timings TEXT,
        problem TEXT,
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
)

FILL: Final = (
    "INSERT INTO conversation (id, title, created_ms, updated_ms, date, leaf)"
    " VALUES (7, 'Old chat', 1, 2, '2026-01-02', NULL)",
    "INSERT INTO turn (id, conversation, sibling, role, state, text, created_ms)"
    " VALUES (1, 7, 0, 'user', 'whole', 'What is it?', 1)",
    "INSERT INTO turn (id, conversation, parent, sibling, role, state, text, created_ms)"
    " VALUES (2, 7, 1, 0, 'assistant', 'whole', 'It is that.', 2)",
    "INSERT INTO reply (turn, ids, model_name, sampling, prompt_tokens, resumed_tokens)"
    " VALUES (2, x'0100000002000000', 'm', '{}', 31, 7)",
    "UPDATE conversation SET leaf = 2",
)


def write_version_1(path: Path) -> None:
    """A database of version 1 with one conversation, number 7, of a question and a reply."""
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA journal_mode = WAL")
        for statement in (*CREATE, *FILL):
            raw.execute(statement)
        raw.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        raw.execute("PRAGMA user_version = 1")
    raw.close()
