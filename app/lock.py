"""The lock of a data directory: one window or command at a time.

The truth is the operating system's lock on the file, which a crash or kill -9 frees. The file's
text (pid, start time, what) only names the owner to whoever is refused. Where a file system has no
locks, the text decides: an owner whose pid is gone or was reused is stale.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Final

import msgspec

from app.errors import DirectoryInUse, DirectoryUnusable

LOCK_OFFSET: Final = 1 << 20
OWNER_BYTES: Final = 4096
NO_LOCKS: Final = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL})
log = logging.getLogger(__name__)


class Owner(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who holds a data directory; ``started`` tells a reused pid apart."""

    pid: int
    started: float | None
    what: str


class DirectoryLock:
    """The lock, held from construction to ``close``; owns one file, which no child inherits."""

    def __init__(self, file: Path, what: str) -> None:
        """Take the lock as ``what`` ("the window", "hearth ask").

        Raises:
            DirectoryInUse: someone else has it; the sentence names them.
            DirectoryUnusable: the file cannot be made.
        """
        self._file = file
        try:
            self._number = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise DirectoryUnusable(
                f"The folder {file.parent} cannot be used: {error.strerror or error}."
            ) from error
        try:
            self._take()
            self._write(Owner(pid=os.getpid(), started=start_time(os.getpid()), what=what))
        except BaseException:
            os.close(self._number)
            raise

    def close(self) -> None:
        """Free the lock; the file stays, empty."""
        if self._number < 0:
            return
        with contextlib.suppress(OSError):
            os.ftruncate(self._number, 0)
        os.close(self._number)
        self._number = -1

    def __enter__(self) -> DirectoryLock:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _take(self) -> None:
        try:
            _lock(self._number)
        except OSError as error:
            owner = read_owner(self._file)
            if error.errno in NO_LOCKS:
                if owner is not None and is_alive(owner):
                    raise _in_use(self._file, owner) from error
                return
            raise _in_use(self._file, owner) from error

    def _write(self, owner: Owner) -> None:
        try:
            os.ftruncate(self._number, 0)
            os.lseek(self._number, 0, os.SEEK_SET)
            os.write(self._number, msgspec.json.encode(owner))
        except OSError as error:
            log.info("lock owner not written path=%s reason=%s", self._file, error)


def read_owner(file: Path) -> Owner | None:
    """Who wrote the lock file last, None when that cannot be read."""
    try:
        with file.open("rb") as opened:
            return msgspec.json.decode(opened.read(OWNER_BYTES), type=Owner)
    except (OSError, msgspec.DecodeError):
        return None


def is_alive(owner: Owner) -> bool:
    """Whether the owner still runs: its pid does and began when the owner did."""
    started = start_time(owner.pid)
    if started is None:
        return False
    return owner.started is None or abs(started - owner.started) < 1.0


def _in_use(file: Path, owner: Owner | None) -> DirectoryInUse:
    if owner is None:
        return DirectoryInUse(f"Another Hearth is using {file.parent}; close it first.")
    return DirectoryInUse(
        f"Hearth is already in use: {owner.what} (process {owner.pid}) has {file.parent}; "
        "close it first or choose another folder with --data-directory."
    )


if sys.platform == "win32":
    import ctypes
    import msvcrt
    from ctypes import wintypes

    _QUERY_LIMITED = 0x1000
    _STILL_ACTIVE = 259

    def start_time(pid: int) -> float | None:
        """Since when ``pid`` runs, in seconds of the system's own epoch; None if it does not."""
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel.OpenProcess.restype = wintypes.HANDLE
        handle = kernel.OpenProcess(_QUERY_LIMITED, False, pid)
        if not handle:
            return None
        try:
            code = wintypes.DWORD()
            times = [wintypes.FILETIME() for _ in range(4)]
            kernel.GetExitCodeProcess(wintypes.HANDLE(handle), ctypes.byref(code))
            if code.value != _STILL_ACTIVE:
                return None
            kernel.GetProcessTimes(wintypes.HANDLE(handle), *(ctypes.byref(time) for time in times))
            return ((times[0].dwHighDateTime << 32) + times[0].dwLowDateTime) / 1e7
        finally:
            kernel.CloseHandle(wintypes.HANDLE(handle))

    def _lock(number: int) -> None:
        os.lseek(number, LOCK_OFFSET, os.SEEK_SET)
        msvcrt.locking(number, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def start_time(pid: int) -> float | None:
        """Since when ``pid`` runs, in seconds of the system's own epoch; None if it does not.

        On Linux seconds since boot. Elsewhere only whether it runs is known: always 0.
        """
        stat = Path(f"/proc/{pid}/stat")
        try:
            fields = stat.read_bytes().rpartition(b")")[2].split()
            return int(fields[19]) / os.sysconf("SC_CLK_TCK") if fields[0] not in b"ZX" else None
        except (OSError, IndexError, ValueError):
            return None if Path("/proc/self/stat").exists() else _runs(pid)

    def _runs(pid: int) -> float | None:
        try:
            os.kill(pid, 0)
        except PermissionError:
            return 0.0
        except OSError:
            return None
        return 0.0

    def _lock(number: int) -> None:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
