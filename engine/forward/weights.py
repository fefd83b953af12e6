"""Tensors of an open checkpoint as float32 values.

Decoding goes slab by slab, so that a tensor's float32 copy is all the memory that it takes beside a
few megabytes. Scales and minima that lie in tensors of their own are applied here, in float32:
``code * scale + minimum``, whatever their own format.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from engine.checkpoint.source import CheckpointSource, TensorFacts
from engine.errors import InvariantBroken, UnsupportedFormat
from engine.models.spec import Linear, Norm
from kernels.quant import FORMATS

SLAB_ELEMENTS = 1 << 20


class Weights:
    """Decodes what it is asked for; keeps neither views nor copies.

    A tensor of any shape is seen as rows of its last dimension. The source must stay open as long
    as this lives.
    """

    def __init__(self, source: CheckpointSource) -> None:
        self._source = source

    def whole(self, name: str) -> torch.Tensor:
        """The tensor decoded, in its own shape, float32."""
        facts = self._source.tensors[name]
        return self._slabs(facts, [(0, _row_count(facts))]).view(facts.shape)

    def linear(self, linear: Linear) -> torch.Tensor:
        """A product's weight, its runs of rows in the order of the output: [out, in] float32."""
        facts = self._source.tensors[linear.weight]
        runs = linear.rows
        return self._slabs(facts, [(0, _row_count(facts))] if runs is None else runs)

    def vector(self, name: str) -> torch.Tensor:
        """The tensor decoded and laid out in one dimension: [elements] float32."""
        return self.whole(name).view(-1)

    def norm(self, norm: Norm) -> torch.Tensor:
        """A norm's weight plus its offset: [width] float32."""
        if norm.weight is None:
            raise InvariantBroken("A norm without a weight was asked for its weight.")
        return self.whole(norm.weight) + norm.offset

    def rows(self, name: str, indices: Sequence[int]) -> torch.Tensor:
        """Rows of a matrix decoded: [len(indices), columns] float32."""
        return self._decoded(self._source.tensors[name], np.asarray(indices, dtype=np.int64))

    def _slabs(self, facts: TensorFacts, runs: Sequence[tuple[int, int]]) -> torch.Tensor:
        """Runs (first, count) of rows, one after another: [rows, columns] float32."""
        columns = facts.shape[-1]
        decoded = torch.empty(sum(count for _, count in runs), columns)
        at_once = max(1, SLAB_ELEMENTS // columns)
        done = 0
        for first, count in _cut(runs, at_once):
            index = np.arange(first, first + count)
            decoded[done : done + count] = self._decoded(facts, index)
            done += count
        return decoded

    def _decoded(self, facts: TensorFacts, index: NDArray[np.int64]) -> torch.Tensor:
        values = self._codes(facts, index)
        if facts.scales is not None:
            values *= self._companion(facts, facts.scales, index)
        if facts.minima is not None:
            values += self._companion(facts, facts.minima, index)
        return values

    def _companion(
        self, facts: TensorFacts, companion: TensorFacts, index: NDArray[np.int64]
    ) -> torch.Tensor:
        """The scales or minima of these rows, one an element: [rows, columns or 1] float32."""
        height = facts.shape[-2] if len(facts.shape) > 1 else 1
        matrix, row = np.divmod(index, height)
        found = self._codes(companion, matrix * companion.shape[-2] + row // facts.block[0])
        return _by_element(found, facts.block[1], facts.shape[-1])

    def _codes(self, facts: TensorFacts, index: NDArray[np.int64]) -> torch.Tensor:
        """Rows as stored, their scales not applied: [rows, columns] float32, newly allocated."""
        found = FORMATS.get(facts.format)
        if found is None:
            raise UnsupportedFormat(
                f"Tensor {facts.name} is stored as {facts.format}, which nothing here decodes.",
                tensor=facts.name,
                format=facts.format,
            )
        stored = np.frombuffer(self._source.tensor_bytes(facts.name), dtype=np.uint8)
        return found.decode(torch.from_numpy(stored.reshape(_row_count(facts), -1)[index]))


def _by_element(companion: torch.Tensor, width: int, columns: int) -> torch.Tensor:
    """A row's numbers, one for ``width`` elements, repeated to one an element.

    Returns:
        [rows, columns], a copy unless each stands for the whole row.
    """
    if companion.shape[1] == 1:
        return companion
    return companion.repeat_interleave(width, dim=1)[:, :columns]


def _row_count(facts: TensorFacts) -> int:
    return math.prod(facts.shape[:-1])


def _cut(runs: Sequence[tuple[int, int]], at_once: int) -> Iterator[tuple[int, int]]:
    """The same runs in pieces of at most ``at_once`` rows."""
    for first, count in runs:
        for start in range(first, first + count, at_once):
            yield start, min(at_once, first + count - start)
