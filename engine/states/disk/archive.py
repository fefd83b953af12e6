"""The archive of the loaded model's states: host memory before the disk.

Owns the buffers, the readers' threads and the fetches; the library's worker writes. Used from the
engine's thread. Until the folder's manifests are read, which takes milliseconds, the first call
waits; where that takes too long the archive is as if empty.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.errors import InvariantBroken
from engine.owner import Owner
from engine.protocol import ChatTier, Tier
from engine.states.border import ArchiveCensus, Hit, ModelIdentity
from engine.states.disk.catalogue import Catalogue, Extent, Kept, Shelf, conversations_of
from engine.states.disk.facts import chat_tiers
from engine.states.disk.host import STAGED_EXTENTS, HostMemory
from engine.states.disk.keeping import Keeping
from engine.states.disk.reading import Readers, Sources, StateFetch
from engine.states.records import ExtentName, StateRecord

READY_S: Final = 5.0
FLUSH_S: Final = 10.0

_LOG = logging.getLogger(__name__)


def least_host_bytes(identity: ModelIdentity) -> int:
    """Host memory with which an archive can read ahead and write at once."""
    return 2 * STAGED_EXTENTS * max(identity.extent_bytes.values())


class DiskArchive(Owner):
    """Implements ``engine.states.border.StateArchive``."""

    def __init__(
        self,
        shelf: Shelf,
        catalogue: Catalogue,
        keeping: Keeping,
        host: HostMemory,
        *,
        clock: Callable[[], float] = time.time,
        flush_s: float = FLUSH_S,
    ) -> None:
        self._shelf = shelf
        self._catalogue = catalogue
        self._keeping = keeping
        self._host = host
        self._clock = clock
        self._flush_s = flush_s
        self._readers = Readers()
        self._fetches: dict[StateFetch, Kept | None] = {}
        self._closed = False

    def find(self, prefixes: Sequence[tuple[int, bytes]], ids: NDArray[np.int32]) -> Hit | None:
        """See the border."""
        if not self._ready():
            return None
        with self._catalogue.lock:
            return self._shelf.find(prefixes, ids)

    def tier(self, record: StateRecord) -> Tier:
        """See the border."""
        self._ready()
        with self._catalogue.lock:
            kept = self._shelf.states.get(record.key)
            if kept is None or kept.doomed:
                return "none"
            return "host" if all(n in self._host for n in record.extents) else "disk"

    def has(self, name: ExtentName) -> bool:
        """See the border."""
        if not self._ready():
            return False
        with self._catalogue.lock:
            return name in self._shelf.extents

    def buffer(self, size_bytes: int) -> memoryview | None:
        """See the border."""
        if not self._ready() or not self._shelf.usable:
            return None
        with self._catalogue.lock:
            return self._host.take(size_bytes)

    def put(self, name: ExtentName, buffer: memoryview) -> None:
        """See the border."""
        if len(buffer) != self._shelf.extent_bytes.get(name.part):
            raise InvariantBroken(f"Part {name.part} of a state is never {len(buffer)} bytes.")
        with self._catalogue.lock:
            if name in self._shelf.extents:
                self._host.give_back(buffer)
                return
            self._host.keep(name, buffer)
            self._shelf.extents[name] = Extent(len(buffer), written=False, came_s=self._clock())
        write = partial(self._keeping.write_extent, self._shelf, self._host, name)
        self._keeping.worker.add(write)

    def withdraw(self, buffer: memoryview) -> None:
        """See the border."""
        with self._catalogue.lock:
            self._host.give_back(buffer)

    def commit(self, record: StateRecord) -> None:
        """See the border; one of which an extent is lost meanwhile is counted as dropped."""
        self._ready()
        with self._catalogue.lock:
            there = self._shelf.states.get(record.key)
            if there is not None and not there.doomed:
                self.touch(record, record.conversation)
                return
            if there is not None:
                # Deleted while it is being read, and now kept again: its file is gone already.
                there.doomed = False
                self.touch(record, record.conversation)
            elif not all(name in self._shelf.extents for name in record.extents):
                self._catalogue.dropped += 1
                return
            else:
                conversations = conversations_of(record.role, record.conversation)
                pinned = {each for each in conversations if self._catalogue.is_pinned(each)}
                self._shelf.add(Kept(record, conversations, pinned, self._clock()))
        write = partial(self._keeping.write_state, self._shelf, record.key)
        self._keeping.worker.add(write)

    def fetch(self, record: StateRecord, names: Sequence[ExtentName]) -> StateFetch:
        """See the border."""
        self._ready()
        with self._catalogue.lock:
            kept = self._shelf.states.get(record.key)
            extents = self._shelf.extents
            sizes = [(n, extents[n].size_bytes if n in extents else 0) for n in names]
            if kept is not None:
                kept.readers += 1
        sources = Sources(
            catalogue=self._catalogue,
            host=self._host,
            folder=self._keeping.shelving.folder(self._shelf),
            readers=self._readers,
            lost=self._lost,
            closed=self._fetch_closed,
        )
        fetch = StateFetch(sources, sizes)
        self._fetches[fetch] = kept
        return fetch

    def drop(self, key: bytes) -> None:
        """See the border."""
        self._ready()
        with self._catalogue.lock:
            removed = self._shelf.remove((key,))
        self._keeping.delete(removed)

    def touch(self, record: StateRecord, conversation: str | None) -> None:
        """See the border."""
        self._ready()
        with self._catalogue.lock:
            kept = self._shelf.states.get(record.key)
            if kept is None:
                return
            kept.used_s = max(self._clock(), kept.used_s)
            kept.conversations |= conversations_of(kept.record.role, conversation)
            if conversation is not None and self._catalogue.is_pinned(conversation):
                kept.pinned_by |= kept.conversations & {conversation}
            self._shelf.change(kept)

    @property
    def revision(self) -> int:
        """See the border."""
        return self._shelf.revision + self._host.evicted

    def chats(self) -> tuple[ChatTier, ...]:
        """See the border."""
        if not self._ready():
            return ()
        with self._catalogue.lock:
            return chat_tiers(self._shelf, self._host)

    def census(self) -> ArchiveCensus:
        """See the border."""
        with self._catalogue.lock:
            return ArchiveCensus(
                states=len(self._shelf.states),
                host_bytes=self._host.held_bytes,
                disk_bytes=self._shelf.disk_bytes,
                waiting_bytes=self._host.waiting_bytes + self._shelf.waiting_bytes,
                dropped=self._catalogue.dropped,
                damaged=self._catalogue.damaged,
            )

    def close(self) -> None:
        """See the border."""
        if self._closed:
            return
        self._closed = True
        for fetch in tuple(self._fetches):
            fetch.close()
        self._readers.close()
        worker = self._keeping.worker
        worker.add(self._keeping.write_changed)
        worker.add(partial(self._keeping.delete_loose, self._shelf))
        if not worker.flush(self._flush_s):
            _LOG.info("states not all written waiting_bytes=%d", self._host.waiting_bytes)
        with self._catalogue.lock:
            lost = self._shelf.lose_unwritten()
            self._catalogue.dropped += len(lost.keys)
            self._shelf.forgotten = self._catalogue.opened = None
            self._host.clear()
        self._keeping.delete(lost)

    def _ready(self) -> bool:
        """Wait until it is known what is kept; whether it is."""
        return not self._closed and self._shelf.adopted.wait(READY_S)

    def _lost(self, name: ExtentName) -> None:
        """On a reader's thread: an extent cannot be had, and so none of the states that need it."""
        with self._catalogue.lock:
            self._catalogue.damaged += 1
            removed = self._shelf.lose(name)
        self._keeping.delete(removed)

    def _fetch_closed(self, fetch: StateFetch) -> None:
        kept = self._fetches.pop(fetch)
        if kept is None:
            return
        with self._catalogue.lock:
            kept.readers -= 1
            gone = kept.doomed and not kept.readers and self._shelf.states.get(kept.key) is kept
            removed = self._shelf.remove((kept.key,) if gone else ())
        self._keeping.delete(removed)
