"""The header of one safetensors file, every field checked against the file's size.

8 bytes   length N of the header, little-endian
N bytes   JSON: {"name": {"dtype", "shape", "data_offsets": [begin, end]}, "__metadata__": {}}
the rest  the tensors' bytes; offsets count from here, and every byte belongs to one tensor
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import NamedTuple

from engine.checkpoint.labels import quoted
from engine.checkpoint.mapped import Buffer
from engine.checkpoint.published.json_text import (
    Json,
    JsonLimits,
    is_unicode,
    kind_of,
    parse_object,
)
from engine.errors import CheckpointUnreadable, UnsupportedFormat

LENGTH_BYTES = 8
LIMITS = JsonLimits(size_bytes=100_000_000, values=4_000_000)
NAME_LIMIT = 1024
DIMENSION_LIMIT = 8
_METADATA = "__metadata__"
_FIELDS = {"dtype", "shape", "data_offsets"}
DTYPE_BITS: Mapping[str, int] = {
    "BOOL": 8,
    "U8": 8,
    "I8": 8,
    "U16": 16,
    "I16": 16,
    "U32": 32,
    "I32": 32,
    "U64": 64,
    "I64": 64,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "F8_E4M3": 8,
    "F8_E5M2": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "F16": 16,
    "BF16": 16,
    "F32": 32,
    "F64": 64,
    "C64": 64,
}
"""Bits of one element of every kind that the format knows."""


class Entry(NamedTuple):
    """One tensor as the header tells it; a tuple, as some checkpoints have a hundred thousand.

    Attributes:
        offset: of the first byte, from the start of the file.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Header:
    """What is known of a file before a tensor is touched.

    Attributes:
        entries: in the order of their bytes, which they cover without a gap.
        metadata: the writer's own words, such as {"format": "mlx"}.
        data_start: offset of the first tensor's bytes.
    """

    entries: tuple[Entry, ...]
    metadata: Mapping[str, str]
    data_start: int


def parse_header(data: Buffer, label: str) -> Header:
    """Read the header of a whole file.

    Args:
        label: the file's name, for sentences.

    Raises:
        CheckpointUnreadable: the file is cut short, or a field makes no sense.
        UnsupportedFormat: a tensor has a kind of element that is not known.
    """
    text = _text(data, label)
    parsed = parse_object(text, f"{label}: the header", LIMITS)
    metadata = _metadata(parsed.pop(_METADATA, {}), label)
    start = LENGTH_BYTES + len(text)
    entries = [_entry(name, value, start, label) for name, value in parsed.items()]
    entries.sort(key=lambda entry: (entry.offset, entry.size_bytes))
    _check_places(entries, start, len(data), label)
    return Header(tuple(entries), metadata, start)


def _text(data: Buffer, label: str) -> bytes:
    if len(data) < LENGTH_BYTES:
        raise _refuse(label, f"the file has {len(data)} bytes, too few for a header")
    length = int.from_bytes(data[:LENGTH_BYTES], "little")
    if length > LIMITS.size_bytes:
        raise _refuse(
            label,
            f"the header says that it has {length} bytes; at most {LIMITS.size_bytes} are read",
        )
    if LENGTH_BYTES + length > len(data):
        raise _refuse(
            label,
            f"the header ends at byte {LENGTH_BYTES + length}, but the file has {len(data)} "
            "bytes; it was not downloaded whole or is damaged",
        )
    text = bytes(data[LENGTH_BYTES : LENGTH_BYTES + length])
    if not text.startswith(b"{"):
        raise _refuse(label, f"the header begins with {text[:8]!r}, not with an object")
    return text


def _metadata(value: Json, label: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise _refuse(label, f"{_METADATA} is {kind_of(value)}, not an object")
    words = {key: word for key, word in value.items() if isinstance(word, str)}
    if len(words) != len(value):
        raise _refuse(label, f"{_METADATA} holds something that is no text")
    return words


def _entry(name: str, value: Json, start: int, label: str) -> Entry:
    if not 0 < len(name) <= NAME_LIMIT or not is_unicode(name):
        raise _refuse(label, f"a tensor is called {quoted(name)}, which is no name", name)
    if not isinstance(value, dict) or value.keys() != _FIELDS:
        fields = ", ".join(sorted(_FIELDS))
        raise misfit(label, name, f"is {kind_of(value)}; wanted an object of {fields}")
    dtype = value["dtype"]
    if not isinstance(dtype, str):
        raise misfit(label, name, f"has {kind_of(dtype)} as dtype")
    shape = _numbers(value["shape"])
    if shape is None or len(shape) > DIMENSION_LIMIT or min(shape, default=1) < 1:
        raise misfit(
            label,
            name,
            f"has the shape {_shown(value['shape'])}; wanted at most {DIMENSION_LIMIT} whole "
            "numbers of 1 or more",
        )
    offsets = _numbers(value["data_offsets"])
    if offsets is None or len(offsets) != 2 or not 0 <= offsets[0] <= offsets[1]:
        raise misfit(
            label,
            name,
            f"has the offsets {_shown(value['data_offsets'])}; wanted two whole numbers, the "
            "second not below the first",
        )
    size = _size_bytes(name, dtype, shape, label)
    if offsets[1] - offsets[0] != size:
        raise misfit(
            label,
            name,
            f"has {offsets[1] - offsets[0]} bytes, but {dtype} {list(shape)} takes {size}",
        )
    return Entry(name, dtype, shape, start + offsets[0], size)


def _size_bytes(name: str, dtype: str, shape: tuple[int, ...], label: str) -> int:
    bits = DTYPE_BITS.get(dtype)
    if bits is None:
        raise UnsupportedFormat(
            f"{label}: tensor {quoted(name)} is stored as {quoted(dtype)}, which is no kind of "
            "element that Hearth knows",
            file=label,
            tensor=name,
            format=dtype,
        )
    return -(-prod(shape) * bits // 8)


def _check_places(entries: list[Entry], start: int, file_bytes: int, label: str) -> None:
    """Every byte behind the header belongs to exactly one tensor."""
    for entry in entries:
        end = entry.offset + entry.size_bytes
        if end > file_bytes:
            raise misfit(
                label,
                entry.name,
                f"ends at byte {end}, but the file has {file_bytes} bytes; it was not downloaded "
                "whole or is damaged",
            )
    if entries and entries[0].offset != start:
        first = entries[0]
        raise _hole(label, start, first.offset, first.name)
    for before, after in pairwise(entries):
        end = before.offset + before.size_bytes
        if after.offset < end:
            raise misfit(
                label,
                after.name,
                f"starts at byte {after.offset}, inside {quoted(before.name)}, which ends at byte "
                f"{end}",
            )
        if after.offset > end:
            raise _hole(label, end, after.offset, after.name)
    end = entries[-1].offset + entries[-1].size_bytes if entries else start
    if end != file_bytes:
        raise _refuse(label, f"the file has {file_bytes} bytes, but its tensors end at byte {end}")


def _numbers(value: Json) -> tuple[int, ...] | None:
    """An array of whole numbers, None for anything else."""
    if not isinstance(value, list):
        return None
    whole = tuple([each for each in value if type(each) is int])
    return whole if len(whole) == len(value) else None


def _shown(value: Json) -> str:
    if isinstance(value, list) and all(isinstance(each, int | float) for each in value):
        return str(value[: DIMENSION_LIMIT + 1])
    return kind_of(value)


def _hole(label: str, start: int, end: int, name: str) -> CheckpointUnreadable:
    return misfit(
        label, name, f"starts at byte {end}, but the bytes from {start} on belong to no tensor"
    )


def misfit(label: str, name: str, sentence: str) -> CheckpointUnreadable:
    """A typed error about one tensor of a file."""
    return _refuse(label, f"tensor {quoted(name)} {sentence}", name)


def _refuse(label: str, sentence: str, tensor: str | None = None) -> CheckpointUnreadable:
    error = CheckpointUnreadable(f"{label}: {sentence}", file=label)
    if tensor is not None:
        error.numbers["tensor"] = tensor
    return error
