"""Copies of GGUF files with one change, legal or not.

``read_image`` takes a sound file apart (the ``gguf`` package's reader needs ten seconds for a real
vocabulary, so it walks by itself; a test holds that the copy without a change has the same bytes).
``Image.to_bytes`` writes every field, so that a test can also say what no writer would. Values are
encoded by the small functions below: ``u32(7)``, ``string("x")``, ``array(BOOL, [])``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from struct import calcsize, pack, unpack_from

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
_CODES = {
    U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q",
    I64: "q", F64: "d",
}  # fmt: skip
Item = int | float | bool | str | bytes


@dataclass(frozen=True, slots=True)
class Line:
    """A tensor: its entry and its bytes.

    Attributes:
        dims: fastest first.
        offset: as written in the entry; None puts the tensor behind the one before it.
    """

    name: bytes
    dims: tuple[int, ...]
    type_id: int
    data: bytes
    offset: int | None = None


@dataclass(slots=True)
class Image:
    """A GGUF file in pieces; keys and values are raw, a value with its type number in front."""

    keys: list[tuple[bytes, bytes]] = field(default_factory=list)
    tensors: list[Line] = field(default_factory=list)
    alignment: int = 32
    version: int = 3
    key_count: int | None = None
    tensor_count: int | None = None

    def set(self, key: str, value: bytes) -> None:
        """Give ``key`` a new value in its place, or put it last."""
        raw = key.encode()
        if raw in dict(self.keys):
            self.keys = [(k, value if k == raw else v) for k, v in self.keys]
        else:
            self.keys.append((raw, value))

    def remove(self, key: str) -> None:
        """Take ``key`` out; it must be there."""
        assert key.encode() in dict(self.keys), key
        self.keys = [(k, v) for k, v in self.keys if k != key.encode()]

    def change(self, name: str, **changes: object) -> None:
        """Change fields of one tensor's line; it must be there."""
        raw = name.encode()
        assert raw in [line.name for line in self.tensors], name
        self.tensors = [
            replace(line, **changes) if line.name == raw else line  # type: ignore[arg-type]
            for line in self.tensors
        ]

    def to_bytes(self) -> bytes:
        """The whole file."""
        tensors = len(self.tensors) if self.tensor_count is None else self.tensor_count
        keys = len(self.keys) if self.key_count is None else self.key_count
        out = [b"GGUF", pack("<IQQ", self.version, tensors, keys)]
        out += [pack("<Q", len(key)) + key + value for key, value in self.keys]
        data: list[bytes] = []
        place = 0
        for line in self.tensors:
            offset = place if line.offset is None else line.offset
            out.append(
                pack("<Q", len(line.name))
                + line.name
                + pack(f"<I{len(line.dims)}QIQ", len(line.dims), *line.dims, line.type_id, offset)
            )
            data.append(_padded(line.data, self.alignment))
            place += len(data[-1])
        return _padded(b"".join(out), self.alignment) + b"".join(data)

    def write(self, path: Path) -> Path:
        """Write the whole file and return its path."""
        path.write_bytes(self.to_bytes())
        return path


def read_image(path: Path) -> Image:
    """Take a sound little-endian file apart."""
    raw = path.read_bytes()
    version, tensor_count, key_count = unpack_from("<IQQ", raw, 4)
    image = Image(version=version)
    place = 24
    for _ in range(key_count):
        key, place = _text(raw, place)
        end = _value_end(raw, place + 4, unpack_from("<I", raw, place)[0])
        image.keys.append((key, raw[place:end]))
        place = end
    alignment = dict(image.keys).get(b"general.alignment")
    if alignment is not None:
        (image.alignment,) = unpack_from("<I", alignment, 4)
    entries = []
    for _ in range(tensor_count):
        name, place = _text(raw, place)
        (count,) = unpack_from("<I", raw, place)
        *dims, type_id, offset = unpack_from(f"<{count}QIQ", raw, place + 4)
        entries.append((name, tuple(dims), type_id, offset))
        place += 16 + 8 * count
    start = place + -place % image.alignment
    ends = [*(entry[3] for entry in entries[1:]), len(raw) - start]
    image.tensors = [
        Line(name, dims, type_id, raw[start + offset : start + end])
        for (name, dims, type_id, offset), end in zip(entries, ends, strict=True)
    ]
    return image


def _text(raw: bytes, place: int) -> tuple[bytes, int]:
    size: int = unpack_from("<Q", raw, place)[0]
    return raw[place + 8 : place + 8 + size], place + 8 + size


def _value_end(raw: bytes, place: int, kind: int) -> int:
    if kind == STRING:
        return _text(raw, place)[1]
    if kind != ARRAY:
        return place + calcsize("<" + _CODES[kind])
    inner, count = unpack_from("<IQ", raw, place)
    place += 12
    if inner in _CODES:
        return place + int(count) * calcsize("<" + _CODES[inner])
    for _ in range(count):
        place = _value_end(raw, place, inner)
    return place


def edit(source: Path, target: Path, change: Callable[[Image], object]) -> Path:
    """Write ``source`` again at ``target`` with one change; returns ``target``."""
    image = read_image(source)
    change(image)
    return image.write(target)


def split(image: Image, folder: Path, stem: str, parts: int) -> list[Path]:
    """Write an image as a set of files, the tensors dealt out in order."""
    paths = []
    share = -(-len(image.tensors) // parts)
    for number in range(parts):
        part = Image(
            keys=list(image.keys) if number == 0 else [],
            tensors=image.tensors[number * share : (number + 1) * share],
            alignment=image.alignment,
        )
        part.set("split.no", scalar(U16, number))
        part.set("split.count", scalar(U16, parts))
        part.set("split.tensors.count", scalar(I32, len(image.tensors)))
        paths.append(part.write(folder / f"{stem}-{number + 1:05}-of-{parts:05}.gguf"))
    return paths


def scalar(kind: int, value: float) -> bytes:
    """A number or truth value with its type in front."""
    return pack("<I", kind) + pack("<" + _CODES[kind], value)


def u32(value: int) -> bytes:
    """An unsigned 32-bit value."""
    return scalar(U32, value)


def string(value: str | bytes) -> bytes:
    """A string value."""
    return pack("<I", STRING) + _item(STRING, value)


def array(kind: int, items: Sequence[Item]) -> bytes:
    """An array of numbers, truth values or strings."""
    return pack("<IIQ", ARRAY, kind, len(items)) + b"".join(_item(kind, item) for item in items)


def nested(arrays: Sequence[bytes]) -> bytes:
    """An array of arrays, each made by ``array`` or ``nested``."""
    return pack("<IIQ", ARRAY, ARRAY, len(arrays)) + b"".join(inner[4:] for inner in arrays)


def _item(kind: int, item: Item) -> bytes:
    if kind == STRING:
        raw = item.encode() if isinstance(item, str) else item
        assert isinstance(raw, bytes)
        return pack("<Q", len(raw)) + raw
    return pack("<" + _CODES[kind], item)


def _padded(raw: bytes, alignment: int) -> bytes:
    return raw + bytes(-len(raw) % max(alignment, 1))
