"""File bytes to the device through pinned memory: the next part is read while one is copied.

Owns two pinned buffers and two of the same size on the device. What ``sent`` returns stands until
the next call but one.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from engine.owner import Owner

BUFFERS = 2


class Staging(Owner):
    """Copies of parts of files on one device; on a processor each is a copy in RAM."""

    def __init__(self, device: torch.device, size_bytes: int) -> None:
        self._device = device
        self._on_gpu = device.type == "cuda"
        self._host = [
            torch.empty(size_bytes, dtype=torch.uint8, pin_memory=True)
            for _ in range(BUFFERS if self._on_gpu else 0)
        ]
        self._there = [torch.empty_like(host, device=device) for host in self._host]
        self._copied: list[torch.cuda.Event | None] = [None] * len(self._host)
        self._next = 0

    def sent(self, part: NDArray[np.uint8]) -> torch.Tensor:
        """A part of a file on the device, in its shape; larger ones than planned go by themselves."""
        if not self._on_gpu or part.nbytes > self._host[0].numel():
            return torch.from_numpy(part.copy()).to(self._device)
        index = self._next
        self._next = (index + 1) % BUFFERS
        event = self._copied[index]
        if event is not None:
            event.synchronize()
        host, there = self._host[index][: part.nbytes], self._there[index][: part.nbytes]
        np.copyto(host.numpy().reshape(part.shape), part)
        there.copy_(host, non_blocking=True)
        event = torch.cuda.Event()
        event.record()
        self._copied[index] = event
        return there.view(part.shape)

    def close(self) -> None:
        """Free the buffers once the device has read them; may be repeated."""
        for event in self._copied:
            if event is not None:
                event.synchronize()
        self._host.clear()
        self._there.clear()
        self._copied.clear()
