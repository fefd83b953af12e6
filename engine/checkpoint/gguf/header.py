"""The header of one GGUF file: metadata and the tensor table as the file claims it.

Layout, little-endian, version 2 and 3:

    magic "GGUF" | version u32 | tensors u64 | keys u64
    a key:    name string | type u32 | value
    a tensor: name string | dimensions u32 | u64 each, fastest first | type u32 | offset u64
    zeros up to a multiple of ``general.alignment`` (32), then the tensors' bytes

A string is a u64 length and its bytes. ``table`` judges the tensor entries; here only their
encoding is read, so that the metadata of a file with a foreign tensor format can still be shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct

from engine.checkpoint.gguf.cursor import Cursor
from engine.checkpoint.gguf.values import ValueReader
from engine.checkpoint.labels import quoted
from engine.checkpoint.mapped import Buffer
from engine.checkpoint.source import MetadataValue
from engine.errors import CheckpointUnreadable

MAGIC = b"GGUF"
KEY_LIMIT = 65_535
NAME_LIMIT = 256
ENTRY_LIMIT = 65_536
"""Keys, and tensors, that one file may have."""
ALIGNMENT_LIMIT = 1 << 20
DEFAULT_ALIGNMENT = 32
DIMENSION_LIMIT = 4
_SMALLEST_KEY = 8 + 1 + 4 + 1
_SMALLEST_TENSOR = 8 + 1 + 4 + 4 + 8
_TENSOR_TAIL = tuple(Struct(f"<{dims}QIQ") for dims in range(DIMENSION_LIMIT + 1))
_ALIGNMENT_KEY = "general.alignment"


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """A line of the tensor table, not yet judged.

    Attributes:
        dims: fastest first, as stored.
        offset: of the first byte, from the header's ``data_start``.
    """

    name: str
    dims: tuple[int, ...]
    type_id: int
    offset: int


@dataclass(frozen=True, slots=True)
class Header:
    """What a GGUF file says of itself.

    Attributes:
        alignment: tensors start at multiples of it.
        end: first byte after the tensor table.
        data_start: ``end`` padded to the alignment; tensor offsets count from here.
        steps: values that the parse walked over; at most one a byte.
    """

    version: int
    metadata: Mapping[str, MetadataValue]
    entries: tuple[TensorEntry, ...]
    alignment: int
    end: int
    data_start: int
    steps: int


def parse_header(data: Buffer, label: str) -> Header:
    """Read a header; ``data`` is the whole file, ``label`` its name for sentences.

    Raises:
        CheckpointUnreadable: anything that is not a sound header, with names and numbers.
    """
    cursor = Cursor(data, label)
    start = cursor.take(4, "the magic number")
    if data[start : start + 4] != MAGIC:
        raise cursor.refuse("this is not a GGUF file")
    version = _version(cursor)
    tensor_count = cursor.u64("the tensor count")
    key_count = cursor.u64("the key count")
    _check_count(cursor, key_count, _SMALLEST_KEY, "the key table")
    _check_count(cursor, tensor_count, _SMALLEST_TENSOR, "the tensor table")
    metadata = _metadata(cursor, key_count)
    alignment = _alignment(cursor, metadata)
    entries = _entries(cursor, tensor_count)
    end = cursor.position
    data_start = -(-end // alignment) * alignment
    return Header(version, metadata, entries, alignment, end, data_start, cursor.steps)


def _version(cursor: Cursor) -> int:
    version = cursor.u32("the version")
    if version in (2, 3):
        return version
    if version and version & 0xFFFF == 0:
        raise cursor.refuse(
            "this GGUF file has the other byte order (big-endian); "
            "get the little-endian file of this model",
            found=version,
        )
    if version == 1:
        raise cursor.refuse(
            "this is GGUF version 1 of 2023, which is no longer read; get a newer file", found=1
        )
    raise cursor.refuse(f"GGUF version {version} is unknown, 2 and 3 are read", found=version)


def _check_count(cursor: Cursor, count: int, smallest: int, what: str) -> None:
    if count > ENTRY_LIMIT:
        raise cursor.refuse(
            f"{what} claims {count} entries, at most {ENTRY_LIMIT} are allowed",
            found=count,
            wanted=ENTRY_LIMIT,
        )
    cursor.fits(count, smallest, what)


def _metadata(cursor: Cursor, count: int) -> dict[str, MetadataValue]:
    reader = ValueReader(cursor)
    found: dict[str, MetadataValue] = {}
    for number in range(count):
        key = _name(cursor, KEY_LIMIT, f"key {number}")
        if key in found:
            raise cursor.refuse(f"the key {quoted(key)} stands in the file twice")
        kind = cursor.u32(f"key {number}")
        value = reader.value(kind, quoted(key))
        if key == _ALIGNMENT_KEY and kind != 4:
            raise cursor.refuse(f"{key} must be of type 4 (u32) but is of type {kind}", found=kind)
        found[key] = value
    return found


def _alignment(cursor: Cursor, metadata: Mapping[str, MetadataValue]) -> int:
    value = metadata.get(_ALIGNMENT_KEY, DEFAULT_ALIGNMENT)
    assert isinstance(value, int), "checked by its type number"
    if not 1 <= value <= ALIGNMENT_LIMIT or value & (value - 1):
        raise cursor.refuse(
            f"{_ALIGNMENT_KEY} is {value}, but it must be a power of two "
            f"from 1 to {ALIGNMENT_LIMIT}",
            found=value,
        )
    return value


def _entries(cursor: Cursor, count: int) -> tuple[TensorEntry, ...]:
    found: dict[str, TensorEntry] = {}
    for number in range(count):
        name = _name(cursor, NAME_LIMIT, f"tensor {number}")
        if name in found:
            raise cursor.refuse(f"the tensor {name!r} stands in the file twice", tensor=name)
        dims = cursor.u32(name)
        if dims > DIMENSION_LIMIT:
            raise cursor.refuse(
                f"tensor {name!r} has {dims} dimensions, at most {DIMENSION_LIMIT} are allowed",
                tensor=name,
                found=dims,
            )
        tail = _TENSOR_TAIL[dims]
        place = cursor.take(tail.size, name)
        *shape, kind, offset = tail.unpack_from(cursor.data, place)
        found[name] = TensorEntry(name, tuple(shape) or (1,), kind, offset)
    return tuple(found.values())


def _name(cursor: Cursor, limit: int, what: str) -> str:
    raw = cursor.text(limit, what)
    if not raw:
        raise cursor.refuse(f"{what} has an empty name")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise _bad_name(cursor, raw, what) from error


def _bad_name(cursor: Cursor, raw: bytes, what: str) -> CheckpointUnreadable:
    return cursor.refuse(f"{what} has a name that is not UTF-8: {raw[:64]!r}")
