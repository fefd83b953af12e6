"""One SQLite file: every commit synced, errors as ours.

``Database`` owns the connection and is used from one thread. A transaction that ends without an
exception is on disk (``synchronous=FULL``); one that raises has changed nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from app.errors import StoreDamaged, StoreError, StoreFull

Value = str | int | float | bytes | None
BUSY_MS: Final = 5000
DAMAGE: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class Database:
    """An open database file, private to this user (0600)."""

    def __init__(self, path: Path) -> None:
        """Open or make the file; raises StoreError."""
        self._path = path
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise _from_system(error, path) from error
        with self._translated():
            self._connection = sqlite3.connect(path, isolation_level=None)
        try:
            self._set_up()
        except BaseException:
            self._connection.close()
            raise

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    def close(self) -> None:
        """Close the connection; the WAL is folded into the file."""
        with self._translated():
            self._connection.close()

    def read(self, sql: str, values: Sequence[Value] = ()) -> list[sqlite3.Row]:
        """All rows of a query."""
        with self._translated():
            return self._connection.execute(sql, values).fetchall()

    def write(self, sql: str, values: Sequence[Value] = ()) -> int:
        """Run one statement inside a transaction; the row id of an INSERT, else the last one."""
        assert self._connection.in_transaction, "writes belong into a transaction"
        with self._translated():
            return self._connection.execute(sql, values).lastrowid or 0

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, on disk when it ends."""
        with self._translated():
            self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            with self._translated():
                self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")

    def pragma(self, name: str) -> int:
        """The value of a PRAGMA that is a number."""
        return int(self.read(f"PRAGMA {name}")[0][0])

    def use_wal(self) -> None:
        """Switch the file to a write-ahead log; it stays so. Only for a file that is ours."""
        self.read("PRAGMA journal_mode = WAL")

    def check(self) -> None:
        """Look through the whole file; raises StoreDamaged."""
        found = self.read("PRAGMA quick_check(1)")[0][0]
        if found != "ok":
            raise StoreDamaged(f"The file {self._path} is damaged: {found}.")

    def back_up(self, target: Path) -> None:
        """Copy the database, with what is in its WAL, to a new private file."""
        try:
            os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            with self._translated(), contextlib.closing(sqlite3.connect(target)) as copy:
                self._connection.backup(copy)
            with target.open("rb+") as file:
                os.fsync(file.fileno())
        except OSError as error:
            raise _from_system(error, target) from error

    def _set_up(self) -> None:
        self._connection.row_factory = sqlite3.Row
        with self._translated():
            for pragma in (
                f"busy_timeout = {BUSY_MS}",
                "synchronous = FULL",
                "foreign_keys = ON",
                "secure_delete = ON",
                "trusted_schema = OFF",
            ):
                self._connection.execute(f"PRAGMA {pragma}").fetchall()

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _from_sqlite(error, self._path) from error
        except UnicodeDecodeError as error:
            # SQLite quotes a damaged statement, and Python cannot read the quotation.
            raise StoreDamaged(f"The file {self._path} is damaged.") from error


def _from_sqlite(error: sqlite3.Error, path: Path) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return _full(path)
    if code in DAMAGE:
        return StoreDamaged(f"The file {path} is damaged: {error}.")
    if code == sqlite3.SQLITE_BUSY:
        return StoreError(f"The file {path} is in use by another program.")
    return StoreError(f"The conversations in {path} cannot be read or written: {error}.")


def _from_system(error: OSError, path: Path) -> StoreError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _full(path)
    return StoreError(f"The file {path} cannot be used: {error.strerror or error}.")


def _full(path: Path) -> StoreFull:
    return StoreFull(
        f"The disk that holds {path.parent} is full; free some space. "
        "What was saved before is safe."
    )
