"""One file of a checkpoint, mapped read-only, beside the header that its format gives it."""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from engine.checkpoint.labels import file_label
from engine.errors import CheckpointUnreadable

Buffer = bytes | mmap.mmap


class HasDataStart(Protocol):
    """A parsed header."""

    @property
    def data_start(self) -> int:
        """Bytes before the first tensor's."""


Header = TypeVar("Header", bound=HasDataStart)


@dataclass(frozen=True, slots=True)
class MappedFile(Generic[Header]):
    """One file and its header; whoever opened it closes it.

    Attributes:
        data: the whole file, mapped.
    """

    path: Path
    data: Buffer
    header: Header

    @property
    def size_bytes(self) -> int:
        """The file's size when it was mapped."""
        return len(self.data)

    def close(self) -> None:
        """Unmap the file; a view that is still held keeps it mapped. May be called twice."""
        if isinstance(self.data, mmap.mmap):
            with suppress(BufferError):
                self.data.close()


def map_file(path: Path, parse: Callable[[Buffer, str], Header]) -> MappedFile[Header]:
    """Map a file read-only and parse its header; the caller owns the mapping.

    Args:
        parse: gets the bytes and the file's name for sentences.

    Raises:
        CheckpointUnreadable: the file is empty, or ``parse`` refuses it; nothing stays mapped.
        OSError: it cannot be opened.
    """
    label = file_label(path)
    with path.open("rb") as stream:
        if os.fstat(stream.fileno()).st_size == 0:
            raise CheckpointUnreadable(f"{label}: the file is empty", file=label)
        data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    with ExitStack() as opened:
        opened.callback(data.close)
        mapped = MappedFile(path, data, parse(data, label))
        opened.pop_all()
    return mapped


def headers_digest(files: Sequence[MappedFile[Header]]) -> hashlib._Hash:
    """SHA-256 over each file's size and header bytes, in order; more may be added to it."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.size_bytes.to_bytes(8, "little"))
        with memoryview(file.data) as view, view[: file.header.data_start] as header:
            digest.update(header)
    return digest
