"""Host memory of the archive: buffers for extents on their way to the disk, and from it.

Owns the buffers, never more bytes than it was given. A buffer is handed out, then either kept under
an extent's name or given back. A kept one that is not written yet stays; a written one stays until
its memory is needed, the least recently used first. Reading and writing leave each other a little.
Every method is called while holding the catalogue's lock.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

import numpy as np

from engine.errors import InvariantBroken
from engine.states.records import ExtentName

STAGED_EXTENTS: Final = 2


@dataclass(slots=True)
class _Held:
    buffer: memoryview
    written: bool = False
    readers: int = 0


class HostMemory:
    """Buffers of at most ``limit_bytes`` in all, two of the largest extent's for reading only.

    Where there is room for more, one is for writing only.

    Attributes:
        evicted: how many extents had to go.
    """

    def __init__(self, limit_bytes: int, largest_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._read_reserve_bytes = STAGED_EXTENTS * largest_bytes
        has_more = limit_bytes >= self._read_reserve_bytes + largest_bytes
        self._write_reserve_bytes = largest_bytes if has_more else 0
        self._held: OrderedDict[ExtentName, _Held] = OrderedDict()
        self._writing: dict[int, memoryview] = {}
        self._reading: dict[int, memoryview] = {}
        self._free: list[memoryview] = []
        self.evicted = 0

    @property
    def held_bytes(self) -> int:
        """Of every buffer that exists."""
        buffers = (*self._writing.values(), *self._reading.values(), *self._free)
        return sum(map(len, buffers)) + self._kept_bytes()

    @property
    def waiting_bytes(self) -> int:
        """Of extents that are not written yet."""
        return sum(len(held.buffer) for held in self._held.values() if not held.written)

    def take(self, size_bytes: int, *, reading: bool = False) -> memoryview | None:
        """A buffer of exactly so many bytes; None where that would pass the limit."""
        while self._least_bytes(size_bytes, reading=reading) > self._limit_bytes:
            if not self._evict():
                return None
        buffer = self._reused(size_bytes)
        (self._reading if reading else self._writing)[id(buffer)] = buffer
        return buffer

    def give_back(self, buffer: memoryview) -> None:
        """A buffer that was taken holds nothing of worth."""
        taken = self._reading if id(buffer) in self._reading else self._writing
        if taken.pop(id(buffer), None) is None:
            raise InvariantBroken("A buffer was given back that nobody took.")
        self._free.append(buffer)

    def keep(self, name: ExtentName, buffer: memoryview) -> None:
        """A buffer that was taken now holds an extent, which must be written."""
        if self._writing.pop(id(buffer), None) is None:
            raise InvariantBroken("An extent came in a buffer that nobody took.")
        self._held[name] = _Held(buffer)

    def wrote(self, name: ExtentName) -> None:
        """An extent lies on the disk too."""
        if name in self._held:
            self._held[name].written = True

    def __contains__(self, name: object) -> bool:
        return name in self._held

    def peek(self, name: ExtentName) -> memoryview | None:
        """The bytes of an extent for the one that writes it."""
        held = self._held.get(name)
        return None if held is None else held.buffer

    def borrow(self, name: ExtentName) -> memoryview | None:
        """The bytes of an extent, which stay until ``restore``."""
        held = self._held.get(name)
        if held is None:
            return None
        held.readers += 1
        self._held.move_to_end(name)
        return held.buffer

    def restore(self, name: ExtentName, buffer: memoryview) -> None:
        """What was borrowed was read."""
        held = self._held.get(name)
        if held is not None and held.buffer is buffer:
            held.readers -= 1

    def forget(self, name: ExtentName) -> None:
        """An extent is kept no more; one that is borrowed keeps its memory for its readers."""
        held = self._held.pop(name, None)
        if held is not None and held.readers == 0 and held.written:
            self._free.append(held.buffer)

    def clear(self) -> None:
        """Let go of everything."""
        self._held.clear()
        self._writing.clear()
        self._reading.clear()
        self._free.clear()

    def _least_bytes(self, size_bytes: int, *, reading: bool) -> int:
        """What must fit for another buffer, what is set aside for the other kind included."""
        staged = sum(map(len, self._reading.values()))
        others = sum(map(len, self._writing.values())) + self._kept_bytes()
        if reading:
            return size_bytes + staged + max(others, self._write_reserve_bytes)
        return size_bytes + others + max(staged, self._read_reserve_bytes)

    def _reused(self, size_bytes: int) -> memoryview:
        """A free buffer of that size, else a new one in place of free ones of other sizes."""
        for place, buffer in enumerate(self._free):
            if len(buffer) == size_bytes:
                return self._free.pop(place)
        while self._free and self.held_bytes + size_bytes > self._limit_bytes:
            self._free.pop()
        return np.empty(size_bytes, np.uint8).data

    def _kept_bytes(self) -> int:
        return sum(len(held.buffer) for held in self._held.values())

    def _evict(self) -> bool:
        """Free the oldest extent that is written and not being read."""
        for name, held in self._held.items():
            if held.written and held.readers == 0:
                self._free.append(self._held.pop(name).buffer)
                self.evicted += 1
                return True
        return False
