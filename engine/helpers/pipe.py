"""Frames between the engine and a limited child: 4-byte little-endian length, then the bytes."""

from __future__ import annotations

from typing import IO, Final

FRAME_LIMIT: Final = 64 << 20
_HEAD: Final = 4


def write_frame(stream: IO[bytes], payload: bytes) -> None:
    """Send one frame; raises OSError where the other side is gone."""
    stream.write(len(payload).to_bytes(_HEAD, "little"))
    stream.write(payload)
    stream.flush()


def read_frame(stream: IO[bytes]) -> bytes | None:
    """The next frame, or None at the end of the stream, in a cut frame or past ``FRAME_LIMIT``."""
    head = stream.read(_HEAD)
    length = int.from_bytes(head, "little")
    if len(head) < _HEAD or length > FRAME_LIMIT:
        return None
    payload = stream.read(length)
    return payload if len(payload) == length else None
