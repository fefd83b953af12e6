"""The store of conversations: one SQLite file of the data directory and a folder of blobs.

``Store`` owns the database connection and is used from one thread (``StoreThread`` gives it one of
its own). What a method has returned from is on disk. It never deletes a file: a damaged one is
moved aside, an older one is copied before it is changed, a newer one is refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType

from app.chat.storage.conversations import ConversationEntry, ConversationTable
from app.chat.storage.copies import Copies
from app.chat.storage.database import Database
from app.chat.storage.lengths import LengthTable
from app.chat.storage.migrations import CURRENT, Schema, migrate
from app.chat.storage.options import OptionTable
from app.chat.storage.search import Search
from app.chat.storage.turns import TurnTable
from app.chat.storage.words import WordIndex
from app.errors import StoreDamaged, StoreError, StoreFull
from app.exchange.backups import Backups
from app.files import sync_folder

__all__ = ["ConversationEntry", "OpenedStore", "Store", "open_store"]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Store:
    """All conversations.

    Attributes:
        conversations: conversations as a whole.
        turns: their messages.
        lengths: how long they are.
        options: what a chat is set to.
        search: finds chats by words.
        copies: makes branches.
    """

    def __init__(self, database: Database, clock_ms: Callable[[], int] = _now_ms) -> None:
        self._database = database
        self.conversations = ConversationTable(database, clock_ms)
        self.turns = TurnTable(database, clock_ms)
        self.lengths = LengthTable(database)
        self.options = OptionTable(database, clock_ms)
        self.search = Search(database)
        self.copies = Copies(database, clock_ms)

    def close(self) -> None:
        """Close the database; nothing is waiting to be written."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class OpenedStore:
    """A store and what a person should know of its opening, one sentence each."""

    store: Store
    notices: tuple[str, ...]


def open_store(
    path: Path, *, clock_ms: Callable[[], int] = _now_ms, schema: Schema = CURRENT
) -> OpenedStore:
    """Open the store, or begin one, for who holds the data directory's lock.

    Replies that a crash left unfinished are marked as cut. A damaged file is moved aside; the
    newest sound backup takes its place, or a new file where there is none.

    Raises:
        StoreNewer: the file is of a newer version; it is left as it is.
        StoreError: it cannot be read or written; it is left as it is.
    """
    notices: list[str] = []
    try:
        if not path.exists() and (sentence := _bring_back(path, "is missing")) is not None:
            notices.append(sentence)
        database, notice = _open(path, schema)
    except StoreDamaged:
        notices.append(_replace_damaged(path))
        database, notice = _open(path, schema)
    if notice is not None:
        notices.append(notice)
    store = Store(database, clock_ms)
    try:
        store.turns.mark_cut()
    except StoreError as error:
        notices.append(error.sentence)
    return OpenedStore(store, tuple(notices))


def _open(path: Path, schema: Schema) -> tuple[Database, str | None]:
    database = Database(path)
    try:
        try:
            database.check()
            notice = migrate(database, schema)
            WordIndex(database).check()
        except StoreDamaged as damage:
            _repair(database, damage)
            notice = migrate(database, schema)
        return database, notice
    except BaseException:
        database.close()
        raise


def _repair(database: Database, damage: StoreDamaged) -> None:
    """Make the index of words again; raises ``damage``, nothing changed, if more is damaged."""
    try:
        with database.transaction():
            WordIndex(database).make_again()
            database.check()
    except StoreFull:
        raise
    except StoreError as error:
        raise damage from error


def _bring_back(path: Path, what: str) -> str | None:
    """Put the newest sound backup where no file is; a sentence, None without a backup."""
    ready = Backups(path).prepare()
    return None if ready is None else _put_back(path, ready, what)


def _replace_damaged(path: Path) -> str:
    """Move a damaged file aside and put a backup in its place; a sentence."""
    ready = Backups(path).prepare()  # before the move: a full disk then changes nothing
    what = f"was damaged; it was kept as {_move_aside(path)}"
    if ready is None:
        return f"The file of your conversations {what} and a new one begun."
    return _put_back(path, ready, what)


def _put_back(path: Path, ready: tuple[datetime, Path], what: str) -> str:
    made, copy = ready
    try:
        copy.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise StoreError(
            f"The backup {copy} cannot be put in place: {error.strerror or error}."
        ) from error
    when = made.astimezone().strftime("%Y-%m-%d %H:%M")
    return (
        f"The file of your conversations {what}. They are back from the backup of {when}; "
        "what was written later is not among them."
    )


def _move_aside(path: Path) -> Path:
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S-%f")
    aside = path.with_name(f"{path.stem}.damaged-{stamp}{path.suffix}")
    try:
        for ending in ("-wal", "-shm", ""):
            part = path.with_name(path.name + ending)
            if part.exists():
                part.rename(aside.with_name(aside.name + ending))
    except OSError as error:
        raise StoreError(
            f"The damaged file {path} cannot be moved aside: {error.strerror or error}."
        ) from error
    return aside
