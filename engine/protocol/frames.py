"""The frame codec: messages to bytes and back, refusing everything else.

A frame is a 4-byte little-endian length and that many bytes of msgpack: ``[sequence, message]``.
``sequence`` counts from 0 in each direction, so a lost, repeated or reordered frame is seen. A
frame above ``MAX_FRAME_BYTES``, a cut one, an unknown message, field or type is a ProtocolError;
after one the stream cannot be trusted any more and its reader must close it.
"""

from __future__ import annotations

from typing import Final, Generic, Protocol, TypeVar

import msgspec

from engine.errors import ProtocolError
from engine.protocol.parts import Message
from engine.protocol.replies import EngineMessage
from engine.protocol.requests import AppMessage

MAX_FRAME_BYTES: Final = 8 * 1024 * 1024
LENGTH_BYTES: Final = 4

Received = TypeVar("Received")


class ByteSource(Protocol):
    """What frames are read from: a pipe's binary file object."""

    def read(self, size: int, /) -> bytes | None:
        """At most ``size`` bytes, empty at the end."""


class ByteSink(Protocol):
    """What frames are written to: a pipe's binary file object."""

    def write(self, content: bytes, /) -> int | None:
        """Write all bytes or return how many were taken."""

    def flush(self) -> None:
        """Hand everything to the operating system."""


class FrameWriter:
    """Writes messages to one sink. Owns the sequence number; used from one thread at a time."""

    def __init__(self, sink: ByteSink) -> None:
        self._sink = sink
        self._encoder = msgspec.msgpack.Encoder()
        self._sequence = 0

    def write(self, message: Message) -> None:
        """Write one frame and flush.

        Raises:
            ProtocolError: the frame would be larger than MAX_FRAME_BYTES.
            OSError: the peer is gone.
        """
        body = self._encoder.encode((self._sequence, message))
        if len(body) > MAX_FRAME_BYTES:
            raise ProtocolError(
                f"A message of {len(body):,} bytes is larger than a frame may be "
                f"({MAX_FRAME_BYTES:,}).",
                found_bytes=len(body),
                limit_bytes=MAX_FRAME_BYTES,
            )
        self._sequence += 1
        frame = memoryview(len(body).to_bytes(LENGTH_BYTES, "little") + body)
        while frame:
            taken = self._sink.write(bytes(frame))
            frame = frame[taken if taken is not None else 0 :]
        self._sink.flush()


class FrameReader(Generic[Received]):
    """Reads messages from one source. Owns the sequence number; used from one thread."""

    def __init__(
        self, source: ByteSource, decoder: msgspec.msgpack.Decoder[tuple[int, Received]]
    ) -> None:
        self._source = source
        self._decoder = decoder
        self._sequence = 0

    def read(self) -> Received | None:
        """The next message, None at a clean end; raises ProtocolError on anything else."""
        head = self._exactly(LENGTH_BYTES, at_start=True)
        if head is None:
            return None
        size = int.from_bytes(head, "little")
        if size > MAX_FRAME_BYTES:
            raise ProtocolError(
                f"The peer announced a frame of {size:,} bytes; {MAX_FRAME_BYTES:,} is the limit.",
                found_bytes=size,
                limit_bytes=MAX_FRAME_BYTES,
            )
        body = self._exactly(size, at_start=False)
        assert body is not None
        try:
            sequence, message = self._decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ProtocolError(f"The peer sent a frame that is no message: {error}") from error
        if sequence != self._sequence:
            raise ProtocolError(
                f"Frame {sequence} arrived where frame {self._sequence} was due.",
                found=sequence,
                wanted=self._sequence,
            )
        self._sequence += 1
        return message

    def _exactly(self, size: int, *, at_start: bool) -> bytes | None:
        parts: list[bytes] = []
        missing = size
        while missing:
            part = self._source.read(missing)
            if not part:
                if at_start and missing == size:
                    return None
                raise ProtocolError(
                    f"The stream ended {missing:,} bytes before a frame did.", missing_bytes=missing
                )
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)


def app_message_reader(source: ByteSource) -> FrameReader[AppMessage]:
    """A reader of what the app sends; the engine's end."""
    return FrameReader(source, msgspec.msgpack.Decoder(tuple[int, AppMessage]))


def engine_message_reader(source: ByteSource) -> FrameReader[EngineMessage]:
    """A reader of what the engine sends; the app's end."""
    return FrameReader(source, msgspec.msgpack.Decoder(tuple[int, EngineMessage]))
