"""Small files written so that a crash leaves the old content or the new, never a torn one."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Replace ``path`` by ``content``: temporary name, fsync, rename, fsync of the folder.

    The file is readable by this user alone. Raises OSError; the old file is then untouched.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    number = os.open(temporary, flags, 0o600)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename in ``folder`` durable where the system can (not on Windows)."""
    if sys.platform == "win32":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
