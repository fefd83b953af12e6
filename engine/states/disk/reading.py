"""Reading states back: blocks of extents, read and checked by two threads, handed over in order.

While one thread waits for the disk the other sums what it has read, so a read costs about what the
disk takes. What is not whole, short or wrong ends the fetch as damaged, and is never handed over.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from engine.owner import Owner
from engine.protocol import Tier
from engine.states.border import Piece
from engine.states.disk.catalogue import Catalogue
from engine.states.disk.host import HostMemory
from engine.states.disk.stored.folder import StateFolder
from engine.states.disk.stored.formats import block_count
from engine.states.records import ExtentName

THREADS: Final = 2
NAME: Final = "kept-states-reader"
AHEAD_BYTES: Final = 24 * 1024 * 1024
AHEAD_LEAST: Final = 2

Task = Callable[[], None]


class Readers(Owner):
    """The threads that read; each is started when there is first something to read."""

    def __init__(self, count: int = THREADS) -> None:
        self._count = count
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def add(self, task: Task) -> None:
        """Run it after those that wait."""
        while len(self._threads) < self._count:
            thread = threading.Thread(target=self._run, name=NAME, daemon=True)
            self._threads.append(thread)
            thread.start()
        self._tasks.put(task)

    def close(self) -> None:
        """End the threads once what waits is done; every fetch was closed before."""
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()


@dataclass(slots=True, eq=False)
class _Slot:
    """One extent of a fetch: where its bytes are, and the blocks that are not checked yet."""

    name: ExtentName
    size_bytes: int
    buffer: memoryview | None = None
    tier: Tier = "disk"
    blocks_left: int = 0


@dataclass(frozen=True, slots=True)
class Sources:
    """From where a fetch reads, and whom it tells that an extent cannot be had, that it closed."""

    catalogue: Catalogue
    host: HostMemory
    folder: StateFolder
    readers: Readers
    lost: Callable[[ExtentName], None]
    closed: Callable[[StateFetch], None]


class StateFetch(Owner):
    """Implements ``engine.states.border.Fetch``; its methods are called on the engine's thread."""

    def __init__(self, sources: Sources, extents: Sequence[tuple[ExtentName, int]]) -> None:
        """Begin to read; an extent of 0 bytes is one that is not there."""
        self._from = sources
        self._slots = [_Slot(name, size) for name, size in extents]
        self._begun = self._given = 0
        self._out: dict[ExtentName, _Slot] = {}
        self._read_bytes = 0
        self._running = 0
        self._damaged = not all(size for _, size in extents)
        self._closed = False
        self._changed = threading.Condition()
        self._begin()

    @property
    def status(self) -> Literal["reading", "read", "damaged"]:
        """See the border."""
        if self._damaged:
            return "damaged"
        return "read" if self._given == len(self._slots) else "reading"

    @property
    def read_bytes(self) -> int:
        """See the border."""
        return self._read_bytes

    def ready(self) -> Sequence[Piece]:
        """See the border."""
        self._begin()
        pieces = []
        with self._changed:
            while self._given < self._begun and not self._damaged and not self._closed:
                slot = self._slots[self._given]
                if slot.blocks_left or slot.buffer is None:
                    break
                pieces.append(Piece(slot.name, slot.buffer, slot.tier))
                self._out[slot.name] = slot
                self._given += 1
                self._read_bytes += slot.size_bytes
        return pieces

    def wait(self, limit_s: float) -> None:
        """Return once there may be something new, at the latest after ``limit_s``."""
        with self._changed:
            if not self._damaged and self._given < self._begun:
                slot = self._slots[self._given]
                self._changed.wait_for(lambda: self._damaged or not slot.blocks_left, limit_s)

    def done(self, name: ExtentName) -> None:
        """See the border."""
        self._let_go(self._out.pop(name))
        self._begin()

    def close(self) -> None:
        """See the border."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.wait_for(lambda: self._running == 0)
        self._out.clear()
        for slot in self._slots:
            self._let_go(slot)
        self._from.closed(self)

    def _begin(self) -> None:
        """Have the next extents read, as far ahead as there is memory."""
        while self._begun < len(self._slots) and not (self._closed or self._damaged):
            slot = self._slots[self._begun]
            if self._is_far_ahead(slot) or not self._supply(slot):
                return
            self._begun += 1

    def _is_far_ahead(self, slot: _Slot) -> bool:
        ahead = [each.size_bytes for each in self._slots[: self._begun] if each.buffer is not None]
        return len(ahead) >= AHEAD_LEAST and sum(ahead) + slot.size_bytes > AHEAD_BYTES

    def _supply(self, slot: _Slot) -> bool:
        """Give a slot its bytes, or memory and readers for them; False while there is none."""
        with self._from.catalogue.lock:
            slot.buffer = self._from.host.borrow(slot.name)
            if slot.buffer is not None:
                slot.tier = "host"
                return True
            slot.buffer = self._from.host.take(slot.size_bytes, reading=True)
        if slot.buffer is None:
            return False
        slot.blocks_left = block_count(slot.size_bytes)
        for block in range(slot.blocks_left):
            self._from.readers.add(partial(self._read, slot, block))
        return True

    def _read(self, slot: _Slot, block: int) -> None:
        """On a reader's thread: one block, unless the fetch has ended."""
        with self._changed:
            if self._closed or self._damaged or slot.buffer is None:
                return
            self._running += 1
        try:
            whole = self._from.folder.read_block(slot.name, block, slot.buffer)
        except OSError:
            whole = False
        with self._changed:
            first = not whole and not self._damaged
            self._damaged = self._damaged or not whole
            slot.blocks_left -= 1
        if first:
            self._from.lost(slot.name)
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def _let_go(self, slot: _Slot) -> None:
        buffer, slot.buffer = slot.buffer, None
        if buffer is None:
            return
        with self._from.catalogue.lock:
            if slot.tier == "host":
                self._from.host.restore(slot.name, buffer)
            else:
                self._from.host.give_back(buffer)
