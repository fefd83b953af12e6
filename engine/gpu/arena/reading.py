"""Reads bytes of tensors into memory that is there already, from many threads at once.

Files are read, not mapped: a mapped page costs a fault each, which on some machines is a hundred
times slower. Owns nothing between calls.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.checkpoint.labels import file_label
from engine.checkpoint.source import CheckpointSource
from engine.errors import CheckpointUnreadable
from engine.gpu.arena.segments import Span

Bytes = NDArray[np.uint8]


class SpanReader(Protocol):
    """Reads parts of spans; called from several threads."""

    def __call__(self, span: Span, first: int, place: Bytes) -> None:
        """Fill ``place`` with a span's bytes from ``first`` on; raises CheckpointUnreadable."""


def reader_of(source: CheckpointSource) -> SpanReader:
    """Reads a checkpoint's files; of one that lies in memory, the memory."""
    if not all(path.is_file() for path in source.files):
        return _MemoryReader(source)
    return _FileReader(source)


class _FileReader:
    def __init__(self, source: CheckpointSource) -> None:
        self._files = source.files

    def __call__(self, span: Span, first: int, place: Bytes) -> None:
        path = self._files[span.facts.file]
        with path.open("rb", buffering=0) as file:
            file.seek(span.facts.offset + span.first + first)
            rest = place.data
            while rest.nbytes:
                got = file.readinto(rest)
                if not got:
                    label = file_label(path)
                    raise CheckpointUnreadable(f"{label}: it has become shorter", file=label)
                rest = rest[got:]


class _MemoryReader:
    def __init__(self, source: CheckpointSource) -> None:
        self._source = source

    def __call__(self, span: Span, first: int, place: Bytes) -> None:
        start = span.first + first
        stored = np.frombuffer(self._source.tensor_bytes(span.facts.name), np.uint8)
        place[:] = stored[start : start + place.nbytes]
