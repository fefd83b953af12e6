"""A checkpoint's tensors as the native library reads them: in place, in the file's own blocks.

Nothing is copied or rounded. Only a format that the library does not know (the codebook formats
below three bits) is decoded once to float32 and kept so; ``decoded_bytes`` tells the planner.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import torch

from engine.checkpoint.source import CheckpointSource, TensorFacts
from engine.forward import Weights
from engine.models.spec import Linear
from kernels.cpu.library import Library
from kernels.cpu.records import Weight
from kernels.quant.facts import FACTS


class StoredWeights:
    """Hands out ``Weight`` records and keeps alive what they point to.

    Owns float32 copies of norms, biases and foreign formats. The source must stay open.
    """

    def __init__(self, source: CheckpointSource, library: Library) -> None:
        self._source = source
        self._library = library
        self._decoder = Weights(source)
        self._floats: dict[str, torch.Tensor] = {}
        self._views: dict[str, np.ndarray[tuple[int], np.dtype[np.uint8]]] = {}

    def weight(self, linear: Linear) -> Weight:
        """The record of a product's weight and bias."""
        facts = self._source.tensors[linear.weight]
        rows, columns = facts.shape
        bias = 0 if linear.bias is None else self.floats(linear.bias).data_ptr()
        known = FACTS[facts.format]
        if not self._library.has_format(known.type_id):
            decoded = self.floats(linear.weight)
            return Weight(decoded.data_ptr(), bias, rows, columns, columns * 4, 0, 0)
        row_bytes = known.row_bytes(columns)
        return Weight(self._address(facts), bias, rows, columns, row_bytes, known.type_id, 0)

    def floats(self, name: str) -> torch.Tensor:
        """A tensor decoded to float32 once and kept."""
        if name not in self._floats:
            self._floats[name] = self._decoder.whole(name).contiguous()
        return self._floats[name]

    def touch(self, names: Iterable[str]) -> Iterable[int]:
        """Read the tensors' pages in, yielding the bytes of each as it is done."""
        for name in names:
            facts = self._source.tensors[name]
            self._address(facts)
            self._views[name][:: 4096].max(initial=0)
            yield facts.size_bytes

    def close(self) -> None:
        """Drop the views and copies; may be repeated."""
        self._floats.clear()
        self._views.clear()

    def _address(self, facts: TensorFacts) -> int:
        if facts.name not in self._views:
            stored = self._source.tensor_bytes(facts.name)
            self._views[facts.name] = np.frombuffer(stored, dtype=np.uint8)
        return int(self._views[facts.name].ctypes.data)


def decoded_bytes(source: CheckpointSource, library: Library, names: Iterable[str]) -> int:
    """Bytes of the named matrices that must be kept as float32."""
    found = [source.tensors[name] for name in names]
    return sum(
        4 * math.prod(facts.shape)
        for facts in found
        if not library.has_format(FACTS[facts.format].type_id)
    )
