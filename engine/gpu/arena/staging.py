"""File bytes to the device: the next batch is read while one is copied and put in its place.

Owns two pinned buffers, two of the same size on the device, a stream for copies and the threads
that read. On a processor the bytes stay where they were read to. Used from the engine thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import torch

from engine.gpu.arena.reading import SpanReader
from engine.gpu.arena.segments import BUFFER_BYTES, BUFFERS, Segment
from engine.owner import Owner
from kernels.packed.layout import aligned

READ_BYTES: Final = 4 << 20
"""What one thread reads at a time."""
READERS: Final = 8

Parts = list[torch.Tensor]
"""A segment's codes, then its scales and minima: flat bytes on the device."""


@dataclass(slots=True)
class _Buffer:
    """One way through, what is being read into it, and when its last copy was made."""

    host: torch.Tensor
    there: torch.Tensor
    reading: list[Future[None]]
    copied: torch.cuda.Event | None = None
    placed: torch.cuda.Event | None = None


class Staging(Owner):
    """Brings segments to one device, batch by batch."""

    def __init__(
        self, read: SpanReader, device: torch.device, size_bytes: int = BUFFER_BYTES
    ) -> None:
        """Allocate buffers of ``size_bytes``, into which each segment fits."""
        self._read = read
        self._on_gpu = device.type == "cuda"
        self._copies = _stream(device) if self._on_gpu else None
        self._size = size_bytes
        self._buffers = [self._buffer(device) for _ in range(BUFFERS)]
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="weights")

    def brought(self, wanted: Sequence[Segment]) -> Iterator[tuple[Segment, Parts]]:
        """Every segment in order; its bytes stand until the next one is asked for."""
        batches = list(_batches(wanted, self._size))
        if batches:
            self._begin(self._buffers[0], batches[0])
        for index, batch in enumerate(batches):
            buffer = self._buffers[index % BUFFERS]
            if index + 1 < len(batches):
                self._begin(self._buffers[(index + 1) % BUFFERS], batches[index + 1])
            for reading in buffer.reading:
                reading.result()
            self._send(buffer, batch)
            yield from _cut(buffer.there, batch)
            if self._on_gpu:
                buffer.placed = _event()

    def close(self) -> None:
        """Free the buffers once nothing reads or writes them; may be repeated."""
        self._readers.shutdown(cancel_futures=True)
        for buffer in self._buffers:
            for event in (buffer.copied, buffer.placed):
                if event is not None:
                    event.synchronize()
        self._buffers = []

    def _buffer(self, device: torch.device) -> _Buffer:
        host = torch.empty(self._size, dtype=torch.uint8, pin_memory=self._on_gpu)
        there = torch.empty_like(host, device=device) if self._on_gpu else host
        return _Buffer(host, there, [])

    def _begin(self, buffer: _Buffer, batch: Sequence[Segment]) -> None:
        """Have a batch read into a buffer, once its last content was copied."""
        if buffer.copied is not None:
            buffer.copied.synchronize()
        buffer.reading, at = [], 0
        for segment in batch:
            for span in segment.spans:
                place = buffer.host[at : at + span.size].numpy()
                for first in range(0, span.size, READ_BYTES):
                    part = place[first : first + READ_BYTES]
                    reading = self._readers.submit(self._read, span, first, part)
                    buffer.reading.append(reading)
                at += aligned(span.size)

    def _send(self, buffer: _Buffer, batch: Sequence[Segment]) -> None:
        """Copy what was read to the device, once what stood there was put in its place."""
        if self._copies is None:
            return
        size = sum(aligned(span.size) for segment in batch for span in segment.spans)
        with torch.cuda.stream(self._copies):
            if buffer.placed is not None:
                buffer.placed.wait(self._copies)
            buffer.there[:size].copy_(buffer.host[:size], non_blocking=True)
            buffer.copied = _event()
        buffer.copied.wait()


def _stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def _event() -> torch.cuda.Event:
    """The work of the current stream so far."""
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    event.record()
    return event


def _batches(wanted: Sequence[Segment], most: int) -> Iterator[list[Segment]]:
    """Neighbours that fit into one buffer together."""
    batch: list[Segment] = []
    held = 0
    for segment in wanted:
        size = sum(aligned(span.size) for span in segment.spans)
        if batch and held + size > most:
            yield batch
            batch, held = [], 0
        batch.append(segment)
        held += size
    if batch:
        yield batch


def _cut(there: torch.Tensor, batch: Sequence[Segment]) -> Iterator[tuple[Segment, Parts]]:
    at = 0
    for segment in batch:
        parts = []
        for span in segment.spans:
            parts.append(there[at : at + span.size])
            at += aligned(span.size)
        yield segment, parts
