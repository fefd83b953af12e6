"""Bringing a database to the version that this Hearth knows, with a copy made first.

A migration is a list of statements that leads from one version to the next. All steps of one start
run in one transaction; before it, the file is copied beside itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from app.chat.storage.database import Database
from app.chat.storage.schema import APPLICATION_ID, CREATE, STEPS, VERSION
from app.errors import StoreDamaged, StoreError, StoreNewer

Statements = Sequence[str]


@dataclass(frozen=True, slots=True)
class Schema:
    """What a database must become.

    Attributes:
        version: the number that ``PRAGMA user_version`` has then.
        create: makes an empty database of that version.
        steps: by the version they start from, statements that lead to the next one.
    """

    version: int
    create: Statements
    steps: Mapping[int, Statements]


FAR_VERSION: Final = 10_000
"""No Hearth writes such a version: the number is damage."""

CURRENT: Final = Schema(VERSION, CREATE, STEPS)


def migrate(database: Database, schema: Schema = CURRENT) -> str | None:
    """Make the tables or bring them up to date.

    Returns:
        A sentence when an older database was changed, naming the copy; else None.

    Raises:
        StoreNewer: the database is of a later version.
        StoreError: it belongs to another program, or something cannot be written.
    """
    version = database.pragma("user_version")
    _check_ours(database, version, schema)
    database.use_wal()
    if version == 0:
        _run(database, schema.create, schema.version)
    elif version < schema.version:
        return _upgrade(database, schema, version)
    return None


def _check_ours(database: Database, version: int, schema: Schema) -> None:
    """Refuse another program's file and a later version's, before anything in it is changed."""
    is_empty = version == 0 and not database.read("SELECT name FROM sqlite_schema LIMIT 1")
    if not is_empty and database.pragma("application_id") != APPLICATION_ID:
        if database.read("SELECT 1 FROM sqlite_schema WHERE name = 'turn_place'"):
            raise StoreDamaged(f"The file {database.path} is damaged: its header is not ours.")
        raise StoreError(f"The file {database.path} belongs to another program.")
    if not 0 <= version < FAR_VERSION:
        raise StoreDamaged(f"The file {database.path} is damaged: version {version}.")
    if version > schema.version:
        raise StoreNewer(
            f"The conversations in {database.path.parent} were written by a newer Hearth "
            f"(version {version} of the file; this one knows {schema.version}). Update Hearth."
        )


def _upgrade(database: Database, schema: Schema, version: int) -> str:
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S-%f")
    path = database.path
    copy = path.with_name(f"{path.stem}.version-{version}.{stamp}{path.suffix}")
    database.back_up(copy)
    statements = [s for step in range(version, schema.version) for s in schema.steps[step]]
    _run(database, statements, schema.version)
    return f"Your conversations were brought to a new format; a copy of before is {copy}."


def _run(database: Database, statements: Statements, version: int) -> None:
    with database.transaction():
        for statement in statements:
            database.write(statement)
        database.write(f"PRAGMA application_id = {APPLICATION_ID}")
        database.write(f"PRAGMA user_version = {version}")
