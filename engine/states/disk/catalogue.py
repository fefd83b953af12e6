"""What is kept, in memory: the states and extents of every identity, under one lock.

A shelf is what one identity's folder holds; the catalogue is all shelves. Nothing here touches a
file. The engine's thread, the worker and the readers use it, each while holding ``lock``.

Invariant of a shelf: an extent's ``states`` counts the states that name it; every extent that a
state names is there, written or on its way; ``disk_bytes`` is what its written files take.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.cache.formats import PAGE_ROWS
from engine.states.border import Hit
from engine.states.disk.stored.formats import HEADER_BYTES
from engine.states.records import ExtentName, Role, StateRecord


@dataclass(slots=True)
class Extent:
    """One extent: its bytes, how many states name it, and when it came (seconds).

    ``written`` is whether its file is whole; until then its bytes are in host memory.
    """

    size_bytes: int
    written: bool
    came_s: float
    states: int = 0


@dataclass(slots=True, eq=False)
class Kept:
    """One state and what changes about it.

    Attributes:
        pinned_by: those of ``conversations`` whose states a person wants to stay.
        manifest_bytes: 0 until its file is there.
        readers: fetches under way; such a state is not evicted.
        doomed: to be deleted when the last of them has closed.
        changed: the file does not say all of this any more.
    """

    record: StateRecord
    conversations: set[str]
    pinned_by: set[str]
    used_s: float
    manifest_bytes: int = 0
    readers: int = 0
    doomed: bool = False
    changed: bool = False

    @property
    def key(self) -> bytes:
        """The digest of its ids."""
        return self.record.key


@dataclass(frozen=True, slots=True)
class Removed:
    """Files that nothing needs any more: of states by key, and of extents."""

    shelf: Shelf
    keys: tuple[bytes, ...]
    extents: tuple[ExtentName, ...]


@dataclass(slots=True, eq=False)
class Shelf:
    """What is kept under one identity; ``name`` is its folder's.

    Attributes:
        known: whether it has been read what the folder holds.
        adopted: set once that is so under the identity and probe with which it was opened.
        usable: whether its folder can be written.
        revision: another number whenever a state came, went or changed.
        forgotten: told of each extent that is forgotten.
    """

    name: str
    model: str = ""
    extent_bytes: Mapping[int, int] = field(default_factory=dict)
    can_cut: bool = False
    states: dict[bytes, Kept] = field(default_factory=dict)
    extents: dict[ExtentName, Extent] = field(default_factory=dict)
    disk_bytes: int = 0
    usable: bool = True
    revision: int = 0
    forgotten: Callable[[ExtentName], None] | None = None
    known: bool = False
    adopted: threading.Event = field(default_factory=threading.Event)
    _ends: dict[bytes, dict[bytes, None]] = field(default_factory=dict)

    def add(self, kept: Kept) -> None:
        """Take a state in, every extent of which is there."""
        self.states[kept.key] = kept
        self.revision += 1
        self.disk_bytes += kept.manifest_bytes
        for name in kept.record.extents:
            self.extents[name].states += 1
            if self.can_cut:
                self._ends.setdefault(name.digest, {})[kept.key] = None

    def remove(self, keys: Iterable[bytes]) -> Removed:
        """Forget states, and the extents that then none names; those not here are passed over."""
        gone = [self.states.pop(key) for key in keys if key in self.states]
        self.revision += len(gone)
        freed: list[ExtentName] = []
        for kept in gone:
            self.disk_bytes -= kept.manifest_bytes
            for name in kept.record.extents:
                self._forget_end(name, kept.key)
                extent = self.extents[name]
                extent.states -= 1
                if extent.states == 0:
                    freed.append(name)
        return Removed(self, tuple(kept.key for kept in gone), self.forget_extents(freed))

    def forget_extents(self, names: Iterable[ExtentName]) -> tuple[ExtentName, ...]:
        """Forget extents that no state names; returns those that were here."""
        found = []
        for name in names:
            extent = self.extents.pop(name, None)
            if extent is not None:
                found.append(name)
                if self.forgotten is not None:
                    self.forgotten(name)
                if extent.written:
                    self.disk_bytes -= file_bytes(extent.size_bytes)
        return tuple(found)

    def lose(self, name: ExtentName) -> Removed:
        """Forget an extent that turned out lost, and every state that names it."""
        broken = [key for key, kept in self.states.items() if name in kept.record.extents]
        removed = self.remove(broken)
        return Removed(self, removed.keys, (*removed.extents, *self.forget_extents((name,))))

    def lose_unwritten(self) -> Removed:
        """Forget what did not reach the disk: states without a file, extents without one."""
        removed = self.remove([key for key, kept in self.states.items() if not kept.manifest_bytes])
        waiting = [name for name, extent in self.extents.items() if not extent.written]
        return Removed(self, removed.keys, (*removed.extents, *self.forget_extents(waiting)))

    def change(self, kept: Kept) -> None:
        """A state's facts are other than its file says."""
        kept.changed = True
        self.revision += 1

    def wrote(self, name: ExtentName) -> None:
        """An extent's file is whole; said once."""
        extent = self.extents[name]
        extent.written = True
        self.disk_bytes += file_bytes(extent.size_bytes)

    def wrote_manifest(self, kept: Kept, size_bytes: int) -> None:
        """A state's file is whole and says what it was packed from."""
        self.disk_bytes += size_bytes - kept.manifest_bytes
        kept.manifest_bytes = size_bytes

    def find(self, prefixes: Sequence[tuple[int, bytes]], ids: NDArray[np.int32]) -> Hit | None:
        """See ``StateArchive.find``."""
        for at, digest in reversed(prefixes):
            for key in self._ending(at, digest):
                kept = self.states[key]
                if not kept.doomed and np.array_equal(kept.record.ids[:at], ids[:at]):
                    return Hit(kept.record, at)
        return None

    def loose(self, before_s: float) -> tuple[ExtentName, ...]:
        """Written extents that came before a moment and that no state names."""
        return tuple(
            name
            for name, extent in self.extents.items()
            if extent.written and extent.states == 0 and extent.came_s <= before_s
        )

    @property
    def waiting_bytes(self) -> int:
        """Of the ids of states that have no file yet."""
        return sum(k.record.ids.nbytes for k in self.states.values() if not k.manifest_bytes)

    def freed_bytes(self, states: Iterable[Kept]) -> int:
        """What deleting these states would free on the disk."""
        named: Counter[ExtentName] = Counter()
        total = 0
        for kept in states:
            named.update(kept.record.extents)
            total += kept.manifest_bytes
        for name, count in named.items():
            extent = self.extents[name]
            if extent.written and extent.states == count:
                total += file_bytes(extent.size_bytes)
        return total

    def _ending(self, at: int, digest: bytes) -> Iterator[bytes]:
        """Keys of states that end after a prefix, then of those that may be cut there."""
        if digest in self.states:
            yield digest
        if self.can_cut and at % PAGE_ROWS == 0:
            yield from self._ends.get(digest, ())

    def _forget_end(self, name: ExtentName, key: bytes) -> None:
        ends = self._ends.get(name.digest)
        if ends is not None:
            ends.pop(key, None)
            if not ends:
                del self._ends[name.digest]


@dataclass(slots=True, eq=False)
class Catalogue:
    """All shelves by name, which one is open, and which conversations are."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    shelves: dict[str, Shelf] = field(default_factory=dict)
    opened: Shelf | None = None
    open_conversations: frozenset[str] = frozenset()
    dropped: int = 0
    damaged: int = 0

    @property
    def disk_bytes(self) -> int:
        """What the written files of all shelves take."""
        return sum(shelf.disk_bytes for shelf in tuple(self.shelves.values()))

    def is_pinned(self, conversation: str) -> bool:
        """Whether a person pinned a conversation that has a state."""
        return any(conversation in kept.pinned_by for _, kept in self.all())

    def all(self) -> Iterator[tuple[Shelf, Kept]]:
        """Every state with its shelf."""
        for shelf in self.shelves.values():
            for kept in shelf.states.values():
                yield shelf, kept


def file_bytes(extent_bytes: int) -> int:
    """What the file of an extent takes."""
    return HEADER_BYTES + extent_bytes


def conversations_of(role: Role, conversation: str | None) -> set[str]:
    """To whom a state belongs at first: a shared beginning to nobody."""
    return set() if conversation is None or role is Role.SHARED else {conversation}
