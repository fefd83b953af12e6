"""Tensors of an open checkpoint as float32 values."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.checkpoint.source import CheckpointSource
from engine.errors import UnsupportedFormat
from kernels.quant import FORMATS

SLAB_ELEMENTS = 1 << 22


class Weights:
    """Decodes what it is asked for; holds views of the file, no copy.

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
            decoded[first : first + slab] = self._decode(name, stored[first : first + slab])
        return decoded.view(shape)

    def rows(self, name: str, indices: Sequence[int]) -> torch.Tensor:
        """Rows of a matrix decoded: [len(indices), columns] float32."""
        return self._decode(name, self._stored(name)[torch.tensor(indices)])

    def _stored(self, name: str) -> torch.Tensor:
        """[rows, bytes a row] uint8, a view of the file."""
        facts = self._source.tensors[name]
        raw = torch.frombuffer(self._source.tensor_bytes(name), dtype=torch.uint8)
        return raw.view(-1, facts.size_bytes * facts.shape[-1] // _product(facts.shape))

    def _decode(self, name: str, stored: torch.Tensor) -> torch.Tensor:
        facts = self._source.tensors[name]
        found = FORMATS.get(facts.format)
        if found is None:
            raise UnsupportedFormat(
                f"Tensor {name} is stored as {facts.format}, which nothing here decodes.",
                tensor=name,
                format=facts.format,
            )
        return found.decode(stored)


def _product(shape: Sequence[int]) -> int:
    elements = 1
    for size in shape:
        elements *= size
    return elements
