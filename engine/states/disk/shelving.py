"""The folders of all identities: made, read, and their files deleted.

Everything here runs on the worker's thread; the catalogue's lock is held for looking and noting,
never over a file.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.states.border import ModelIdentity
from engine.states.disk.catalogue import Catalogue, Extent, Kept, Removed, Shelf, file_bytes
from engine.states.disk.stored.files import Files
from engine.states.disk.stored.folder import FOLDER_NAME, StateFolder
from engine.states.disk.stored.formats import IdentityFile, Manifest
from engine.states.records import ExtentName, StateRecord

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Strays:
    """What lay in a folder and is no state: files of no known kind, and states that are broken."""

    files: tuple[Path, ...]
    broken: Removed


class Shelving:
    """Puts into the catalogue what the folders hold, and takes from them what it let go."""

    def __init__(self, root: Path, catalogue: Catalogue, files: Files) -> None:
        self._root = root
        self._catalogue = catalogue
        self._files = files
        self._folders: dict[str, StateFolder] = {}
        self._all_loaded = False

    def folder(self, shelf: Shelf) -> StateFolder:
        """The files of a shelf."""
        return self._folders.setdefault(
            shelf.name, StateFolder(self._files, self._root / shelf.name)
        )

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
                    shelf.known = False
                folder.wipe()
                folder.write_identity(wanted)
            shelf.usable = True
        except OSError as error:
            # Nothing that lies there may be believed: it can be what another probe left.
            shelf.usable, shelf.known = False, True
            _LOG.info("states not kept on disk reason=%s", error.strerror)
        strays = self._load(shelf)
        shelf.adopted.set()
        self._sweep(shelf, strays)  # deleting can wait for the disk; who asks what is kept need not

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
            if shelf.known or shelf is self._catalogue.opened:
                continue
            found = self.folder(shelf).read_identity()
            if found is None:
                self.remove(shelf)
                continue
            shelf.model, shelf.can_cut = found.model, found.can_cut
            shelf.extent_bytes = found.extent_bytes
            self._sweep(shelf, self._load(shelf))
        self._all_loaded = True

    def delete(self, removed: Removed) -> None:
        """Delete files, but for those that are named again by now."""
        folder, shelf = self.folder(removed.shelf), removed.shelf
        with self._catalogue.lock:
            keys = tuple(key for key in removed.keys if key not in shelf.states)
            names = [name for name in removed.extents if name not in shelf.extents]
        folder.remove_manifests(keys)
        for name in names:
            folder.remove_extent(name)

    def remove(self, shelf: Shelf) -> None:
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

    def _load(self, shelf: Shelf) -> _Strays:
        """Read a shelf's manifests; returns what is no whole state, and is to be deleted."""
        nothing = _Strays((), Removed(shelf, (), ()))
        if shelf.known:
            return nothing
        folder, shelf.known = self.folder(shelf), True
        try:
            listing = folder.listing()
        except OSError as error:
            shelf.usable = False
            _LOG.info("states not read reason=%s", error.strerror)
            return nothing
        states = [(key, folder.read_manifest(key, shelf.extent_bytes)) for key in listing.keys]
        with self._catalogue.lock:
            broken = self._fill(shelf, listing.extents, states)
        return _Strays(tuple(listing.strays), broken)

    def _sweep(self, shelf: Shelf, strays: _Strays) -> None:
        self.folder(shelf).remove_strays(strays.files)
        self.delete(strays.broken)

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
