"""The file work of the disk tier: writing what came, deleting what goes, within the quota.

Owns the worker. Everything here runs on the worker's thread, but for ``delete``,
which queues itself there; the catalogue's lock is held for looking and noting, never over a file.

Order of durability: identity, extents, their folders, then the manifest and its folder; deleting
goes the other way. So a loss of power at any moment leaves states that are whole, and strays.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from engine.states.disk.catalogue import Catalogue, Kept, Removed, Shelf, file_bytes
from engine.states.disk.eviction import quota_bytes, surplus, victims
from engine.states.disk.host import HostMemory
from engine.states.disk.shelving import Shelving
from engine.states.disk.stored.files import Files
from engine.states.disk.stored.formats import (
    MAX_CONVERSATIONS,
    Manifest,
    pack_manifest,
)
from engine.states.disk.worker import Worker
from engine.states.records import ExtentName

LOOSE_S: Final = 60.0
"""How long extents without a state are spared: theirs may still be on its way."""
TOUCH_S: Final = 5.0

_LOG = logging.getLogger(__name__)


class Keeping:
    """Writes and deletes, on a thread of its own.

    Attributes:
        worker: that thread; shelving: the folders that it works on.
    """

    def __init__(
        self,
        root: Path,
        catalogue: Catalogue,
        files: Files,
        wished_bytes: int | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.worker = Worker(self.write_changed, TOUCH_S)
        self.shelving = Shelving(root, catalogue, files)
        self._root = root
        self._catalogue = catalogue
        self._files = files
        self._wished_bytes = wished_bytes
        self._clock = clock
        self._is_failing = False

    def quota(self) -> tuple[int, int]:
        """(quota, free bytes of the disk) as they are now; (0, 0) where the disk does not say."""
        try:
            free = self._files.free_bytes(self._root)
        except OSError:
            return 0, 0
        return quota_bytes(self._wished_bytes, free, self._catalogue.disk_bytes), free

    def fit(self) -> None:
        """Evict down to the quota, which may have shrunk."""
        self._make_room(0)

    def write_extent(self, shelf: Shelf, host: HostMemory, name: ExtentName) -> None:
        """Write what waits in host memory; what cannot be written is lost, with its states."""
        with self._catalogue.lock:
            extent, content = shelf.extents.get(name), host.peek(name)
            if extent is None or extent.written or content is None:
                return
        written = self._fits(file_bytes(len(content)))
        if written and name in shelf.extents:  # its own state may have had to make the room
            write = partial(self.shelving.folder(shelf).write_extent, name, content)
            written = self._written(write)
        with self._catalogue.lock:
            if written and name in shelf.extents:
                shelf.wrote(name)
                host.wrote(name)
                return
            removed = self._lose(shelf, name)
        self.shelving.delete(removed)

    def write_state(self, shelf: Shelf, key: bytes) -> None:
        """Write a state whose extents are all written, and let go of what it overtakes."""
        with self._catalogue.lock:
            kept = shelf.states.get(key)
            if kept is None or kept.doomed:
                return
            manifest = _manifest(kept, shelf)
            is_new, kept.changed = kept.manifest_bytes == 0, False
        content = pack_manifest(manifest)
        written = (not is_new or self._fits(len(content))) and self._written(
            partial(self.shelving.folder(shelf).write_manifest, key, content)
        )
        with self._catalogue.lock:
            if not written and is_new:
                removed = shelf.remove((key,))
                self._catalogue.dropped += len(removed.keys)
            elif not written:
                kept.changed, removed = True, Removed(shelf, (), ())
            elif shelf.states.get(key) is kept:
                shelf.wrote_manifest(kept, len(content))
                over = surplus(shelf, tuple(kept.conversations))
                removed = shelf.remove(each.key for each in over)
            else:
                removed = Removed(shelf, (), ())
        self.shelving.delete(removed)

    def write_changed(self) -> None:
        """Write states anew whose last use or conversations changed."""
        with self._catalogue.lock:
            changed = [
                (shelf, kept.key)
                for shelf, kept in self._catalogue.all()
                if kept.changed and kept.manifest_bytes
            ]
        for shelf, key in changed:
            self.write_state(shelf, key)

    def delete(self, removed: Removed) -> None:
        """Queue the deletion of files; from any thread."""
        if removed.keys or removed.extents:
            self.worker.add(partial(self.shelving.delete, removed))

    def delete_now(self, removed: Removed, being_read: tuple[bytes, ...] = ()) -> None:
        """Delete files, of states that are being read only what says that they are one."""
        self.shelving.delete(removed)
        self.shelving.folder(removed.shelf).remove_manifests(being_read)
        shelf = removed.shelf
        if not shelf.states:
            self.shelving.remove(shelf)

    def delete_loose(self, shelf: Shelf) -> None:
        """Delete extents that no state names."""
        with self._catalogue.lock:
            loose = shelf.forget_extents(shelf.loose(self._clock()))
        self.shelving.delete(Removed(shelf, (), loose))

    def _lose(self, shelf: Shelf, name: ExtentName) -> Removed:
        removed = shelf.lose(name)
        self._catalogue.dropped += len(removed.keys)
        return removed

    def _make_room(self, more_bytes: int) -> bool:
        """Evict until so much more may be written; False where that cannot be."""
        self.shelving.load_all()
        quota, _ = self.quota()
        over = self._catalogue.disk_bytes + more_bytes - quota
        if over <= 0:
            return True
        for shelf in tuple(self._catalogue.shelves.values()):
            with self._catalogue.lock:
                loose = shelf.forget_extents(shelf.loose(self._clock() - LOOSE_S))
            self.shelving.delete(Removed(shelf, (), loose))
        for removed in self._chosen(self._catalogue.disk_bytes + more_bytes - quota):
            self.shelving.delete(removed)
        return self._catalogue.disk_bytes + more_bytes <= self.quota()[0]

    def _chosen(self, over_bytes: int) -> list[Removed]:
        """Forget as many states as it takes to free so much; none where all are too few."""
        with self._catalogue.lock:
            before = self._catalogue.disk_bytes
            order = victims(self._catalogue)
            if over_bytes > _freed_by_all(order):
                return []
            chosen = []
            for shelf, kept in order:
                if before - self._catalogue.disk_bytes >= over_bytes:
                    break
                chosen.append(shelf.remove((kept.key,)))
            return chosen

    def _fits(self, more_bytes: int) -> bool:
        """Whether so much more may be written, if need be after others had to go."""
        return self._make_room(more_bytes) or self._failed("over the quota")

    def _written(self, write: Callable[[], None]) -> bool:
        try:
            write()
        except OSError as error:
            return self._failed(error.strerror)
        self._is_failing = False
        return True

    def _failed(self, reason: str | None) -> bool:
        """Say why states are not written, once until one is again; always False."""
        if not self._is_failing:
            _LOG.info("state not written reason=%r", reason)
        self._is_failing = True
        return False


def _manifest(kept: Kept, shelf: Shelf) -> Manifest:
    record = kept.record
    return Manifest(
        key=record.key,
        ids=record.ids.astype("<i4").tobytes(),
        role=record.role,
        extents=tuple((n.digest, n.part, shelf.extents[n].size_bytes) for n in record.extents),
        conversations=tuple(sorted(kept.conversations))[:MAX_CONVERSATIONS],
        pinned_by=tuple(sorted(kept.pinned_by))[:MAX_CONVERSATIONS],
        used_s=kept.used_s,
    )


def _freed_by_all(order: list[tuple[Shelf, Kept]]) -> int:
    """What deleting all of these would free."""
    return sum(
        shelf.freed_bytes(kept for each, kept in order if each is shelf)
        for shelf in {id(shelf): shelf for shelf, _ in order}.values()
    )
