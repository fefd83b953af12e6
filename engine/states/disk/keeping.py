"""The file work of the disk tier: loading what is there, writing what came, deleting what goes.

Owns the folders of all identities. Everything here runs on the worker's thread, but for ``delete``,
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

import numpy as np

from engine.states.border import ModelIdentity
from engine.states.disk.catalogue import Catalogue, Extent, Kept, Removed, Shelf, file_bytes
from engine.states.disk.eviction import quota_bytes, surplus, victims
from engine.states.disk.files import Files
from engine.states.disk.folder import FOLDER_NAME, StateFolder
from engine.states.disk.formats import MAX_CONVERSATIONS, IdentityFile, Manifest, pack_manifest
from engine.states.disk.host import HostMemory
from engine.states.disk.worker import Worker
from engine.states.records import ExtentName, StateRecord

LOOSE_S: Final = 60.0
"""How long extents without a state are spared: theirs may still be on its way."""
TOUCH_S: Final = 5.0

_LOG = logging.getLogger(__name__)


class Keeping:
    """Files of all identities, and the thread that works on them."""

    def __init__(
        self,
        root: Path,
        catalogue: Catalogue,
        files: Files,
        wished_bytes: int | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.worker = Worker(self.write_changed, TOUCH_S)
        self._root = root
        self._catalogue = catalogue
        self._files = files
        self._wished_bytes = wished_bytes
        self._clock = clock
        self._folders: dict[str, StateFolder] = {}
        self._all_loaded = False
        self._told_full = False

    def folder(self, shelf: Shelf) -> StateFolder:
        """The files of a shelf."""
        return self._folders.setdefault(
            shelf.name, StateFolder(self._files, self._root / shelf.name)
        )

    def quota(self) -> tuple[int, int]:
        """(quota, free bytes of the disk) as they are now; (0, 0) where the disk does not say."""
        try:
            free = self._files.free_bytes(self._root)
        except OSError:
            return 0, 0
        return quota_bytes(self._wished_bytes, free, self._catalogue.disk_bytes), free

    def adopt(self, shelf: Shelf, identity: ModelIdentity, probe: bytes) -> None:
        """Make a shelf that of an identity: what was kept under another probe is deleted."""
        wanted = IdentityFile(
            model=identity.model,
            facts=identity.facts,
            extent_bytes=dict(identity.extent_bytes),
            can_cut=identity.can_cut,
            probe=probe,
        )
        folder = self.folder(shelf)
        try:
            if folder.read_identity() != wanted:
                with self._catalogue.lock:
                    shelf.remove(tuple(shelf.states))
                    shelf.forget_extents(tuple(shelf.extents))
                    shelf.loaded.clear()
                folder.wipe()
                folder.write_identity(wanted)
            shelf.usable = True
        except OSError as error:
            # Nothing that lies there may be believed: it can be what another probe left.
            shelf.usable = False
            shelf.loaded.set()
            _LOG.info("states not kept on disk reason=%s", error.strerror)
            return
        self._load(shelf)
        self.worker.add(self.fit)

    def load_all(self) -> None:
        """Learn what every identity keeps; what belongs to none is deleted."""
        if self._all_loaded:
            return
        try:
            names = [e.name for e in self._files.entries(self._root) if e.is_folder]
        except OSError:
            return
        for name in filter(FOLDER_NAME.fullmatch, names):
            with self._catalogue.lock:
                shelf = self._catalogue.shelves.setdefault(name, Shelf(name))
            if shelf.loaded.is_set():
                continue
            found = self.folder(shelf).read_identity()
            if found is None:
                self._remove_folder(shelf)
                continue
            shelf.model, shelf.can_cut = found.model, found.can_cut
            shelf.extent_bytes = found.extent_bytes
            self._load(shelf)
        self._all_loaded = True

    def fit(self) -> None:
        """Evict down to the quota, which may have shrunk."""
        self._make_room(0)

    def write_extent(self, shelf: Shelf, host: HostMemory, name: ExtentName) -> None:
        """Write what waits in host memory; what cannot be written is lost, with its states."""
        with self._catalogue.lock:
            extent, content = shelf.extents.get(name), host.peek(name)
            if extent is None or extent.written or content is None:
                return
        written = self._make_room(file_bytes(len(content))) and self._written(
            partial(self.folder(shelf).write_extent, name, content)
        )
        with self._catalogue.lock:
            if written and name in shelf.extents:
                shelf.wrote(name)
                host.wrote(name)
                return
            removed = self._lose(shelf, name)
        self._delete(removed)

    def write_state(self, shelf: Shelf, key: bytes) -> None:
        """Write a state whose extents are all written, and let go of what it overtakes."""
        with self._catalogue.lock:
            kept = shelf.states.get(key)
            if kept is None or kept.doomed:
                return
            manifest = _manifest(kept, shelf)
            is_new, kept.changed = kept.manifest_bytes == 0, False
        content = pack_manifest(manifest)
        written = (not is_new or self._make_room(len(content))) and self._written(
            partial(self.folder(shelf).write_manifest, key, content)
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
        self._delete(removed)

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
            self.worker.add(partial(self._delete, removed))

    def delete_now(self, removed: Removed, being_read: tuple[bytes, ...] = ()) -> None:
        """Delete files, of states that are being read only what says that they are one."""
        self._delete(removed)
        self.folder(removed.shelf).remove_manifests(being_read)
        shelf = removed.shelf
        if not shelf.states:
            self._remove_folder(shelf)

    def delete_loose(self, shelf: Shelf) -> None:
        """Delete extents that no state names."""
        with self._catalogue.lock:
            loose = shelf.forget_extents(shelf.loose(self._clock()))
        self._delete(Removed(shelf, (), loose))

    def _lose(self, shelf: Shelf, name: ExtentName) -> Removed:
        removed = shelf.lose(name)
        self._catalogue.dropped += len(removed.keys)
        return removed

    def _load(self, shelf: Shelf) -> None:
        """Read a shelf's manifests; what is no whole state is deleted."""
        folder, strays = self.folder(shelf), None
        if not shelf.loaded.is_set():
            try:
                listing = folder.listing()
                states = [
                    (key, folder.read_manifest(key, shelf.extent_bytes)) for key in listing.keys
                ]
                with self._catalogue.lock:
                    strays = self._fill(shelf, listing.extents, states)
                folder.remove_strays(listing.strays)
            except OSError as error:
                shelf.usable = False
                _LOG.info("states not read reason=%s", error.strerror)
        shelf.loaded.set()
        if strays is not None:
            self._delete(strays)

    def _fill(
        self,
        shelf: Shelf,
        files: dict[ExtentName, int],
        states: list[tuple[bytes, tuple[Manifest, int] | None]],
    ) -> Removed:
        """Note every whole state; returns the files that belong to none."""
        bad = []
        for key, found in states:
            kept = None if found is None else _kept(*found)
            if found is None or kept is None or not _whole(found[0], files):
                bad.append(key)
                continue
            for digest, part, size in found[0].extents:
                name = ExtentName(digest, part)
                if name not in shelf.extents:
                    shelf.extents[name] = Extent(size, written=False, came_s=kept.used_s)
                    shelf.wrote(name)
            shelf.add(kept)
        strays = tuple(name for name in files if name not in shelf.extents)
        return Removed(shelf, tuple(bad), strays)

    def _make_room(self, more_bytes: int) -> bool:
        """Evict until so much more may be written; False where that cannot be."""
        self.load_all()
        quota, _ = self.quota()
        over = self._catalogue.disk_bytes + more_bytes - quota
        if over <= 0:
            return True
        for shelf in tuple(self._catalogue.shelves.values()):
            with self._catalogue.lock:
                loose = shelf.forget_extents(shelf.loose(self._clock() - LOOSE_S))
            self._delete(Removed(shelf, (), loose))
        for removed in self._chosen(self._catalogue.disk_bytes + more_bytes - quota):
            self._delete(removed)
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

    def _delete(self, removed: Removed) -> None:
        """Delete files, but for those that are named again by now."""
        folder, shelf = self.folder(removed.shelf), removed.shelf
        with self._catalogue.lock:
            keys = tuple(key for key in removed.keys if key not in shelf.states)
            names = [name for name in removed.extents if name not in shelf.extents]
        folder.remove_manifests(keys)
        for name in names:
            folder.remove_extent(name)

    def _written(self, write: Callable[[], None]) -> bool:
        try:
            write()
        except OSError as error:
            if not self._told_full:
                _LOG.info("state not written reason=%s", error.strerror)
            self._told_full = True
            return False
        self._told_full = False
        return True

    def _remove_folder(self, shelf: Shelf) -> None:
        """Delete an identity's folder with everything of ours in it, unless it is open."""
        with self._catalogue.lock:
            if self._catalogue.opened is shelf:
                return
            self._catalogue.shelves.pop(shelf.name, None)
        try:
            self.folder(shelf).wipe()
            self.folder(shelf).remove_folders()
        except OSError:
            return


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


def _kept(manifest: Manifest, size_bytes: int) -> Kept:
    ids = np.frombuffer(manifest.ids, "<i4").astype(np.int32, copy=False)
    names = tuple(ExtentName(digest, part) for digest, part, _ in manifest.extents)
    first = manifest.conversations[0] if manifest.conversations else None
    return Kept(
        record=StateRecord(ids, manifest.key, names, manifest.role, first),
        conversations=set(manifest.conversations),
        pinned_by=set(manifest.pinned_by),
        used_s=manifest.used_s,
        manifest_bytes=size_bytes,
    )


def _whole(manifest: Manifest, files: dict[ExtentName, int]) -> bool:
    return all(
        files.get(ExtentName(digest, part)) == file_bytes(size)
        for digest, part, size in manifest.extents
    )


def _freed_by_all(order: list[tuple[Shelf, Kept]]) -> int:
    """What deleting all of these would free."""
    return sum(
        shelf.freed_bytes(kept for each, kept in order if each is shelf)
        for shelf in {id(shelf): shelf for shelf, _ in order}.values()
    )
