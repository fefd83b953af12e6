"""A checkpoint's matrices as the native library multiplies them.

The common formats are laid out once, at load, in strips of rows side by side in one arena: their
bytes are permuted, no value changes. Formats without strips are read in place, in the file's own
blocks; one that the library does not know at all (the codebook formats below three bits) is decoded
to float32. Embedding rows are always read from the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from engine.checkpoint.source import CheckpointSource, TensorFacts
from engine.errors import InvariantBroken
from engine.forward import Weights
from engine.models.spec import Linear, Norm
from kernels.cpu.library import Library, Pool
from kernels.cpu.records import Weight
from kernels.quant.facts import FACTS

ALIGNMENT: Final = 64


class StoredWeights:
    """Hands out ``Weight`` records and keeps alive what they point to.

    Owns the arena of strips and float32 copies of norms, biases and foreign formats. The source
    must stay open, and the pool is the one that will multiply.
    """

    def __init__(self, source: CheckpointSource, library: Library, pool: Pool) -> None:
        self._source = source
        self._library = library
        self._pool = pool
        self._decoder = Weights(source)
        self._floats: dict[str, torch.Tensor] = {}
        self._views: dict[str, NDArray[np.uint8]] = {}
        self._offsets: dict[str, int] = {}
        self._arena = torch.empty(0, dtype=torch.uint8)

    def arena_bytes(self, linears: Sequence[Linear]) -> int:
        """Bytes that ``lay_out`` will allocate for these products."""
        return sum(_aligned(self._strip_bytes(name)) for name in _names(linears))

    def decoded_bytes(self, linears: Sequence[Linear]) -> int:
        """Bytes of the matrices among these that must be kept as float32."""
        facts = [self._source.tensors[name] for name in _names(linears)]
        return sum(4 * found.shape[0] * found.shape[1] for found in facts if not self._knows(found))

    def lay_out(self, linears: Sequence[Linear]) -> Iterator[int]:
        """Fill the arena, yielding the file bytes of each matrix as it is done."""
        self._arena = torch.empty(self.arena_bytes(linears), dtype=torch.uint8)
        offset = 0
        for name in _names(linears):
            size = self._strip_bytes(name)
            if size:
                self._pool.layout(self.file_rows(name), self._arena[offset : offset + size])
                self._offsets[name] = offset
                offset += _aligned(size)
            yield self._source.tensors[name].size_bytes

    def product(self, linear: Linear) -> Weight:
        """The record of a product's weight and bias: strips where it was laid out."""
        weight = self.file_rows(linear.weight)
        if linear.weight in self._offsets:
            weight.bytes = self._arena.data_ptr() + self._offsets[linear.weight]
            weight.is_strips = 1
        if linear.bias is not None:
            weight.bias = self.floats(linear.bias).data_ptr()
        return weight

    def file_rows(self, name: str) -> Weight:
        """The record of a matrix row by row: in the file's blocks, or decoded if it must be."""
        facts = self._source.tensors[name]
        rows, columns = facts.shape
        if not self._knows(facts):
            return Weight(self.floats(name).data_ptr(), None, rows, columns, columns * 4, 0, 0)
        known = FACTS[facts.format]
        address = self._address(facts)
        return Weight(address, None, rows, columns, known.row_bytes(columns), known.type_id, 0)

    def floats(self, name: str) -> torch.Tensor:
        """A tensor decoded to float32 once and kept."""
        if name not in self._floats:
            self._floats[name] = self._decoder.whole(name).contiguous()
        return self._floats[name]

    def norm(self, norm: Norm) -> torch.Tensor:
        """A norm's weight plus its offset, kept."""
        if norm.weight is None:
            raise InvariantBroken("A norm without a weight has no native code.")
        weight = self.floats(norm.weight)
        if norm.offset == 0.0:
            return weight
        key = f"{norm.weight} + {norm.offset}"
        if key not in self._floats:
            self._floats[key] = weight + norm.offset
        return self._floats[key]

    def close(self) -> None:
        """Free the arena and copies, drop the views; may be repeated."""
        self._arena = torch.empty(0, dtype=torch.uint8)
        self._offsets.clear()
        self._floats.clear()
        self._views.clear()

    def _knows(self, facts: TensorFacts) -> bool:
        type_id = FACTS[facts.format].type_id
        return type_id is not None and self._library.has_format(type_id)

    def _strip_bytes(self, name: str) -> int:
        facts = self._source.tensors[name]
        if not self._knows(facts):
            return 0
        rows, columns = facts.shape
        known = FACTS[facts.format]
        weight = Weight(None, None, rows, columns, known.row_bytes(columns), known.type_id, 0)
        return self._pool.layout_bytes(weight)

    def _address(self, facts: TensorFacts) -> int:
        if facts.name not in self._views:
            stored = self._source.tensor_bytes(facts.name)
            self._views[facts.name] = np.frombuffer(stored, dtype=np.uint8)
        return int(self._views[facts.name].ctypes.data)


def _names(linears: Sequence[Linear]) -> dict[str, None]:
    """Each weight once, in order; a tied head shares its tensor with nothing else laid out."""
    return dict.fromkeys(linear.weight for linear in linears)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
