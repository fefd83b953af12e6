"""What stands in the files of the disk tier: extents, manifests and the facts of an identity. Pure.

An extent file is a header of ``HEADER_BYTES`` and the extent's bytes, nothing after them:

    0     8s   "HEXTENT1"
    8     i32  part of the model
    12    u32  0
    16    16s  digest of the tokens up to its last row
    32    u32  bytes of a block that has a sum
    36    u32  blocks
    40    u32  CRC-32 of each block; zeros from the last one to 4080
    4080  u64  bytes of the extent
    4088  u32  0
    4092  u32  CRC-32 of everything before

A manifest or an identity is a magic of 8 bytes, the CRC-32 of the rest and msgpack. Everything that
was read is checked before it is believed: lengths, counts, names and sums. What fails is None, and
the file is deleted by whoever asked.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Annotated, Final, TypeVar
from zlib import crc32

import msgspec

from engine.states.records import DIGEST_BYTES, ExtentName, Role

HEADER_BYTES: Final = 4096
BLOCK_BYTES: Final = 8 * 1024 * 1024
MAX_BLOCKS: Final = 1000
MAX_MANIFEST_BYTES: Final = 64 * 1024 * 1024
MAX_EXTENTS: Final = 1 << 20
MAX_CONVERSATIONS: Final = 256
ID_BYTES: Final = 4

_EXTENT_MAGIC: Final = b"HEXTENT1"
_HEAD: Final = struct.Struct("<8siI16sII")
_TAIL: Final = struct.Struct("<QII")
_SUMS_AT: Final = _HEAD.size
_TAIL_AT: Final = HEADER_BYTES - _TAIL.size
_RECORD_HEAD: Final = struct.Struct("<8sI")
_MANIFEST_MAGIC: Final = b"HSTATE01"
_IDENTITY_MAGIC: Final = b"HMODEL01"

_Word = Annotated[str, msgspec.Meta(max_length=1024)]
_Digest = Annotated[bytes, msgspec.Meta(min_length=DIGEST_BYTES, max_length=DIGEST_BYTES)]
_Size = Annotated[int, msgspec.Meta(ge=1, le=MAX_BLOCKS * BLOCK_BYTES)]
_Words = Annotated[tuple[_Word, ...], msgspec.Meta(max_length=MAX_CONVERSATIONS)]


class Manifest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, array_like=True
):
    """One state as its file says: little-endian int32 ids, extents as (digest, part, bytes)."""

    key: _Digest
    ids: bytes
    role: Role
    extents: Annotated[
        tuple[tuple[_Digest, int, _Size], ...], msgspec.Meta(min_length=1, max_length=MAX_EXTENTS)
    ]
    conversations: _Words
    pinned_by: _Words
    used_s: float


class IdentityFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an identity's folder says of itself."""

    model: Annotated[str, msgspec.Meta(max_length=65536)]
    facts: Annotated[tuple[tuple[str, str], ...], msgspec.Meta(max_length=1024)]
    extent_bytes: Annotated[dict[int, _Size], msgspec.Meta(max_length=1024)]
    can_cut: bool
    probe: Annotated[bytes, msgspec.Meta(max_length=1024)]


def extent_header(name: ExtentName, content: memoryview) -> bytes:
    """The header of an extent, with the sum of every block."""
    sums = [crc32(content[at : at + BLOCK_BYTES]) for at in range(0, len(content), BLOCK_BYTES)]
    head = _HEAD.pack(_EXTENT_MAGIC, name.part, 0, name.digest, BLOCK_BYTES, len(sums))
    table = struct.pack(f"<{len(sums)}I", *sums).ljust(_TAIL_AT - _SUMS_AT, b"\0")
    start = head + table + _TAIL.pack(len(content), 0, 0)[:-4]
    return start + struct.pack("<I", crc32(start))


def extent_sums(header: bytes, name: ExtentName, size_bytes: int) -> tuple[int, ...] | None:
    """The sum of each block; None unless this is the header of that extent, of so many bytes."""
    if len(header) != HEADER_BYTES:
        return None
    (whole,) = struct.unpack_from("<I", header, HEADER_BYTES - 4)
    blocks = block_count(size_bytes)
    wanted = (_EXTENT_MAGIC, name.part, 0, name.digest, BLOCK_BYTES, blocks)
    size, zero, _ = _TAIL.unpack_from(header, _TAIL_AT)
    if _HEAD.unpack_from(header) != wanted or (size, zero) != (size_bytes, 0):
        return None
    if whole != crc32(memoryview(header)[:-4]):
        return None
    return struct.unpack_from(f"<{blocks}I", header, _SUMS_AT)


def block_count(size_bytes: int) -> int:
    """Blocks that are summed of an extent of so many bytes."""
    return -(-size_bytes // BLOCK_BYTES)


def pack_manifest(manifest: Manifest) -> bytes:
    """The bytes of a manifest's file."""
    return _pack(_MANIFEST_MAGIC, msgspec.msgpack.encode(manifest))


def unpack_manifest(content: bytes, key: bytes, extent_bytes: Mapping[int, int]) -> Manifest | None:
    """A manifest that can be believed, or None."""
    found = _unpack(_MANIFEST_MAGIC, content, Manifest)
    if found is None or found.key != key or not found.ids or len(found.ids) % ID_BYTES:
        return None
    fits = all(size == extent_bytes.get(part) for _, part, size in found.extents)
    return found if fits and 0.0 <= found.used_s < float("inf") else None


def pack_identity(identity: IdentityFile) -> bytes:
    """The bytes of an identity's file."""
    return _pack(_IDENTITY_MAGIC, msgspec.msgpack.encode(identity))


def unpack_identity(content: bytes) -> IdentityFile | None:
    """An identity that can be believed, or None."""
    return _unpack(_IDENTITY_MAGIC, content, IdentityFile)


_Kind = TypeVar("_Kind", Manifest, IdentityFile)


def _pack(magic: bytes, payload: bytes) -> bytes:
    return _RECORD_HEAD.pack(magic, crc32(payload)) + payload


def _unpack(magic: bytes, content: bytes, kind: type[_Kind]) -> _Kind | None:
    if len(content) < _RECORD_HEAD.size:
        return None
    payload = memoryview(content)[_RECORD_HEAD.size :]
    if _RECORD_HEAD.unpack_from(content) != (magic, crc32(payload)):
        return None
    try:
        return msgspec.msgpack.decode(payload, type=kind)
    except msgspec.MsgspecError:
        return None
