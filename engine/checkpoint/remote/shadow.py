"""Shadows: files of full length that hold nothing but what was read of a file on the hub.

A shadow has the header where the file has it and holes everywhere else, so the readers of
checkpoints take it for the file. It takes the disk no more than the header does.
"""

from __future__ import annotations

import ctypes
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final

from engine.checkpoint.gguf.cursor import HEADER_LIMIT
from engine.checkpoint.gguf.header import parse_header
from engine.checkpoint.published.header import LENGTH_BYTES
from engine.errors import CheckpointUnreadable, HubUnavailable

FIRST_BYTES: Final = 1 << 20
GROWTH: Final = 4
SAFETENSORS_LIMIT: Final = 64 << 20
KEPT_REVISIONS: Final = 16
SET_SPARSE: Final = 0x900C4
"""Windows' FSCTL_SET_SPARSE: without it a hole takes the disk as much as bytes do."""

ReadPart = Callable[[int, int], bytes]
"""(start, size) to the bytes there, exactly."""


def gguf_header(read: ReadPart, size_bytes: int, label: str) -> bytes:
    """The beginning of a GGUF file up to its first tensor, read in growing pieces.

    Raises:
        CheckpointUnreadable: it is no sound header, or one longer than is read.
    """
    head, wanted = b"", FIRST_BYTES
    while True:
        wanted = min(wanted, size_bytes, HEADER_LIMIT + 1)
        head += read(len(head), wanted - len(head))
        try:
            header = parse_header(head, label)
        except CheckpointUnreadable as error:
            if "left_bytes" not in error.numbers or wanted in (size_bytes, HEADER_LIMIT + 1):
                raise
            wanted *= GROWTH
            continue
        return head[: header.end]


def safetensors_header(read: ReadPart, size_bytes: int, label: str) -> bytes:
    """The beginning of a safetensors file up to its first tensor; raises CheckpointUnreadable."""
    head = read(0, min(FIRST_BYTES // 4, size_bytes))
    length = LENGTH_BYTES + int.from_bytes(head[:LENGTH_BYTES], "little")
    if length > min(size_bytes, SAFETENSORS_LIMIT):
        raise CheckpointUnreadable(
            f"{label}: the header says that it has {length} bytes; the file has {size_bytes} and "
            f"at most {SAFETENSORS_LIMIT} are read",
            found=length,
        )
    if length > len(head):
        head += read(len(head), length - len(head))
    return head[:length]


def write_shadow(path: Path, head: bytes, size_bytes: int) -> None:
    """Make a file of ``size_bytes`` that begins with ``head`` and has a hole after it.

    Raises:
        HubUnavailable: it cannot be written.
    """
    partial = path.with_name(f"{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as stream:
            _make_sparse(stream)
            stream.write(head)
            stream.truncate(size_bytes)
        partial.replace(path)
    except OSError as error:
        raise HubUnavailable(
            f"What was read of {path.name} cannot be kept: {error.strerror or error}."
        ) from error


def fill(path: Path, offset: int, content: bytes) -> None:
    """Write a part into a hole; raises HubUnavailable."""
    try:
        with path.open("r+b") as stream:
            stream.seek(offset)
            stream.write(content)
    except OSError as error:
        raise HubUnavailable(
            f"What was read of {path.name} cannot be kept: {error.strerror or error}."
        ) from error


def forget_old(folder: Path, keep: Path) -> None:
    """Delete all but the newest shadows, each in a folder of its own, and never ``keep``."""
    others = [path for path in folder.iterdir() if path.is_dir() and path != keep]
    others.sort(key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for path in others[KEPT_REVISIONS - 1 :]:
        shutil.rmtree(path, ignore_errors=True)


def _make_sparse(stream: IO[bytes]) -> None:
    """Ask Windows for holes; elsewhere a file has them by itself."""
    if sys.platform == "win32":
        from msvcrt import get_osfhandle  # noqa: PLC0415 - of Windows only

        done = ctypes.c_ulong()
        ctypes.windll.kernel32.DeviceIoControl(
            ctypes.c_void_p(get_osfhandle(stream.fileno())),
            *(SET_SPARSE, None, 0, None, 0),
            ctypes.byref(done),
            None,
        )
