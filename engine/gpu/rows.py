"""What rows are computed: ids, positions, slots and block tables, as kernels read them.

Owns one device tensor and a ring of host tensors of the same shape; one copy a launch of rows. The
host's are pinned, and each is written again only when its copy has been made.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from engine.cache.lane import Lane
from engine.owner import Owner

RING = 4


class DeviceRows(Owner):
    """Room for the facts of ``rows`` rows and for their block tables.

    Attributes:
        ids, positions, slots: [rows] int32 on the device.
        tables: [rows, pages] int32, one a page group.
    """

    def __init__(self, rows: int, tables: int, pages: Sequence[int], device: torch.device) -> None:
        """Make room for ``rows`` rows and ``tables`` lanes with so many pages a group."""
        self._rows = rows
        self._pages = tuple(pages)
        words = 3 * rows + tables * sum(pages)
        on_gpu = device.type == "cuda"
        self._words = torch.zeros(words, dtype=torch.int32, device=device)
        self._ring = [
            torch.zeros(words, dtype=torch.int32, pin_memory=on_gpu)
            for _ in range(RING if on_gpu else 1)
        ]
        self._copied: list[torch.cuda.Event | None] = [None] * len(self._ring)
        self._next = 0
        self.ids, self.positions, self.slots = (
            self._words[part * rows : (part + 1) * rows] for part in range(3)
        )
        self.tables, at = [], 3 * rows
        for count in self._pages:
            self.tables.append(self._words[at : at + tables * count].view(tables, count))
            at += tables * count

    def show(self, lanes: Sequence[Lane], ids: Sequence[int], positions: Sequence[int]) -> None:
        """Copy the facts of some rows; ``lanes`` has one entry a table.

        Rows beyond them are those of nobody: position 0, slot -1, no pages.
        """
        words, index = self._free_host()
        words[: 3 * self._rows] = 0
        words[2 * self._rows : 3 * self._rows] = -1
        words[: len(ids)] = ids
        words[self._rows : self._rows + len(positions)] = positions
        slots = [-1 if lane.recurrent_slot is None else lane.recurrent_slot for lane in lanes]
        words[2 * self._rows : 2 * self._rows + len(slots)] = slots
        at = 3 * self._rows
        for group, count in enumerate(self._pages):
            tables = words[at : at + self.tables[group].numel()].reshape(-1, count)
            tables[:] = -1
            for row, lane in enumerate(lanes):
                table = lane.table(group)[:count]
                tables[row, : len(table)] = table
            at += tables.size
        self._send(index)

    def pretend(self, page_counts: Sequence[int]) -> None:
        """Token 0 everywhere, in pages that may be anybody's: for runs whose results count not."""
        words, index = self._free_host()
        words[:] = 0
        at = 3 * self._rows
        for table, count in zip(self.tables, page_counts, strict=True):
            size = table.numel()
            words[at : at + size] = np.arange(size) % count
            at += size
        self._send(index)

    def close(self) -> None:
        """Free the tensors; may be repeated."""
        self._ring.clear()

    def _send(self, index: int) -> None:
        """Copy one of the ring to the device."""
        self._words.copy_(self._ring[index], non_blocking=True)
        if self._words.is_cuda:
            event = torch.cuda.Event()  # type: ignore[no-untyped-call]
            event.record()
            self._copied[index] = event

    def _free_host(self) -> tuple[NDArray[np.int32], int]:
        """The next of the ring, once its last copy was made."""
        index = self._next
        self._next = (index + 1) % len(self._ring)
        event = self._copied[index]
        if event is not None:
            event.synchronize()
        return self._ring[index].numpy(), index
