"""Daily copies of the conversations, the newest three kept, and the way back from one.

``Backups`` owns the folder ``backups`` beside the store's file. A copy is made by a connection of
its own while the store is in use, is checked, and only then gets its name; an older one goes when
three newer ones are there. Not for the UI thread.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from app.chat.storage.database import Database
from app.chat.storage.schema import APPLICATION_ID
from app.errors import StoreDamaged, StoreError, StoreFull
from app.files import sync_folder

KEPT: Final = 3
EVERY: Final = timedelta(days=1)
STAMP: Final = "%Y%m%d-%H%M%S"


def _now() -> datetime:
    return datetime.now(UTC)


class Backups:
    """The copies of one store file."""

    def __init__(self, store_file: Path, clock: Callable[[], datetime] = _now) -> None:
        self._file = store_file
        self._folder = store_file.with_name("backups")
        self._clock = clock

    def found(self) -> tuple[tuple[datetime, Path], ...]:
        """Every copy by the time it was made, newest first."""
        copies = ((_time(path), path) for path in self._folder.glob("*.sqlite3"))
        return tuple(sorted(((t, path) for t, path in copies if t is not None), reverse=True))

    def make_due(self) -> Path | None:
        """Copy the store where the newest copy is a day old; None where nothing is to be done.

        Raises:
            StoreDamaged: the copy is not sound; the older ones stay.
            StoreError: it cannot be written; the older ones stay.
        """
        now = self._clock()
        found = self.found()
        if found and timedelta(0) <= now - found[0][0] < EVERY:
            return None
        with self._explained():
            made = self._make(self._folder / f"{now.strftime(STAMP)}.sqlite3")
            if made is not None:
                for _, old in self.found()[KEPT:]:
                    old.unlink()
        return made

    def prepare(self) -> tuple[datetime, Path] | None:
        """Lay a copy of the newest sound backup beside the store's file, ready to be renamed.

        Returns:
            When the backup was made and where its copy lies; None where no backup is sound.
        """
        ready = self._file.with_name(f".{self._file.name}.restoring")
        for made, path in self.found():
            if not is_sound(path):
                continue
            with self._explained():
                shutil.copyfile(path, ready)
                ready.chmod(0o600)
                _sync(ready)
            return made, ready
        return None

    def _make(self, target: Path) -> Path | None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        making = self._folder / ".making"
        making.unlink(missing_ok=True)
        with contextlib.closing(Database(self._file)) as database:
            if not database.read("SELECT 1 FROM turn LIMIT 1"):
                return None
            database.back_up(making)
        if not is_sound(making):
            making.unlink()
            raise StoreDamaged(
                f"Today's backup of {self._file} is not sound and was not kept; older ones are."
            )
        making.replace(target)
        sync_folder(self._folder)
        return target

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StoreFull(
                    f"The disk that holds {self._folder} is full, so that no backup of your"
                    " conversations can be written; free some space."
                ) from error
            raise StoreError(
                f"The backups in {self._folder} cannot be used: {error.strerror or error}."
            ) from error


def is_sound(path: Path) -> bool:
    """Whether a closed file is a whole database of ours; changes nothing and leaves nothing."""
    try:
        address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        with contextlib.closing(sqlite3.connect(address, uri=True)) as copy:
            marks = ("application_id", "quick_check(1)")
            found = [copy.execute(f"PRAGMA {mark}").fetchone()[0] for mark in marks]
            return found == [APPLICATION_ID, "ok"]
    except (sqlite3.Error, UnicodeDecodeError):
        return False


def _time(path: Path) -> datetime | None:
    try:
        return datetime.strptime(path.stem, STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
