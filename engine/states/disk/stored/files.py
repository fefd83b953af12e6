"""Every file operation of the disk tier, as a border that tests replace, and the real one.

What is made here is readable by the user alone: folders 0700, files 0600; on Windows the data
directory's rights are inherited. Files are opened without following a link, and only plain files
are read, so that nothing planted in the folder leads elsewhere or blocks.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

TEMPORARY_SUFFIX: Final = ".tmp"
RENAME_PAUSES_S: Final = (0.02, 0.1, 0.1, 0.1)
SYNCS_FOLDERS: Final = os.name != "nt"
WRITE_BYTES: Final = 8 * 1024 * 1024
_SHUN: Final = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a folder; ``size_bytes`` is 0 for what is no plain file."""

    name: str
    is_folder: bool
    size_bytes: int


class NewFile(Protocol):
    """A file that is being written."""

    def write(self, content: memoryview) -> int:
        """Append some of ``content``; returns how many bytes, at least 1."""

    def sync(self) -> None:
        """Return once everything written would survive a loss of power."""

    def close(self) -> None:
        """May be repeated."""


class OldFile(Protocol):
    """A file that is being read."""

    @property
    def size_bytes(self) -> int:
        """As it is now."""

    def read_at(self, offset: int, into: memoryview) -> int:
        """Fill the first bytes of ``into``; returns how many, 0 only at the end."""

    def close(self) -> None:
        """May be repeated."""


class Files(Protocol):
    """A file system; every method may raise OSError."""

    def make_folder(self, folder: Path) -> None:
        """Make it and what is missing above, private; it may be there."""

    def entries(self, folder: Path) -> Sequence[Entry]:
        """What is in a folder; nothing where it is not there."""

    def create(self, path: Path) -> NewFile:
        """A new private file; raises FileExistsError where there is one."""

    def open(self, path: Path) -> OldFile:
        """An existing plain file."""

    def rename(self, source: Path, target: Path) -> None:
        """Give a file another name, in place of what has it."""

    def remove(self, path: Path) -> None:
        """Delete a file; it may be gone."""

    def remove_folder(self, folder: Path) -> None:
        """Delete an empty folder."""

    def sync_folder(self, folder: Path) -> None:
        """Return once its names would survive a loss of power."""

    def free_bytes(self, folder: Path) -> int:
        """What this user may still write there."""


class _NewDiskFile:
    def __init__(self, number: int) -> None:
        self._number: int | None = number

    def write(self, content: memoryview) -> int:
        return os.write(self._open(), content)

    def sync(self) -> None:
        os.fsync(self._open())

    def close(self) -> None:
        if self._number is not None:
            number, self._number = self._number, None
            os.close(number)

    def _open(self) -> int:
        if self._number is None:
            raise OSError(errno.EBADF, "the file is closed")
        return self._number


class _OldDiskFile:
    def __init__(self, number: int) -> None:
        self._file = os.fdopen(number, "rb", buffering=0)

    @property
    def size_bytes(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def read_at(self, offset: int, into: memoryview) -> int:
        self._file.seek(offset)
        return self._file.readinto(into) or 0

    def close(self) -> None:
        self._file.close()


class DiskFiles:
    """Implements ``Files`` by the operating system."""

    def make_folder(self, folder: Path) -> None:
        """Make it and what is missing above, private; it may be there."""
        missing = [each for each in (folder, *folder.parents) if not each.is_dir()]
        for each in reversed(missing):
            each.mkdir(mode=0o700, exist_ok=True)

    def entries(self, folder: Path) -> Sequence[Entry]:
        """What is in a folder; nothing where it is not there."""
        try:
            with os.scandir(folder) as found:
                return [_entry(each) for each in found]
        except FileNotFoundError:
            return ()

    def create(self, path: Path) -> NewFile:
        """A new private file; raises FileExistsError where there is one."""
        return _NewDiskFile(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SHUN, 0o600))

    def open(self, path: Path) -> OldFile:
        """An existing plain file."""
        number = os.open(path, os.O_RDONLY | _SHUN)
        if not stat.S_ISREG(os.fstat(number).st_mode):
            os.close(number)
            raise OSError(errno.EINVAL, "not a plain file", str(path))
        return _OldDiskFile(number)

    def rename(self, source: Path, target: Path) -> None:
        """Give a file another name, in place of what has it; virus scanners may hold it a while."""
        for pause_s in RENAME_PAUSES_S:
            try:
                source.replace(target)
            except PermissionError:
                time.sleep(pause_s)
            else:
                return
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Delete a file; it may be gone."""
        path.unlink(missing_ok=True)

    def remove_folder(self, folder: Path) -> None:
        """Delete an empty folder."""
        folder.rmdir()

    def sync_folder(self, folder: Path) -> None:
        """Return once its names would survive a loss of power; Windows has no such thing."""
        if not SYNCS_FOLDERS:
            return
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)

    def free_bytes(self, folder: Path) -> int:
        """What this user may still write there."""
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        return shutil.disk_usage(folder).free


def write_new(files: Files, path: Path, temporary: Path, parts: Sequence[memoryview]) -> None:
    """Write a file whole under another name, sync it and give it its own; the folder is not synced.

    Raises:
        OSError: nothing has changed at ``path``, and the other name is free again if it can be.
    """
    try:
        file = files.create(temporary)
        try:
            for part in parts:
                _write_all(file, part)
            file.sync()
        finally:
            file.close()
        files.rename(temporary, path)
    except OSError:
        forget(files, temporary)
        raise


def read_exactly(file: OldFile, offset: int, into: memoryview) -> bool:
    """Fill all of ``into``; False where the file ends before."""
    done = 0
    while done < len(into):
        count = file.read_at(offset + done, into[done:])
        if count <= 0:
            return False
        done += count
    return True


def forget(files: Files, path: Path) -> None:
    """Delete a file if that is possible; what stays is swept another time."""
    try:
        files.remove(path)
    except OSError:
        return


def _write_all(file: NewFile, content: memoryview) -> None:
    done = 0
    while done < len(content):
        count = file.write(content[done : done + WRITE_BYTES])
        if count <= 0:
            raise OSError(errno.EIO, "nothing was written")
        done += count


def _entry(found: os.DirEntry[str]) -> Entry:
    is_file = found.is_file(follow_symlinks=False)
    size = found.stat(follow_symlinks=False).st_size if is_file else 0
    return Entry(found.name, found.is_dir(follow_symlinks=False), size)
