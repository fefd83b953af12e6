"""Pages and slots in a GPU's memory: the ``PageDevice`` of a GPU.

Owns the buffers that bytes pass through, two on the device and two pinned ones on the host; the
arenas are others'. A page lies in many places, so some layers at a time are gathered on the device
and cross in one copy, while those before them are copied on the host. Used from the engine thread
only, on the stream that computes, so that order is that of calls. The order of bytes is
``engine.cache.host``'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from engine.cache.formats import PAGE_ROWS, page_bytes
from engine.cache.kv import KvArena
from engine.cache.recurrent import RecurrentArena
from engine.errors import DeviceLost, InvariantBroken
from engine.owner import Owner

BUFFERS: Final = 2
BUFFER_BYTES: Final = 16 << 20
"""Of one buffer, if no layer's share of a page or slot is larger."""
Bytes = NDArray[np.uint8]


@dataclass(slots=True)
class _Buffer:
    """One way through: bytes on the host, the same on the device, when they were last copied."""

    host: torch.Tensor
    there: torch.Tensor
    copied: torch.cuda.Event | None = None

    def bytes(self, size: int) -> Bytes:
        """The host's first bytes, once the device has done with them."""
        if self.copied is not None:
            self.copied.synchronize()
        found: Bytes = self.host[:size].numpy()
        return found

    def mark(self) -> None:
        """Remember that the copy was asked for."""
        if self.there.is_cuda:
            self.copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self.copied.record()


class CudaDevice(Owner):
    """Implements ``engine.cache.device.PageDevice`` over arenas on one device."""

    def __init__(self, kv: KvArena, recurrent: RecurrentArena | None, device: torch.device) -> None:
        """Allocate the buffers."""
        self._kv = kv
        self._recurrent = recurrent
        states = [] if recurrent is None else [recurrent.states[:1], recurrent.tails[:1]]
        layers = [part[0, 0] for part in states]
        layers += [part[0, 0] for part in (*kv.tensors, *kv.scales)]
        size = max([BUFFER_BYTES, *map(_size, layers)])
        self._buffers = [
            _Buffer(
                torch.empty(size, dtype=torch.uint8, pin_memory=device.type == "cuda"),
                torch.empty(size, dtype=torch.uint8, device=device),
            )
            for _ in range(BUFFERS)
        ]

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
        """Free the buffers once nothing is on its way; may be repeated."""
        for buffer in self._buffers:
            buffer.bytes(0)
        self._buffers = []

    def _read(self, parts: Sequence[torch.Tensor], out: memoryview) -> None:
        places = list(_places(parts, np.frombuffer(out, np.uint8), self._buffers[0].host.numel()))
        with _told():
            for index, (part, _) in enumerate(places):
                self._fetch(index, part)
                if index:
                    self._land(index - 1, places[index - 1][1])
            self._land(len(places) - 1, places[-1][1])

    def _fetch(self, index: int, part: torch.Tensor) -> None:
        """Have some layers gathered and sent to the host."""
        buffer, size = self._buffers[index % BUFFERS], _size(part)
        buffer.bytes(0)
        buffer.there[:size].view(part.dtype).view(part.shape).copy_(part)
        buffer.host[:size].copy_(buffer.there[:size], non_blocking=True)
        buffer.mark()

    def _land(self, index: int, place: Bytes) -> None:
        """Wait for them and put them where they belong."""
        np.copyto(place, self._buffers[index % BUFFERS].bytes(place.nbytes))

    def _write(self, content: memoryview, parts: Sequence[torch.Tensor]) -> None:
        whole = np.frombuffer(content, np.uint8)
        places = _places(parts, whole, self._buffers[0].host.numel())
        with _told():
            for index, (part, place) in enumerate(places):
                buffer, size = self._buffers[index % BUFFERS], place.nbytes
                np.copyto(buffer.bytes(size), place)
                buffer.there[:size].copy_(buffer.host[:size], non_blocking=True)
                buffer.mark()
                part.copy_(buffer.there[:size].view(part.dtype).view(part.shape))

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
        first_line = str(error).partition("\n")[0]
        raise DeviceLost(f"The GPU failed while a state was copied: {first_line}") from error


def _size(part: torch.Tensor) -> int:
    return part.numel() * part.element_size()


def _places(
    parts: Sequence[torch.Tensor], whole: Bytes, most: int
) -> Iterator[tuple[torch.Tensor, Bytes]]:
    """Runs of a part's layers of ``most`` bytes at most, and where they lie in a buffer."""
    wanted = sum(map(_size, parts))
    if wanted != whole.nbytes:
        raise InvariantBroken(f"A buffer has {whole.nbytes:,} bytes for {wanted:,}.")
    at = 0
    for part in parts:
        layer = _size(part[0])
        cuts = [*range(0, len(part), max(1, most // max(1, layer))), len(part)]
        for first, last in pairwise(cuts):
            size = (last - first) * layer
            yield part[first:last], whole[at : at + size]
            at += size
