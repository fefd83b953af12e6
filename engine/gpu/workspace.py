"""Scratch of a step or a prompt chunk: flat memory, seen in the shape that is needed.

Owns the tensors. A name is one piece of memory: whoever asks for it again, in whatever shape, gets
the same bytes. Used from the engine thread only; the order of launches keeps users apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import torch

from engine.errors import InvariantBroken
from engine.owner import Owner
from kernels.packed.layout import BLOCK
from kernels.rows import SUM_ELEMENTS, QuantizedRows

MOST_VIEWS: Final = 4096
"""Views that are remembered; chunks have many lengths."""


class Workspace(Owner):
    """Named scratch of one device, allocated once."""

    def __init__(self, sizes: Mapping[str, int], device: torch.device) -> None:
        """Allocate ``sizes`` bytes for each name."""
        self._device = device
        self._flat = {
            name: torch.empty(size, dtype=torch.uint8, device=device)
            for name, size in sizes.items()
        }
        self._views: dict[tuple[str, tuple[int, ...], torch.dtype], torch.Tensor] = {}

    def view(
        self, name: str, shape: tuple[int, ...], dtype: torch.dtype = torch.float32
    ) -> torch.Tensor:
        """The memory of a name as a contiguous tensor."""
        key = name, shape, dtype
        found = self._views.get(key)
        if found is None:
            size = math.prod(shape) * dtype.itemsize
            flat = self._flat[name]
            if size > flat.numel():
                raise InvariantBroken(f"{name} of {size:,} bytes was planned {flat.numel():,}.")
            found = flat[:size].view(dtype).view(shape)
            if len(self._views) >= MOST_VIEWS:
                self._views.clear()
            self._views[key] = found
        return found

    def whole(self, name: str) -> torch.Tensor:
        """The memory of a name as bytes."""
        return self._flat[name]

    def rows(self, name: str, rows: int, columns: int) -> QuantizedRows:
        """The memory of a name as activations of generated rows."""
        flat = self._flat[name]
        sizes = quantized_sizes(rows, columns)
        if sum(sizes) > flat.numel():
            raise InvariantBroken(f"{name} of {sum(sizes):,} bytes was planned {flat.numel():,}.")
        parts, at = [], 0
        for size in sizes:
            parts.append(flat[at : at + size])
            at += size
        high, low, scales, sums = parts
        return QuantizedRows(
            high.view(torch.int8).view(rows, columns),
            low.view(torch.int8).view(rows, columns),
            scales.view(torch.float32).view(rows, columns // BLOCK),
            sums.view(torch.int32).view(rows, columns // SUM_ELEMENTS),
        )

    def close(self) -> None:
        """Free all of it; may be repeated."""
        self._flat.clear()
        self._views.clear()


def quantized_sizes(rows: int, columns: int) -> tuple[int, int, int, int]:
    """Bytes of the four parts of activations of generated rows."""
    whole = rows * columns
    return whole, whole, 4 * whole // BLOCK, 4 * whole // SUM_ELEMENTS
