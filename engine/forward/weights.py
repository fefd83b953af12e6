"""Tensors of an open checkpoint as float32 values."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from engine.checkpoint.source import CheckpointSource
from engine.errors import InvariantBroken, UnsupportedFormat
from engine.models.spec import Norm
from kernels.quant import FORMATS

SLAB_ELEMENTS = 1 << 22


class Weights:
    """Decodes what it is asked for; keeps neither views nor copies.

    The source must stay open as long as this lives.
    """

    def __init__(self, source: CheckpointSource) -> None:
        self._source = source

    def whole(self, name: str) -> torch.Tensor:
        """The tensor decoded, in its own shape, float32, decoded slab by slab."""
        stored = self._stored(name)
        shape = self._source.tensors[name].shape
        decoded = torch.empty(stored.shape[0], shape[-1])
        slab = max(1, SLAB_ELEMENTS // shape[-1])
        for first in range(0, stored.shape[0], slab):
            part = stored[first : first + slab].copy()
            decoded[first : first + slab] = self._decode(name, part)
        return decoded.view(shape)

    def norm(self, norm: Norm) -> torch.Tensor:
        """A norm's weight plus its offset: [width] float32."""
        if norm.weight is None:
            raise InvariantBroken("A norm without a weight was asked for its weight.")
        return self.whole(norm.weight) + norm.offset

    def rows(self, name: str, indices: Sequence[int]) -> torch.Tensor:
        """Rows of a matrix decoded: [len(indices), columns] float32."""
        return self._decode(name, self._stored(name)[np.asarray(indices)])

    def _stored(self, name: str) -> NDArray[np.uint8]:
        """[rows, bytes a row], a read-only view of the file."""
        facts = self._source.tensors[name]
        raw = np.frombuffer(self._source.tensor_bytes(name), dtype=np.uint8)
        return raw.reshape(-1, facts.size_bytes * facts.shape[-1] // math.prod(facts.shape))

    def _decode(self, name: str, stored: NDArray[np.uint8]) -> torch.Tensor:
        facts = self._source.tensors[name]
        found = FORMATS.get(facts.format)
        if found is None:
            raise UnsupportedFormat(
                f"Tensor {name} is stored as {facts.format}, which nothing here decodes.",
                tensor=name,
                format=facts.format,
            )
        return found.decode(torch.from_numpy(stored))
