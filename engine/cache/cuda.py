"""Pages and slots in a GPU's memory: the ``PageDevice`` of a GPU.

Owns the two buffers that bytes pass through, one on the device and a pinned one on the host; the
arenas are others'. A page lies in many places, so it is gathered on the device and crosses in one
copy. Used from the engine thread only, on the stream that computes, so that order is that of calls.
The order of bytes is ``engine.cache.host``'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray

from engine.cache.formats import PAGE_ROWS, page_bytes
from engine.cache.kv import KvArena
from engine.cache.recurrent import RecurrentArena
from engine.errors import DeviceLost, InvariantBroken
from engine.owner import Owner


class CudaDevice(Owner):
    """Implements ``engine.cache.device.PageDevice`` over arenas on one device."""

    def __init__(self, kv: KvArena, recurrent: RecurrentArena | None, device: torch.device) -> None:
        """Allocate both buffers, each of the largest extent: a page or a slot."""
        self._kv = kv
        self._recurrent = recurrent
        self._device = device
        size = max([*map(self.page_bytes, range(len(kv.groups))), self.slot_bytes])
        on_gpu = device.type == "cuda"
        self._host = torch.empty(size, dtype=torch.uint8, pin_memory=on_gpu)
        self._there = torch.empty(size, dtype=torch.uint8, device=device)

    def page_bytes(self, group: int) -> int:
        """See ``PageDevice``."""
        return page_bytes(self._kv.groups[group], self._kv.kv_format)

    @property
    def slot_bytes(self) -> int:
        """See ``PageDevice``."""
        return 0 if self._recurrent is None else self._recurrent.spec.stream_bytes

    def read_page(self, group: int, page: int, out: memoryview) -> None:
        """See ``PageDevice``."""
        self._read([part[:, page] for part in self._parts(group)], out)

    def write_page(self, group: int, page: int, content: memoryview) -> None:
        """See ``PageDevice``."""
        self._write(content, [part[:, page] for part in self._parts(group)])

    def copy_page(self, group: int, source: int, target: int, rows: int = PAGE_ROWS) -> None:
        """See ``PageDevice``."""
        with _told():
            for part in self._parts(group):
                part[:, target, :, :, :rows].copy_(part[:, source, :, :, :rows])
                part[:, target, :, :, rows:].zero_()

    def read_slot(self, slot: int, out: memoryview) -> None:
        """See ``PageDevice``."""
        self._read(self._slot(slot), out)

    def write_slot(self, slot: int, content: memoryview) -> None:
        """See ``PageDevice``."""
        self._write(content, self._slot(slot))

    def upload_table(self, group: int, table: NDArray[np.int32]) -> None:
        """Nothing: block tables go to the device with the rows that are computed."""

    def close(self) -> None:
        """Free both buffers; may be repeated."""
        self._host = self._there = torch.empty(0, dtype=torch.uint8)

    def _read(self, parts: Sequence[torch.Tensor], out: memoryview) -> None:
        size = _exact(parts, len(out))
        with _told():
            for part, place in zip(parts, _places(self._there[:size], parts), strict=True):
                place.copy_(part)
            self._host[:size].copy_(self._there[:size], non_blocking=True)
            self._wait()
        np.copyto(np.frombuffer(out, np.uint8), self._host[:size].numpy())

    def _write(self, content: memoryview, parts: Sequence[torch.Tensor]) -> None:
        size = _exact(parts, len(content))
        np.copyto(self._host[:size].numpy(), np.frombuffer(content, np.uint8))
        with _told():
            self._there[:size].copy_(self._host[:size], non_blocking=True)
            for part, place in zip(parts, _places(self._there[:size], parts), strict=True):
                part.copy_(place)
            self._wait()

    def _wait(self) -> None:
        """Until the pinned buffer may be used again."""
        if self._device.type == "cuda":
            torch.cuda.current_stream(self._device).synchronize()

    def _parts(self, group: int) -> list[torch.Tensor]:
        """Codes and, where there are some, scales: [layer, page, 2, kv_head, slot, ...] each."""
        tensors = [self._kv.tensors[group]]
        if self._kv.scales:
            tensors.append(self._kv.scales[group])
        return tensors

    def _slot(self, slot: int) -> list[torch.Tensor]:
        if self._recurrent is None:
            raise InvariantBroken("A model without recurrent layers has no slots.")
        return [self._recurrent.states[slot], self._recurrent.tails[slot]]


@contextmanager
def _told() -> Iterator[None]:
    """What the driver reports while bytes are moved is a lost device."""
    try:
        yield
    except RuntimeError as error:
        raise DeviceLost(
            f"The GPU failed while a state was copied: {_first_line(error)}"
        ) from error


def _first_line(error: RuntimeError) -> str:
    return str(error).partition("\n")[0]


def _exact(parts: Sequence[torch.Tensor], found: int) -> int:
    size = sum(part.numel() * part.element_size() for part in parts)
    if size != found:
        raise InvariantBroken(f"A buffer has {found:,} bytes for {size:,}.")
    return size


def _places(buffer: torch.Tensor, parts: Sequence[torch.Tensor]) -> Iterator[torch.Tensor]:
    """Where each part lies in a buffer, in the part's shape and dtype."""
    at = 0
    for part in parts:
        size = part.numel() * part.element_size()
        yield buffer[at : at + size].view(part.dtype).view(part.shape)
        at += size
