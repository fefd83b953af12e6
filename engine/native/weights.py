"""A checkpoint's matrices as the native library multiplies them.

The common formats are laid out once, at load, in strips of rows side by side in one arena: their
bytes are permuted, no value changes. Formats without strips are read in place, in the file's own
blocks, or from a copy where a product takes rows from several places; one that the library does not
know at all is decoded to float32. Embedding rows are always read from the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from engine.checkpoint.source import CheckpointSource, TensorFacts
from engine.forward import Weights
from engine.models.spec import Linear, Norm, RowRuns
from engine.native.joined import companion_rows, describe, is_joined
from kernels.cpu.library import Library, Pool
from kernels.cpu.records import JOINED, Weight
from kernels.quant.facts import FACTS

ALIGNMENT: Final = 64

Matrix = tuple[str, RowRuns | None]
"""A tensor's name and the rows of it that take part."""


class StoredWeights:
    """Hands out ``Weight`` records and keeps alive what they point to.

    Owns the arena of strips, copies of rows, and float32 copies of norms, biases and foreign
    formats. The source must stay open, and the pool is the one that will multiply.
    """

    def __init__(self, source: CheckpointSource, library: Library, pool: Pool) -> None:
        self._source = source
        self._library = library
        self._pool = pool
        self._decoder = Weights(source)
        self._floats: dict[str, torch.Tensor] = {}
        self._views: dict[str, NDArray[np.uint8]] = {}
        self._copies: dict[Matrix, torch.Tensor] = {}
        self._kept: dict[str, object] = {}
        self._offsets: dict[Matrix, int] = {}
        self._arena = torch.empty(0, dtype=torch.uint8)

    def arena_bytes(self, linears: Sequence[Linear]) -> int:
        """Bytes that ``lay_out`` will allocate for these products."""
        return sum(_aligned(self._strip_bytes(matrix)) for matrix in _matrices(linears))

    def copied_bytes(self, linears: Sequence[Linear]) -> int:
        """Bytes of the matrices among these that are kept beside the arena: as float32, or as a
        copy of rows from several places.
        """
        return sum(self._copy_bytes(matrix) for matrix in _matrices(linears))

    def decoded_bytes(self, linears: Sequence[Linear]) -> int:
        """Bytes of those among them that are kept as float32."""
        return sum(
            self._copy_bytes(matrix)
            for matrix in _matrices(linears)
            if not self._multiplies(matrix)
        )

    def stored_bytes(self, linears: Sequence[Linear]) -> int:
        """Bytes of these matrices in the files: what ``lay_out`` yields in all."""
        return sum(self._file_bytes(matrix) for matrix in _matrices(linears))

    def lay_out(self, linears: Sequence[Linear]) -> Iterator[int]:
        """Fill the arena, yielding the file bytes of each matrix as it is done."""
        self._arena = torch.empty(self.arena_bytes(linears), dtype=torch.uint8)
        offset = 0
        for matrix in _matrices(linears):
            size = self._strip_bytes(matrix)
            if size:
                kept, weight = self._gathered(matrix)
                self._pool.layout(weight, self._arena[offset : offset + size])
                self._offsets[matrix] = offset
                offset += _aligned(size)
                del kept
            elif self._copy_bytes(matrix):
                self._copies[matrix] = self._copy(matrix)
            yield self._file_bytes(matrix)

    def product(self, linear: Linear) -> Weight:
        """The record of a product's weight and bias: strips where it was laid out."""
        matrix = linear.weight, linear.rows
        if matrix in self._offsets:
            weight = self._record(matrix, self._arena.data_ptr() + self._offsets[matrix])
            weight.is_strips = 1
        elif self._copy_bytes(matrix):
            if matrix not in self._copies:
                self._copies[matrix] = self._copy(matrix)
            address = self._copies[matrix].data_ptr()
            known = self._multiplies(matrix)
            weight = (self._record if known else self._decoded_record)(matrix, address)
        else:
            weight = self._record(matrix, self._file_address(matrix))
        if linear.bias is not None:
            weight.bias = self.floats(linear.bias).data_ptr()
        return weight

    def file_rows(self, name: str) -> Weight:
        """The record of a matrix row by row: in the file's blocks, or decoded if it must be."""
        if not self._knows(name):
            return self._record((name, None), self.floats(name).data_ptr())
        kept, weight = self._gathered((name, None))
        self._kept[name] = kept
        return weight

    def floats(self, name: str) -> torch.Tensor:
        """A tensor decoded to float32 once and kept."""
        if name not in self._floats:
            self._floats[name] = self._decoder.whole(name).contiguous()
        return self._floats[name]

    def taps(self, name: str, channels: int) -> torch.Tensor:
        """A depthwise convolution's weights as [kernel, channels], kept."""
        key = f"{name} by tap"
        if key not in self._floats:
            by_channel = self._decoder.whole(name).view(channels, -1)
            self._floats[key] = by_channel.t().contiguous()
        return self._floats[key]

    def decay(self, name: str, *, is_log: bool) -> torch.Tensor:
        """The factors of a delta rule's decay, negative, kept."""
        if not is_log:
            return self.floats(name)
        key = f"{name} as decay"
        if key not in self._floats:
            self._floats[key] = -self._decoder.whole(name).exp()
        return self._floats[key]

    def norm(self, norm: Norm, width: int) -> torch.Tensor:
        """A norm's weight plus its offset, or ones where it has none, kept."""
        if norm.weight is not None and norm.offset == 0.0:
            return self.floats(norm.weight)
        key = f"{norm.weight or width} + {norm.offset}"
        if key not in self._floats:
            weight = torch.ones(width) if norm.weight is None else self._decoder.whole(norm.weight)
            self._floats[key] = weight if norm.weight is None else weight + norm.offset
        return self._floats[key]

    def close(self) -> None:
        """Free the arena and copies, drop the views; may be repeated."""
        self._arena = torch.empty(0, dtype=torch.uint8)
        self._offsets.clear()
        self._copies.clear()
        self._floats.clear()
        self._kept.clear()
        self._views.clear()

    def _knows(self, name: str) -> bool:
        """Whether the library can read its rows from the file."""
        facts = self._source.tensors[name]
        type_id = FACTS[facts.format].type_id
        if type_id is None:
            return is_joined(facts)
        return self._library.has_format(type_id)

    def _multiplies(self, matrix: Matrix) -> bool:
        """Whether the library multiplies by it as the file stores it: of joined ones, strips."""
        name = matrix[0]
        joined = FACTS[self._source.tensors[name].format].type_id is None
        return self._knows(name) and (not joined or self._strip_bytes(matrix) > 0)

    def _rows(self, matrix: Matrix) -> int:
        name, runs = matrix
        shape = self._source.tensors[name].shape
        return math.prod(shape[:-1]) if runs is None else sum(count for _, count in runs)

    def _record(self, matrix: Matrix, address: int | None) -> Weight:
        """The record of rows one after another at ``address``, in the file's format or float32."""
        facts = self._source.tensors[matrix[0]]
        columns = facts.shape[-1]
        known = FACTS[facts.format if self._knows(matrix[0]) else "f32"]
        number = JOINED[known.name] if known.type_id is None else known.type_id
        size = known.row_bytes(columns)
        weight = Weight(address, None, self._rows(matrix), columns, size, number, 0)
        if known.type_id is None:
            describe(weight, facts)
        return weight

    def _decoded_record(self, matrix: Matrix, address: int) -> Weight:
        columns = self._source.tensors[matrix[0]].shape[-1]
        return Weight(address, None, self._rows(matrix), columns, 4 * columns, 0, 0)

    def _strip_bytes(self, matrix: Matrix) -> int:
        return self._pool.layout_bytes(self._record(matrix, None)) if self._knows(matrix[0]) else 0

    def _copy_bytes(self, matrix: Matrix) -> int:
        """Bytes of a copy of the matrix, 0 where it is read from the arena or from the file."""
        known, runs = self._multiplies(matrix), matrix[1]
        if known and (runs is None or len(runs) == 1 or self._strip_bytes(matrix)):
            return 0
        if not known:
            return 4 * self._rows(matrix) * self._source.tensors[matrix[0]].shape[-1]
        record = self._record(matrix, None)
        return int(record.rows * record.row_bytes)

    def _file_bytes(self, matrix: Matrix) -> int:
        facts = self._source.tensors[matrix[0]]
        return facts.stored_bytes * self._rows(matrix) // math.prod(facts.shape[:-1])

    def _gathered(self, matrix: Matrix) -> tuple[object, Weight]:
        """The matrix row after row as the file has it, and what keeps its bytes alive."""
        name, runs = matrix
        kept: list[object] = []
        if runs is None or len(runs) == 1:
            weight = self._record(matrix, self._file_address(matrix))
        else:
            rows = self._file_copy(matrix)
            weight = self._record(matrix, rows.data_ptr())
            kept.append(rows)
        facts = self._source.tensors[name]
        for field, companion in (("scales", facts.scales), ("minima", facts.minima)):
            if companion is not None:
                found = companion_rows(facts, companion, self._view(companion), runs)
                setattr(weight, field, found.ctypes.data)
                kept.append(found)
        return kept, weight

    def _copy(self, matrix: Matrix) -> torch.Tensor:
        """The matrix's rows in a tensor of their own: stored bytes, or float32."""
        if self._multiplies(matrix):
            return self._file_copy(matrix)
        return self._decoder.linear(Linear(matrix[0], None, matrix[1]))

    def _file_copy(self, matrix: Matrix) -> torch.Tensor:
        name, runs = matrix
        record = self._record(matrix, None)
        stored = self._view(self._source.tensors[name]).reshape(-1, record.row_bytes)
        parts = [stored[first : first + count] for first, count in runs or ()]
        return torch.from_numpy(np.concatenate(parts))

    def _file_address(self, matrix: Matrix) -> int:
        """Of the first row; the rows follow one another there."""
        name, runs = matrix
        first = 0 if runs is None else runs[0][0]
        view = self._view(self._source.tensors[name])
        return int(view.ctypes.data) + first * int(self._record(matrix, None).row_bytes)

    def _view(self, facts: TensorFacts) -> NDArray[np.uint8]:
        if facts.name not in self._views:
            stored = self._source.tensor_bytes(facts.name)
            self._views[facts.name] = np.frombuffer(stored, dtype=np.uint8)
        return self._views[facts.name]


def _matrices(linears: Sequence[Linear]) -> dict[Matrix, None]:
    """Each matrix once, in order; a tied head shares its tensor with nothing else laid out."""
    return dict.fromkeys((linear.weight, linear.rows) for linear in linears)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
