"""Attachments by content: one file a SHA-256, written once, checked when read.

``BlobFolder`` owns a folder of the data directory: ``ab/cdef...``, two hexadecimal digits a
subfolder. A name is the digest of what is in the file, so a blob never changes and a torn or
damaged one is recognised. Used from the store's thread.
"""

from __future__ import annotations

import errno
import hashlib
import re
from pathlib import Path
from typing import Final

from app.errors import StoreDamaged, StoreError, StoreFull
from app.files import sync_folder, write_atomically

DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class BlobFolder:
    """The blobs of one data directory."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, content: bytes) -> str:
        """Keep ``content`` and return its digest; on disk when this returns.

        Raises:
            StoreFull: the disk is full; nothing is left behind.
            StoreError: it cannot be written.
        """
        digest = hashlib.sha256(content).hexdigest()
        path = self._path(digest)
        if self._is_whole(path, digest):
            return digest
        try:
            is_new = not path.parent.exists()
            for folder in (self._root, path.parent):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(path, content)
            if is_new:
                sync_folder(self._root)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise StoreFull(
                    f"The disk that holds {self._root} is full; free some space."
                ) from error
            raise StoreError(
                f"An attachment cannot be kept in {self._root}: {error.strerror or error}."
            ) from error
        return digest

    def get(self, digest: str) -> bytes:
        """The content of a digest.

        Raises:
            StoreDamaged: the file's content is not what its name says.
            StoreError: it is not there or cannot be read.
        """
        try:
            content = self._path(digest).read_bytes()
        except OSError as error:
            raise StoreError(
                f"An attachment cannot be read from {self._root}: {error.strerror or error}."
            ) from error
        if hashlib.sha256(content).hexdigest() != digest:
            raise StoreDamaged(f"The attachment {self._path(digest)} is damaged.")
        return content

    def _path(self, digest: str) -> Path:
        if DIGEST.fullmatch(digest) is None:
            raise StoreError(f"{digest!r} is no digest of an attachment.")
        return self._root / digest[:2] / digest[2:]

    def _is_whole(self, path: Path, digest: str) -> bool:
        try:
            return hashlib.sha256(path.read_bytes()).hexdigest() == digest
        except OSError:
            return False
