"""Metadata values of a GGUF header: scalars at once, arrays as views decoded on use.

A vocabulary has 262,144 strings, so an array is walked once for its bounds and decoded when it is
asked for. Views read the mapped file and are valid until the checkpoint is closed; whoever needs
the elements longer makes a tuple of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from struct import Struct, unpack_from
from typing import overload

from engine.checkpoint.gguf.cursor import Cursor, decode_text
from engine.checkpoint.mapped import Buffer
from engine.checkpoint.source import MetadataValue

STRING_LIMIT = 16 << 20
"""Bytes of one string; the longest real ones are whole tokenizer files."""
NESTED_LIMIT = 65_536
"""Elements that arrays of arrays may have together; no real file has any."""
DEPTH_LIMIT = 4
_STRING = 8
_ARRAY = 9
_SCALARS = {
    kind: Struct("<" + code)
    for kind, code in {
        0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
    }.items()
}  # fmt: skip
_LENGTH = Struct("<Q")
_CHUNK = 4096


class NumberArray(Sequence[int | float | bool]):
    """An array of numbers or truth values inside the file."""

    __slots__ = ("_count", "_data", "_start", "_struct")

    def __init__(self, data: Buffer, start: int, count: int, element: Struct) -> None:
        self._data = data
        self._start = start
        self._count = count
        self._struct = element

    @property
    def element_code(self) -> str:
        """The struct code of an element, such as "i" or "f"."""
        return self._struct.format[-1]

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> int | float | bool: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[int | float | bool, ...]: ...
    def __getitem__(
        self, index: int | slice
    ) -> int | float | bool | tuple[int | float | bool, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(self._count)))
        place = self._start + range(self._count)[index] * self._struct.size
        value: int | float | bool = self._struct.unpack_from(self._data, place)[0]
        return value

    def __iter__(self) -> Iterator[int | float | bool]:
        for first in range(0, self._count, _CHUNK):
            count = min(_CHUNK, self._count - first)
            place = self._start + first * self._struct.size
            yield from unpack_from(f"<{count}{self.element_code}", self._data, place)


class StringArray(Sequence[str]):
    """An array of strings inside the file."""

    __slots__ = ("_count", "_data", "_offsets", "_start")

    def __init__(self, data: Buffer, start: int, count: int) -> None:
        self._data = data
        self._start = start
        self._count = count
        self._offsets: array[int] | None = None

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(self._count)))
        if self._offsets is None:
            self._offsets = array("I", self._places())
        place = self._offsets[range(self._count)[index]]
        (size,) = _LENGTH.unpack_from(self._data, place)
        return decode_text(self._data[place + 8 : place + 8 + size])

    def __iter__(self) -> Iterator[str]:
        data = self._data
        place = self._start
        length = _LENGTH.unpack_from
        for _ in range(self._count):
            (size,) = length(data, place)
            place += 8 + size
            raw = data[place - size : place]
            # Nearly every word is UTF-8, and a call a word would cost a third of the time.
            try:
                word = raw.decode()
            except UnicodeDecodeError:
                word = decode_text(raw)
            yield word

    def _places(self) -> Iterator[int]:
        place = self._start
        for _ in range(self._count):
            yield place
            (size,) = _LENGTH.unpack_from(self._data, place)
            place += 8 + size


class ValueReader:
    """Reads the values of one header and counts its nested elements."""

    __slots__ = ("_cursor", "_nested")

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._nested = 0

    def value(self, kind: int, what: str) -> MetadataValue:
        """Read a value of GGUF type ``kind``."""
        cursor = self._cursor
        scalar = _SCALARS.get(kind)
        if scalar is not None:
            place = cursor.take(scalar.size, what)
            value: int | float | bool = scalar.unpack_from(cursor.data, place)[0]
            return value
        if kind == _STRING:
            return decode_text(cursor.text(STRING_LIMIT, what))
        if kind == _ARRAY:
            return self._array(what, 1)
        raise cursor.refuse(f"{what} has the unknown value type {kind}", found=kind)

    def _array(self, what: str, depth: int) -> MetadataValue:
        cursor = self._cursor
        kind = cursor.u32(what)
        count = cursor.u64(what)
        scalar = _SCALARS.get(kind)
        if scalar is not None:
            cursor.fits(count, scalar.size, what)
            place = cursor.take(count * scalar.size, what)
            return NumberArray(cursor.data, place, count, scalar)
        if kind == _STRING:
            return self._strings(count, what)
        if kind == _ARRAY:
            return self._nest(count, what, depth)
        raise cursor.refuse(f"{what} is an array of the unknown value type {kind}", found=kind)

    def _nest(self, count: int, what: str, depth: int) -> tuple[MetadataValue, ...]:
        cursor = self._cursor
        cursor.fits(count, 12, what)
        self._nested += count
        if self._nested > NESTED_LIMIT or depth == DEPTH_LIMIT:
            raise cursor.refuse(
                f"{what} nests arrays too far: {self._nested} elements at depth {depth}, "
                f"at most {NESTED_LIMIT} at depth {DEPTH_LIMIT - 1} are allowed",
                found=self._nested,
                wanted=NESTED_LIMIT,
            )
        return tuple(self._array(what, depth + 1) for _ in range(count))

    def _strings(self, count: int, what: str) -> StringArray:
        """Walk over ``count`` strings; the loop is the reader's hottest, so it stays bare."""
        cursor = self._cursor
        cursor.fits(count, 8, what)
        data = cursor.data
        start = place = cursor.position
        last = cursor.end - 8
        length = _LENGTH.unpack_from
        for _ in range(count):
            if place > last:
                cursor.position = place
                raise cursor.cut(8, what)
            (size,) = length(data, place)
            place += 8 + size
        if place > cursor.end:
            raise cursor.cut(place - start, what)
        cursor.position = place
        cursor.steps += count
        return StringArray(data, start, count)
