"""One identity's folder on the disk: where its files lie, and how they are read and written.

    <name>/identity.state               model, facts, probe
    <name>/manifests/<key>.state        one state
    <name>/extents/<2 hex>/<digest>.<part>

Owns nothing but the names. Used from the worker's thread, ``open_extent`` from the readers' too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zlib import crc32

from engine.states.disk.stored.files import TEMPORARY_SUFFIX, Files, forget, read_exactly, write_new
from engine.states.disk.stored.formats import (
    BLOCK_BYTES,
    HEADER_BYTES,
    MAX_MANIFEST_BYTES,
    IdentityFile,
    Manifest,
    extent_header,
    extent_sums,
    pack_identity,
    unpack_identity,
    unpack_manifest,
)
from engine.states.records import ExtentName

FOLDER_NAME: Final = re.compile(r"[0-9a-f]{32}")
_MANIFEST: Final = re.compile(r"([0-9a-f]{32})\.state")
_EXTENT: Final = re.compile(r"([0-9a-f]{32})\.(-1|[0-9]{1,3})")


@dataclass(frozen=True, slots=True)
class Listing:
    """Files by what their names say: states, extents with their file's length, and neither."""

    keys: list[bytes]
    extents: dict[ExtentName, int]
    strays: list[Path]


class StateFolder:
    """The files of one identity."""

    def __init__(self, files: Files, path: Path) -> None:
        self._files = files
        self.path = path
        self._manifests = path / "manifests"
        self._extents = path / "extents"
        self._unsynced: set[Path] = set()
        self._made: set[Path] = set()
        self._number = 0

    def read_identity(self) -> IdentityFile | None:
        """What the folder says of itself; None where it says nothing that can be believed."""
        content = self._read(self._identity)
        return None if content is None else unpack_identity(content)

    def write_identity(self, identity: IdentityFile) -> None:
        """Make the folder one of that identity; raises OSError."""
        for folder in (self._manifests, self._extents):
            self._files.make_folder(folder)
        self._write(self._identity, memoryview(pack_identity(identity)))
        self._unsynced |= {self.path, self.path.parent, self.path.parent.parent}
        self.sync()

    def listing(self) -> Listing:
        """What lies in the folder; raises OSError."""
        found = Listing([], {}, [])
        for each in self._files.entries(self.path):
            if not each.is_folder and each.name != self._identity.name:
                found.strays.append(self.path / each.name)
        for each in self._files.entries(self._manifests):
            match = None if each.is_folder else _MANIFEST.fullmatch(each.name)
            if match:
                found.keys.append(bytes.fromhex(match[1]))
            elif not each.is_folder:
                found.strays.append(self._manifests / each.name)
        for shard in self._files.entries(self._extents):
            if shard.is_folder:
                self._list_shard(shard.name, found)
            else:
                found.strays.append(self._extents / shard.name)
        return found

    def read_manifest(
        self, key: bytes, extent_bytes: Mapping[int, int]
    ) -> tuple[Manifest, int] | None:
        """A state that can be believed and the bytes of its file, or None."""
        content = self._read(self.manifest(key))
        found = None if content is None else unpack_manifest(content, key, extent_bytes)
        return None if found is None or content is None else (found, len(content))

    def write_extent(self, name: ExtentName, content: memoryview) -> None:
        """Write an extent whole; raises OSError. It lasts once ``sync`` has returned."""
        header = memoryview(extent_header(name, content))
        self._write(self.extent(name), header, content)

    def write_manifest(self, key: bytes, content: bytes) -> None:
        """Write a state, whose extents are all there, so that it lasts; raises OSError."""
        self.sync()
        self._write(self.manifest(key), memoryview(content))
        self.sync()

    def sync(self) -> None:
        """Have the names last that were given since the last call; raises OSError."""
        for folder in sorted(self._unsynced):
            self._files.sync_folder(folder)
            self._unsynced.discard(folder)

    def remove_manifests(self, keys: tuple[bytes, ...]) -> None:
        """Delete states for good, as far as that can be done."""
        for key in keys:
            forget(self._files, self.manifest(key))
        if keys:
            try:
                self._files.sync_folder(self._manifests)
            except OSError:
                return

    def remove_extent(self, name: ExtentName) -> None:
        """Delete an extent, as far as that can be done."""
        forget(self._files, self.extent(name))

    def remove_strays(self, strays: Sequence[Path]) -> None:
        """Delete files that ``listing`` found, as far as that can be done."""
        for path in strays:
            forget(self._files, path)

    def wipe(self) -> None:
        """Delete every file: states, then extents, then what says whose they were; raises OSError.

        Files that cannot be deleted stay, but for states: then it raises OSError.
        """
        found = self.listing()
        for key in found.keys:
            self._files.remove(self.manifest(key))
        if found.keys:
            self._files.sync_folder(self._manifests)
        for name in found.extents:
            self.remove_extent(name)
        self.remove_strays((*found.strays, self._identity))

    def remove_folders(self) -> None:
        """Delete the folders of an identity that has no files any more; raises OSError."""
        self._made.clear()
        shards = [self._extents / each.name for each in self._files.entries(self._extents)]
        for folder in (*shards, self._extents, self._manifests, self.path):
            self._files.remove_folder(folder)

    def read_block(self, name: ExtentName, block: int, buffer: memoryview) -> bool:
        """Read one block of an extent into its place in ``buffer``, and check it."""
        header = bytearray(HEADER_BYTES)
        file = self._files.open(self.extent(name))
        try:
            if file.size_bytes != HEADER_BYTES + len(buffer):
                return False
            if not read_exactly(file, 0, memoryview(header)):
                return False
            sums = extent_sums(bytes(header), name, len(buffer))
            if sums is None:
                return False
            at = block * BLOCK_BYTES
            into = buffer[at : at + BLOCK_BYTES]
            return read_exactly(file, HEADER_BYTES + at, into) and crc32(into) == sums[block]
        finally:
            file.close()

    def manifest(self, key: bytes) -> Path:
        """Where a state's file is."""
        return self._manifests / f"{key.hex()}.state"

    def extent(self, name: ExtentName) -> Path:
        """Where an extent's file is."""
        digest = name.digest.hex()
        return self._extents / digest[:2] / f"{digest}.{name.part}"

    @property
    def _identity(self) -> Path:
        return self.path / "identity.state"

    def _write(self, path: Path, *parts: memoryview) -> None:
        folder = path.parent
        if folder not in self._made:
            self._files.make_folder(folder)
            self._made.add(folder)
            self._unsynced.add(folder.parent)
        self._number += 1
        temporary = folder / f"{self._number}{TEMPORARY_SUFFIX}"
        forget(self._files, temporary)
        write_new(self._files, path, temporary, parts)
        self._unsynced.add(folder)

    def _read(self, path: Path) -> bytes | None:
        """A small file whole; None where there is none or it cannot be read."""
        try:
            file = self._files.open(path)
            try:
                size = file.size_bytes
                if size > MAX_MANIFEST_BYTES:
                    return None
                content = bytearray(size)
                return bytes(content) if read_exactly(file, 0, memoryview(content)) else None
            finally:
                file.close()
        except OSError:
            return None

    def _list_shard(self, shard: str, found: Listing) -> None:
        for each in self._files.entries(self._extents / shard):
            match = _EXTENT.fullmatch(each.name)
            if match and not each.is_folder and each.name[:2] == shard:
                name = ExtentName(bytes.fromhex(match[1]), int(match[2]))
                found.extents[name] = each.size_bytes
            elif not each.is_folder:
                found.strays.append(self._extents / shard / each.name)
