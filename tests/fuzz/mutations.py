"""Ways to damage a GGUF file: in its bytes, and in its fields.

Every function takes the generator first, so that a mutant is a function of its seed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from struct import pack

from tests.helpers.gguf_edit import ARRAY, STRING, Image, Line, string, u32

EXTREMES = (
    0, 1, 2, 7, 8, 31, 32, 33, 255, 256, 65_535, 65_536, 1 << 20, (1 << 31) - 1, 1 << 31,
    (1 << 32) - 1, 1 << 32, (1 << 40) + 1, (1 << 62) - 1, 1 << 62, (1 << 63) - 1, 1 << 63,
    (1 << 64) - 8, (1 << 64) - 1,
)  # fmt: skip
ODD_FLOATS = (
    0.0, -0.0, 5e-324, 1e-300, 1e-38, 1e-7, 0.5, 1.0, 1.0000000000000002, 2.0, 1e38, 1e300,
    1.7976931348623157e308, -1.0, -1e300, float("inf"), float("-inf"), float("nan"),
)  # fmt: skip
_STRUCTURAL_SHARE = 0.35
_ANYWHERE_SHARE = 0.2


def mutate(random: Random, image: Image, raw: bytes, places: Sequence[int] | None = None) -> bytes:
    """One mutant of a file.

    Args:
        image: the file in pieces; not changed.
        raw: the same file in bytes, or its header where the tensors' bytes do not matter.
        places: offsets worth hitting, such as the fields between long tables of words.
    """
    if random.random() < _STRUCTURAL_SHARE:
        changed = replace(image, keys=list(image.keys), tensors=list(image.tensors))
        for _ in range(random.choice((1, 1, 1, 2))):
            random.choice(_FIELD_CHANGES)(random, changed)
        return changed.to_bytes()
    return damaged(random, raw, places)


def damaged(random: Random, raw: bytes, places: Sequence[int] | None = None) -> bytes:
    """The bytes changed in one to four places; arguments as of ``mutate``."""
    out = bytearray(raw)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        if places and random.random() > _ANYWHERE_SHARE:
            place = min(random.choice(places), len(out) - 1)
        else:
            place = random.randrange(len(out))
        random.choice(_BYTE_CHANGES)(random, out, place)
        if not out:
            break
    return bytes(out)


def _flip(random: Random, out: bytearray, place: int) -> None:
    out[place] ^= 1 << random.randrange(8)


def _byte(random: Random, out: bytearray, place: int) -> None:
    out[place] = random.randrange(256)


def _extreme(random: Random, out: bytearray, place: int) -> None:
    number = random.choice((random.choice(EXTREMES), len(out), len(out) - place, place))
    width = random.choice((4, 8))
    out[place : place + width] = pack("<Q", number)[:width]


def _cut(_random: Random, out: bytearray, place: int) -> None:
    del out[place:]


def _insert(random: Random, out: bytearray, place: int) -> None:
    out[place:place] = random.randbytes(random.randrange(1, 17))


def _delete(random: Random, out: bytearray, place: int) -> None:
    del out[place : place + random.randrange(1, 17)]


def _repeat(random: Random, out: bytearray, place: int) -> None:
    out[place:place] = out[place : place + random.randrange(1, 64)]


def _overlay(random: Random, out: bytearray, place: int) -> None:
    size = random.randrange(1, 32)
    start = random.randrange(len(out))
    piece = out[start : start + size]
    out[place : place + len(piece)] = piece


_BYTE_CHANGES: tuple[Callable[[Random, bytearray, int], None], ...] = (
    _flip, _flip, _byte, _extreme, _extreme, _extreme, _cut, _insert, _delete, _repeat, _overlay,
)  # fmt: skip


def _repeat_key(random: Random, image: Image) -> None:
    if image.keys:
        image.keys.insert(random.randrange(len(image.keys)), random.choice(image.keys))


def _drop_key(random: Random, image: Image) -> None:
    if image.keys:
        del image.keys[random.randrange(len(image.keys))]


def _odd_key(random: Random, image: Image) -> None:
    name = random.choice((b"", b"\xff\xfe", b"k" * 70_000, b"general.alignment", b"split.count"))
    value = random.choice(
        (u32(random.choice(EXTREMES) & 0xFFFF_FFFF), string(b"\xc3\x28"), pack("<I", 13))
    )
    image.keys.insert(random.randrange(len(image.keys) + 1), (name, value))


def _swap_values(random: Random, image: Image) -> None:
    if image.keys:
        first, second = random.choice(image.keys), random.choice(image.keys)
        image.keys[image.keys.index(first)] = (first[0], second[1])


def _bad_array(random: Random, image: Image) -> None:
    if image.keys:
        place = random.randrange(len(image.keys))
        kind = random.choice((*range(13), 13, 255))
        count = random.choice(EXTREMES)
        depth = random.choice((0, 0, 1, 3, 5, 2000))
        inner = pack("<IQ", ARRAY, 1) * depth + pack("<IQ", kind, count)
        image.keys[place] = (image.keys[place][0], pack("<I", ARRAY) + inner + random.randbytes(9))


def _bad_text(random: Random, image: Image) -> None:
    if image.keys:
        place = random.randrange(len(image.keys))
        raw = pack("<IQ", STRING, random.choice(EXTREMES)) + random.randbytes(5)
        image.keys[place] = (image.keys[place][0], raw)


def _odd_number(random: Random, image: Image) -> None:
    """Give a key that has a number another one, of the same kind or not."""
    numbers = [i for i, (_, value) in enumerate(image.keys) if len(value) in (8, 12)]
    if numbers:
        place = random.choice(numbers)
        if random.random() < 0.5:
            value = pack("<Id", 12, random.choice(ODD_FLOATS))
        else:
            value = pack("<IQ", 10, random.choice(EXTREMES))
        image.keys[place] = (image.keys[place][0], value)


def _counts(random: Random, image: Image) -> None:
    number = random.choice((random.choice(EXTREMES), len(image.keys) + random.choice((-1, 1))))
    if random.random() < 0.5:
        image.key_count = max(number, 0)
    else:
        image.tensor_count = max(number, 0)


def _version(random: Random, image: Image) -> None:
    image.version = random.choice(EXTREMES) & 0xFFFF_FFFF


def _change_line(random: Random, image: Image) -> None:
    if image.tensors:
        place = random.randrange(len(image.tensors))
        image.tensors[place] = random.choice(_LINE_CHANGES)(random, image.tensors[place])


def _repeat_tensor(random: Random, image: Image) -> None:
    if image.tensors:
        image.tensors.append(random.choice(image.tensors))


def _rename(random: Random, line: Line) -> Line:
    return replace(line, name=random.choice((b"", b"\xff", b"n" * 300, line.name + b"\0")))


def _reshape(random: Random, line: Line) -> Line:
    count = random.choice((0, 1, 2, 3, 4, 5, 8))
    return replace(line, dims=tuple(random.choice((32, *EXTREMES)) for _ in range(count)))


def _widen(random: Random, line: Line) -> Line:
    dims = [*line.dims] or [1]
    dims[random.randrange(len(dims))] = random.choice(EXTREMES)
    return replace(line, dims=tuple(dims))


def _retype(random: Random, line: Line) -> Line:
    return replace(line, type_id=random.randrange(45) if random.random() < 0.9 else 139)


def _move(random: Random, line: Line) -> Line:
    return replace(line, offset=random.choice((random.choice(EXTREMES), 32, 64, 96, 1)))


_LINE_CHANGES: tuple[Callable[[Random, Line], Line], ...] = (
    _rename, _reshape, _widen, _retype, _move,
)  # fmt: skip
_FIELD_CHANGES: tuple[Callable[[Random, Image], None], ...] = (
    _repeat_key, _drop_key, _odd_key, _swap_values, _bad_array, _bad_text, _odd_number,
    _odd_number, _odd_number, _counts, _version,
    _change_line, _change_line, _change_line, _repeat_tensor,
)  # fmt: skip
