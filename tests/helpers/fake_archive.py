"""Lower tiers without files or threads: extents in a dictionary, given out as the test lets them.

``FakeArchive`` implements ``engine.states.border.StateArchive``. A buffer that is out, a fetch that
is open, an extent of no state: ``left_open`` tells of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.protocol import ChatTier, Tier
from engine.states.border import ArchiveCensus, Hit, Piece
from engine.states.records import SLOT, ExtentName, Role, StateRecord


class FakeFetch:
    """Gives ``archive.pace`` extents a call; damaged where one is not there.

    There is staging for one more than that, so it stands still where none is given back.
    """

    def __init__(self, archive: FakeArchive, names: Sequence[ExtentName]) -> None:
        self._archive = archive
        self._left = list(names)
        self.out: dict[ExtentName, int] = {}
        self.is_closed = False
        self.read_bytes = 0
        archive.fetches.append(self)

    @property
    def status(self) -> Literal["reading", "read", "damaged"]:
        if any(name not in self._archive.extents for name in self._left):
            return "damaged"
        return "reading" if self._left else "read"

    def ready(self) -> Sequence[Piece]:
        assert not self.is_closed
        pieces: list[Piece] = []
        pace = self._archive.pace
        while len(pieces) < pace and len(self.out) <= pace and self.status == "reading":
            name = self._left.pop(0)
            content = self._archive.extents[name]
            self.out[name] = len(content)
            self.read_bytes += len(content)
            pieces.append(Piece(name, memoryview(bytes(content)), self._archive.tier_of(name)))
        return pieces

    def done(self, name: ExtentName) -> None:
        del self.out[name]

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self.out.clear()
            self._archive.fetches.remove(self)


class FakeArchive:
    """Implements ``engine.states.border.StateArchive``.

    Attributes:
        extents, states: what is held, by name and by key.
        conversations: of each state, by key.
        on_disk: names that are not in host memory.
        pace: extents that a fetch gives at a time; 0 for a disk that stands still.
        buffer_limit: buffers that may be out or unwritten at one time; None for any number.
        waiting: extents that were put and not written, while ``writes`` is False.
        calls: how often each method was called.
    """

    def __init__(
        self, *, can_cut: bool = False, pace: int = 2, buffer_limit: int | None = None
    ) -> None:
        self.can_cut = can_cut
        self.pace = pace
        self.buffer_limit = buffer_limit
        self.extents: dict[ExtentName, bytearray] = {}
        self.states: dict[bytes, StateRecord] = {}
        self.conversations: dict[bytes, set[str]] = {}
        self.on_disk: set[ExtentName] = set()
        self.waiting: list[ExtentName] = []
        self.writes = True
        self.fetches: list[FakeFetch] = []
        self.calls: Counter[str] = Counter()
        self.dropped: list[bytes] = []
        self.revision = 0
        self._buffers: list[memoryview] = []

    def find(self, prefixes: Sequence[tuple[int, bytes]], ids: NDArray[np.int32]) -> Hit | None:
        best: Hit | None = None
        digests = dict(prefixes)
        for record in self.states.values():
            most = min(record.at, len(ids))
            unequal = record.ids[:most] != ids[:most]
            common = int(unequal.argmax()) if unequal.any() else most
            at = record.at if common == record.at else common // 256 * 256 * self.can_cut
            if at in digests and at > (0 if best is None else best.at):
                best = Hit(record, at)
        return best

    def tier(self, record: StateRecord) -> Tier:
        if record.key not in self.states:
            return "none"
        return "disk" if self.on_disk & set(record.extents) else "host"

    def chats(self) -> tuple[ChatTier, ...]:
        found: dict[str, ChatTier] = {}
        for key, record in self.states.items():
            for conversation in self.conversations[key]:
                before = found.get(conversation)
                if before is None or record.at > before.tokens:
                    found[conversation] = ChatTier(
                        conversation=conversation, tier=self.tier(record), tokens=record.at
                    )
        return tuple(found.values())

    def has(self, name: ExtentName) -> bool:
        return name in self.extents

    def buffer(self, size_bytes: int) -> memoryview | None:
        self.calls["buffer"] += 1
        taken = len(self._buffers) + len(self.waiting)
        if self.buffer_limit is not None and taken >= self.buffer_limit:
            return None
        buffer = memoryview(bytearray(size_bytes))
        self._buffers.append(buffer)
        return buffer

    def put(self, name: ExtentName, buffer: memoryview) -> None:
        self.calls["put"] += 1
        self._return(buffer)
        assert name not in self.extents, "an extent was written twice"
        self.extents[name] = bytearray(buffer)
        if not self.writes:
            self.waiting.append(name)

    def withdraw(self, buffer: memoryview) -> None:
        self.calls["withdraw"] += 1
        self._return(buffer)

    def commit(self, record: StateRecord) -> None:
        self.calls["commit"] += 1
        if not all(name in self.extents for name in record.extents):
            return
        self.states.setdefault(record.key, replace(record, conversation=None))
        whose = self.conversations.setdefault(record.key, set())
        if record.conversation is not None and record.role is not Role.SHARED:
            whose.add(record.conversation)
        self.revision += 1

    def fetch(self, record: StateRecord, names: Sequence[ExtentName]) -> FakeFetch:
        self.calls["fetch"] += 1
        assert all(name in record.extents for name in names)
        return FakeFetch(self, names)

    def drop(self, key: bytes) -> None:
        self.dropped.append(key)
        self.states.pop(key, None)
        self.conversations.pop(key, None)
        self.revision += 1

    def touch(self, record: StateRecord, conversation: str | None) -> None:
        self.calls["touch"] += 1
        if record.key in self.states and conversation is not None:
            self.conversations[record.key].add(conversation)
            self.revision += 1

    def census(self) -> ArchiveCensus:
        sizes = {name: len(content) for name, content in self.extents.items()}
        disk = sum(sizes[name] for name in self.on_disk if name in sizes)
        return ArchiveCensus(
            states=len(self.states),
            host_bytes=sum(sizes.values()) - disk,
            disk_bytes=disk,
            waiting_bytes=sum(sizes[name] for name in self.waiting),
            dropped=0,
            damaged=0,
        )

    def close(self) -> None:
        assert self.left_open() == []

    def tier_of(self, name: ExtentName) -> Tier:
        return "disk" if name in self.on_disk else "host"

    def write_out(self) -> None:
        """Write what waits."""
        self.waiting.clear()

    def to_disk(self) -> None:
        """Host memory forgets everything."""
        self.on_disk = set(self.extents)
        self.revision += 1

    def lose(self, choose: Callable[[ExtentName], bool]) -> None:
        """Extents are gone, though their states are not known to be."""
        for name in [name for name in self.extents if choose(name)]:
            del self.extents[name]

    def left_open(self) -> list[str]:
        """Buffers and fetches that nobody closed."""
        return [f"{len(self._buffers)} buffers"] * bool(self._buffers) + [
            f"a fetch with {len(fetch.out)} pieces out" for fetch in self.fetches
        ]

    def _return(self, buffer: memoryview) -> None:
        found = [one for one in self._buffers if one is buffer]
        assert found, "a buffer came back that was not out"
        self._buffers = [one for one in self._buffers if one is not buffer]


def is_slot(name: ExtentName) -> bool:
    """Whether an extent is a recurrent state."""
    return name.part == SLOT
