"""In which runs of rows a model's weights are read: file by file, front to back. No torch.

A segment is rows of one tensor that follow one another there and in a piece; where codes have
scales of their own, the bytes of those belong to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from engine.checkpoint.source import TensorFacts
from engine.gpu.arena.pieces import Piece, Tensors

SEGMENT_ELEMENTS: Final = 16 << 20
"""Packing takes a few bytes an element besides, and decoding a dozen."""
BUFFERS: Final = 2
BUFFER_BYTES: Final = 4 * SEGMENT_ELEMENTS
"""Of a buffer that segments pass through; the largest fits, of 32-bit numbers."""


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of one tensor, which follow one another from ``first`` on."""

    facts: TensorFacts
    first: int
    size: int


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows of a tensor and where they go.

    Attributes:
        piece: index of the piece; ``at`` is the first row there.
        start: first row of the tensor.
        spans: codes, then scales and minima where there are any.
    """

    piece: int
    at: int
    rows: int
    facts: TensorFacts
    start: int
    spans: tuple[Span, ...]

    @property
    def size_bytes(self) -> int:
        """In the files."""
        return sum(span.size for span in self.spans)


def segments(
    pieces: Sequence[Piece], tensors: Tensors, elements: int = SEGMENT_ELEMENTS
) -> list[Segment]:
    """All rows of all pieces in file order, none of more than ``elements`` if a row allows."""
    found = [
        segment
        for index, piece in enumerate(pieces)
        for run in _runs(piece, tensors)
        for segment in _cut(index, run, elements)
    ]
    return sorted(found, key=lambda each: (each.facts.file, each.facts.offset, each.start))


def scale_rows(facts: TensorFacts, companion: TensorFacts, start: int, rows: int) -> range:
    """Rows of the scales or minima that rows of one matrix of a tensor need."""
    if facts.block[0] == 1:
        return range(start, start + rows)
    matrix, row = divmod(start, facts.shape[-2])
    first = matrix * companion.shape[-2] + row // facts.block[0]
    return range(first, first + (row + rows - 1) // facts.block[0] - row // facts.block[0] + 1)


@dataclass(slots=True)
class _Run:
    """Rows that follow one another in a tensor and in a piece."""

    facts: TensorFacts
    start: int
    at: int
    rows: int


def _runs(piece: Piece, tensors: Tensors) -> Iterator[_Run]:
    """Neighbours put together: a stack of experts is one run of its tensor."""
    last, at = None, 0
    for linear in piece.linears:
        facts = tensors[linear.weight]
        for first, count in linear.rows or ((0, math.prod(facts.shape[:-1])),):
            if last is not None and last.facts is facts and last.start + last.rows == first:
                last.rows += count
            else:
                if last is not None:
                    yield last
                last = _Run(facts, first, at, count)
            at += count
    if last is not None:
        yield last


def _cut(index: int, run: _Run, elements: int) -> Iterator[Segment]:
    facts = run.facts
    at_once = max(1, elements // facts.shape[-1])
    done = 0
    while done < run.rows:
        start = run.start + done
        rows = min(at_once, run.rows - done)
        if facts.block[0] > 1:  # a matrix's last rows may share a scale that is not full
            rows = min(rows, facts.shape[-2] - start % facts.shape[-2])
        yield Segment(index, run.at + done, rows, facts, start, tuple(_spans(facts, start, rows)))
        done += rows


def _spans(facts: TensorFacts, start: int, rows: int) -> Iterator[Span]:
    yield _span(facts, range(start, start + rows))
    for companion in (facts.scales, facts.minima):
        if companion is not None:
            yield _span(companion, scale_rows(facts, companion, start, rows))


def _span(facts: TensorFacts, rows: range) -> Span:
    row_bytes = facts.size_bytes // math.prod(facts.shape[:-1])
    return Span(facts, rows.start * row_bytes, len(rows) * row_bytes)
