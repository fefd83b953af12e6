"""A bounds-checked position in the bytes of a GGUF header.

Every read is checked against the end before it happens, and every step takes at least one byte,
so the work of a parse is bounded by the file's size whatever the file claims. Knows nothing of
keys or tensors.
"""

from __future__ import annotations

from struct import Struct

from engine.checkpoint.mapped import Buffer
from engine.errors import CheckpointUnreadable

HEADER_LIMIT = 32 << 20
"""Bytes that metadata and tensor table may take together; the largest known take 20 MB."""
_U32 = Struct("<I")
_U64 = Struct("<Q")
_ESCAPE_BASE = 0x10FF00
_ESCAPES = {0xDC00 + byte: _ESCAPE_BASE + byte for byte in range(0x80, 0x100)}


class Cursor:
    """Where the parse stands.

    Attributes:
        data: the file, little-endian; only read.
        label: the file's name, for sentences.
        end: no read goes past it: the file's size or ``HEADER_LIMIT``.
        position: of the next byte.
        steps: values walked over so far, never more than ``position``.
    """

    __slots__ = ("data", "end", "label", "position", "steps")

    def __init__(self, data: Buffer, label: str) -> None:
        self.data = data
        self.label = label
        self.end = min(len(data), HEADER_LIMIT)
        self.position = 0
        self.steps = 0

    def u32(self, what: str) -> int:
        """Read an unsigned 32-bit number."""
        start = self.take(4, what)
        value: int = _U32.unpack_from(self.data, start)[0]
        return value

    def u64(self, what: str) -> int:
        """Read an unsigned 64-bit number."""
        start = self.take(8, what)
        value: int = _U64.unpack_from(self.data, start)[0]
        return value

    def take(self, size: int, what: str) -> int:
        """Step over ``size`` bytes and return where they start."""
        start = self.position
        if size > self.end - start:
            raise self.cut(size, what)
        self.position = start + size
        self.steps += 1
        return start

    def text(self, limit: int, what: str) -> bytes:
        """Read a string's bytes: a 64-bit length, then that many bytes, ``limit`` at most."""
        size = self.u64(what)
        if size > limit:
            raise self.refuse(
                f"{what} claims {size} bytes, at most {limit} are allowed", found=size, wanted=limit
            )
        start = self.take(size, what)
        return self.data[start : start + size]

    def fits(self, count: int, smallest: int, what: str) -> None:
        """Refuse a claimed count whose smallest encoding passes the bytes that are left."""
        left = self.end - self.position
        if count * smallest > left:
            raise self.refuse(
                f"{what} claims {count} entries, which need at least {count * smallest} bytes, "
                f"but {left} are left",
                found=count,
                left_bytes=left,
            )

    def cut(self, size: int, what: str) -> CheckpointUnreadable:
        """The error for a read past the end."""
        left = self.end - self.position
        if self.end < len(self.data):
            return self.refuse(f"the header is longer than {HEADER_LIMIT} bytes at {what}")
        return self.refuse(
            f"the file is cut short: {what} needs {size} bytes at byte {self.position}, "
            f"but {left} are left",
            needed_bytes=size,
            left_bytes=left,
        )

    def refuse(self, sentence: str, **numbers: int | str) -> CheckpointUnreadable:
        """A typed error that names the file."""
        return CheckpointUnreadable(f"{self.label}: {sentence}", file=self.label, **numbers)


def decode_text(raw: bytes) -> str:
    """Decode UTF-8 without loss: a byte 0xNN that is not UTF-8 stands as U+10FFNN.

    Those are valid characters that no text holds, so a damaged vocabulary entry stays apart from
    all others, can be handed to libraries that refuse lone surrogates, and never matches.
    """
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode(errors="surrogateescape").translate(_ESCAPES)
