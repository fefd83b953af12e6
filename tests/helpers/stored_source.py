"""A checkpoint in memory whose matrices are stored in packed formats, with elements of fit size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from kernels.cpu import cases
from kernels.quant import FORMATS
from tests.helpers.memory_source import GEMMA3, LLAMA, MemorySource, random_arrays

WIDE_LLAMA = LLAMA | {
    "embedding_length": 96,
    "feed_forward_length": 160,
    "attention.head_count": 6,
    "attention.head_count_kv": 2,
    "attention.key_length": 16,
}
WIDE_GEMMA3 = GEMMA3 | {
    "embedding_length": 64,
    "feed_forward_length": 96,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
    "attention.key_length": 48,
}


class StoredSource(MemorySource):
    """A ``MemorySource`` with some matrices packed.

    Args:
        stored: tensor name to (format, rows of quant blocks [row, bytes] uint8).
    """

    def __init__(
        self,
        architecture: str,
        metadata: Mapping[str, Any],
        arrays: Mapping[str, Any],
        stored: Mapping[str, tuple[str, torch.Tensor]],
    ) -> None:
        super().__init__(architecture, metadata, arrays)
        self._stored = dict(stored)
        for name, (format_name, rows) in stored.items():
            self.tensors[name] = replace(
                self.tensors[name], format=format_name, size_bytes=rows.nbytes
            )

    def tensor_bytes(self, name: str) -> memoryview:
        """The stored bytes, read-only."""
        if name not in self._stored:
            return super().tensor_bytes(name)
        return memoryview(self._stored[name][1].numpy().tobytes())


def wide_source(
    architecture: str = "llama",
    *,
    formats: Mapping[str, str] | None = None,
    arrays: Mapping[str, Any] | None = None,
    **changed: Any,
) -> StoredSource:
    """A small checkpoint whose widths the native library takes.

    Args:
        formats: part of a tensor's name, such as ``ffn_up``, to its format; the rest is f32.
        arrays: tensors added or replaced.
        changed: keys, with ``__`` for the dot.
    """
    keys: dict[str, Any] = dict(WIDE_GEMMA3 if architecture == "gemma3" else WIDE_LLAMA)
    keys |= {key.replace("__", "."): value for key, value in changed.items()}
    tensors = random_arrays(architecture, keys) | dict(arrays or {})
    stored = {
        name: (packed, random_stored(packed, *array.shape, size=1.3 * array.shape[1] ** -0.5))
        for name, array in tensors.items()
        for part, packed in (formats or {}).items()
        if array.ndim == 2 and part in name
    }
    return StoredSource(architecture, keys, tensors, stored)


def random_stored(format_name: str, rows: int, columns: int, *, size: float) -> torch.Tensor:
    """Random quant blocks whose elements have about ``size`` as root mean square."""
    if format_name in cases.HALF_FIELDS or format_name in cases.FLOAT_FORMATS:
        stored = cases.random_weight(format_name, rows, columns)
        fields = cases.HALF_FIELDS.get(format_name, ())
    else:
        stored, fields = _lattice_blocks(format_name, rows, columns), (0,)
    root = FORMATS[format_name].decode(stored).square().mean().sqrt().item()
    blocks = stored.view(-1, FORMATS[format_name].block_bytes).numpy()
    for at in fields:
        halves = np.ascontiguousarray(blocks[:, at : at + 2]).view("<f2")
        blocks[:, at : at + 2] = (halves * np.float16(size / root)).view(np.uint8)
    return stored


def _lattice_blocks(format_name: str, rows: int, columns: int) -> torch.Tensor:
    """Blocks of a codebook format that begins with its one f16."""
    size = FORMATS[format_name].row_bytes(columns)
    draw = np.random.default_rng([rows, columns, 5])
    stored = draw.integers(0, 256, (rows, size), dtype=np.uint8)
    stored.reshape(-1, FORMATS[format_name].block_bytes)[:, :2] = np.array([0.01], "<f2").view(
        np.uint8
    )
    return torch.from_numpy(stored)
