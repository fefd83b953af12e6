"""Pages and slots in RAM: the ``PageDevice`` of the processor.

Owns nothing: the arenas do, and no view of them outlives a call, so that their memory is free once
they are closed. Used from the engine thread only.

A page's bytes are its codes [layer, 2, kv_head, slot, head_dim], then, in a format that has them,
its scales [layer, 2, kv_head, slot] float32; a slot's are the states, then the tails.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from engine.cache.formats import PAGE_ROWS, page_bytes
from engine.cache.kv import KvArena
from engine.cache.recurrent import RecurrentArena
from engine.errors import InvariantBroken

Bytes = NDArray[np.uint8]


class HostDevice:
    """Implements ``engine.cache.device.PageDevice`` over arenas in RAM."""

    def __init__(self, kv: KvArena, recurrent: RecurrentArena | None = None) -> None:
        self._kv = kv
        self._recurrent = recurrent

    def page_bytes(self, group: int) -> int:
        """See ``PageDevice``."""
        return page_bytes(self._kv.groups[group], self._kv.kv_format)

    @property
    def slot_bytes(self) -> int:
        """See ``PageDevice``."""
        return 0 if self._recurrent is None else self._recurrent.spec.stream_bytes

    def read_page(self, group: int, page: int, out: memoryview) -> None:
        """See ``PageDevice``."""
        _gather(self._page(group, page), np.frombuffer(out, np.uint8))

    def write_page(self, group: int, page: int, content: memoryview) -> None:
        """See ``PageDevice``."""
        _scatter(np.frombuffer(content, np.uint8), self._page(group, page))

    def copy_page(self, group: int, source: int, target: int, rows: int = PAGE_ROWS) -> None:
        """See ``PageDevice``."""
        for part in self._parts(group):
            by_head = part.reshape(*part.shape[:2], 2 * self._kv.groups[group].kv_head_count, -1)
            written = by_head.shape[-1] // PAGE_ROWS * rows
            by_head[:, target, :, :written] = by_head[:, source, :, :written]
            by_head[:, target, :, written:] = 0

    def read_slot(self, slot: int, out: memoryview) -> None:
        """See ``PageDevice``."""
        _gather(self._slot(slot), np.frombuffer(out, np.uint8))

    def write_slot(self, slot: int, content: memoryview) -> None:
        """See ``PageDevice``."""
        _scatter(np.frombuffer(content, np.uint8), self._slot(slot))

    def upload_table(self, group: int, table: NDArray[np.int32]) -> None:
        """Nothing: the processor reads the lane's own array."""

    def _parts(self, group: int) -> list[Bytes]:
        """Codes and, where there are some, scales: [layer, page, bytes] each."""
        tensors = [self._kv.tensors[group]]
        if self._kv.scales:
            tensors.append(self._kv.scales[group])
        return [_bytes(tensor, *tensor.shape[:2]) for tensor in tensors]

    def _page(self, group: int, page: int) -> list[Bytes]:
        return [part[:, page] for part in self._parts(group)]

    def _slot(self, slot: int) -> list[Bytes]:
        if self._recurrent is None:
            raise InvariantBroken("A model without recurrent layers has no slots.")
        return [
            _bytes(tensor, 1, tensor.shape[0])[:, slot]
            for tensor in (self._recurrent.states, self._recurrent.tails)
        ]


def _bytes(tensor: torch.Tensor, *shape: int) -> Bytes:
    """A contiguous tensor as bytes, [*shape, bytes of the rest]; no copy."""
    whole: Bytes = tensor.view(-1).view(torch.uint8).numpy()
    return whole.reshape(*shape, -1)


def _gather(parts: list[Bytes], out: Bytes) -> None:
    """Copy parts, one after the other, into a buffer of exactly their size."""
    for part, place in zip(parts, _places(parts, out), strict=True):
        np.copyto(place, part)


def _scatter(content: Bytes, parts: list[Bytes]) -> None:
    for part, place in zip(parts, _places(parts, content), strict=True):
        np.copyto(part, place)


def _places(parts: list[Bytes], buffer: Bytes) -> list[Bytes]:
    """Where each part lies in a buffer, in the part's shape."""
    if buffer.nbytes != sum(part.nbytes for part in parts):
        raise InvariantBroken(
            f"A buffer has {buffer.nbytes:,} bytes for {sum(part.nbytes for part in parts):,}."
        )
    found, at = [], 0
    for part in parts:
        found.append(buffer[at : at + part.nbytes].reshape(part.shape))
        at += part.nbytes
    return found
