"""A hostile or foreign header is refused for its own reason, naming file, thing and numbers."""

from __future__ import annotations

from collections.abc import Callable
from struct import pack

import pytest

from engine.checkpoint.gguf.header import Header, parse_header
from engine.checkpoint.gguf.table import tensor_table
from engine.checkpoint.gguf.values import DEPTH_LIMIT, NESTED_LIMIT
from engine.errors import CheckpointUnreadable, UnsupportedFormat
from tests.fuzz.small_headers import small_images
from tests.helpers.gguf_edit import (
    ARRAY,
    BOOL,
    U8,
    U64,
    Image,
    Line,
    array,
    nested,
    scalar,
    string,
    u32,
)


def _parse(image: Image) -> Header:
    raw = image.to_bytes()
    header = parse_header(raw, "x.gguf")
    tensor_table(header, "x.gguf", len(raw), 0)
    return header


def _sound() -> Image:
    image = Image()
    image.set("general.architecture", string("llama"))
    image.tensors = [
        Line(b"a", (8,), 0, bytes(32)),
        Line(b"b", (32, 2), 2, bytes(36)),
        Line(b"c", (3,), 0, bytes(12)),
    ]
    return image


def _keys(*keys: tuple[bytes, bytes]) -> Callable[[], Image]:
    def build() -> Image:
        image = _sound()
        image.keys += keys
        return image

    return build


def _lines(*lines: Line) -> Callable[[], Image]:
    def build() -> Image:
        image = _sound()
        image.tensors += lines
        return image

    return build


def _set(**fields: int) -> Callable[[], Image]:
    def build() -> Image:
        image = _sound()
        for name, value in fields.items():
            setattr(image, name, value)
        return image

    return build


def _deep(depth: int) -> bytes:
    return pack("<I", ARRAY) + pack("<IQ", ARRAY, 1) * depth + pack("<IQ", U8, 0)


HOSTILE: list[tuple[str, Callable[[], Image], str]] = [
    ("version 0", _set(version=0), "version 0 is unknown"),
    ("version 1", _set(version=1), "version 1 of 2023"),
    ("version 4", _set(version=4), "version 4 is unknown"),
    ("big-endian", _set(version=0x0300_0000), "other byte order"),
    ("2^63 keys", _set(key_count=2**63), "key table claims 9223372036854775808 entries"),
    ("65,537 keys", _set(key_count=65_537), "at most 65536"),
    ("one key too many", _set(key_count=2), "tensor 0 has an empty name"),
    ("60,000 keys", _set(key_count=60_000), "need at least 840000 bytes"),
    ("2^64-1 tensors", _set(tensor_count=2**64 - 1), "tensor table claims"),
    ("60,000 tensors", _set(tensor_count=60_000), "need at least 1500000 bytes"),
    ("empty key", _keys((b"", u32(1))), "empty name"),
    ("key not UTF-8", _keys((b"\xff", u32(1))), "not UTF-8"),
    ("key of 64 KB", _keys((b"k" * 65_536, u32(1))), "at most 65535"),
    ("key twice", _keys((b"k", u32(1)), (b"k", u32(1))), "'k' stands in the file twice"),
    ("unknown value type", _keys((b"k", pack("<II", 13, 0))), "unknown value type 13"),
    ("unknown array type", _keys((b"k", pack("<IIQ", 9, 77, 0))), "unknown value type 77"),
    ("string of 2^64-1", _keys((b"k", pack("<IQ", 8, 2**64 - 1))), "'k' claims 1844674407370955"),
    ("string past the end", _keys((b"k", pack("<IQ", 8, 9_999))), "'k' needs 9999 bytes"),
    (
        "array of 2^61 u64",
        _keys((b"k", pack("<IIQ", 9, 10, 2**61))),
        "'k' claims 2305843009213693952",
    ),
    ("array of 2^60 words", _keys((b"k", pack("<IIQ", 9, 8, 2**60))), "'k' claims"),
    ("word past the end", _keys((b"k", pack("<IIQQ", 9, 8, 1, 2**62))), "'k' needs"),
    ("deep arrays", _keys((b"k", _deep(DEPTH_LIMIT))), "nests arrays too far"),
    ("very deep arrays", _keys((b"k", _deep(100_000))), "nests arrays too far"),
    (
        "many arrays",
        _keys((b"k", nested([array(U8, [])] * (NESTED_LIMIT + 1)))),
        "nests arrays too far",
    ),
    ("alignment 0", _keys((b"general.alignment", u32(0))), "general.alignment is 0"),
    ("alignment 3", _keys((b"general.alignment", u32(3))), "general.alignment is 3"),
    ("alignment 2^31", _keys((b"general.alignment", u32(2**31))), "is 2147483648"),
    ("alignment as u64", _keys((b"general.alignment", scalar(U64, 32))), "must be of type 4"),
    ("alignment as bool", _keys((b"general.alignment", scalar(BOOL, 1))), "must be of type 4"),
    ("empty tensor name", _lines(Line(b"", (1,), 0, bytes(4))), "empty name"),
    ("tensor name not UTF-8", _lines(Line(b"\xc3", (1,), 0, bytes(4))), "not UTF-8"),
    ("long tensor name", _lines(Line(b"n" * 257, (1,), 0, bytes(4))), "at most 256"),
    ("tensor twice", _lines(Line(b"a", (1,), 0, bytes(4))), "'a' stands in the file twice"),
    ("five dimensions", _lines(Line(b"d", (1,) * 5, 0, bytes(4))), "'d' has 5 dimensions"),
    ("empty dimension", _lines(Line(b"d", (0, 4), 0, b"")), "'d' has an empty dimension"),
    ("dims overflow", _lines(Line(b"d", (2**63, 2**63), 0, bytes(4))), "'d' ends at byte"),
    ("dims wrap to 4", _lines(Line(b"d", (2**62 + 1, 4), 0, bytes(16))), "'d' ends at byte"),
    ("half a block", _lines(Line(b"d", (33,), 2, bytes(36))), "no whole blocks of 32"),
    ("offset not aligned", _lines(Line(b"d", (1,), 0, bytes(4), 161)), "multiple of the alignment"),
    ("offset past the end", _lines(Line(b"d", (1,), 0, bytes(4), 2**40)), "'d' ends at byte"),
    ("offset 2^64-32", _lines(Line(b"d", (8,), 0, bytes(32), 2**64 - 32)), "'d' ends at byte"),
    ("overlap", _lines(Line(b"d", (8,), 0, bytes(32), 0)), "starts at byte"),
    ("overlap by a tail", _lines(Line(b"d", (8,), 0, bytes(32), 64)), "inside 'b'"),
]


@pytest.mark.parametrize(
    ("build", "sentence"), [case[1:] for case in HOSTILE], ids=[case[0] for case in HOSTILE]
)
def test_a_hostile_header_is_refused_for_its_own_reason(
    build: Callable[[], Image], sentence: str
) -> None:
    with pytest.raises(CheckpointUnreadable) as caught:
        _parse(build())
    assert sentence in caught.value.sentence
    assert caught.value.sentence.startswith("x.gguf: ")


def test_2_to_the_32_dimensions_are_refused() -> None:
    raw = _sound().to_bytes().replace(pack("<QcI", 1, b"a", 1), pack("<QcI", 1, b"a", 2**32 - 1))
    with pytest.raises(CheckpointUnreadable, match="has 4294967295 dimensions"):
        parse_header(raw, "x.gguf")


def test_every_cut_of_a_sound_file_is_refused_as_cut_or_claiming_too_much() -> None:
    image = small_images()[0]
    image.tensors = image.tensors[:1]
    raw = image.to_bytes()
    end = len(raw) - 32 + image.tensors[0].dims[0] * 4
    for size in range(end):
        with pytest.raises(CheckpointUnreadable):
            header = parse_header(raw[:size], "x.gguf")
            tensor_table(header, "x.gguf", size, 0)
    tensor_table(parse_header(raw[:end], "x"), "x", end, 0)


@pytest.mark.parametrize("type_id", [4, 9, 15, 31, 42, 38, 139, 255, 2**32 - 1])
def test_a_foreign_tensor_type_is_named_with_file_tensor_and_what_is_read(type_id: int) -> None:
    image = _sound()
    image.change("b", type_id=type_id)
    with pytest.raises(UnsupportedFormat) as caught:
        _parse(image)
    for part in ("x.gguf", "'b'", f"type {type_id}", "Q4_K", "IQ1_S", "TQ1_0"):
        assert part in caught.value.sentence
    assert caught.value.numbers["type"] == type_id


def test_a_foreign_type_that_is_known_is_called_by_its_name() -> None:
    image = _sound()
    image.change("b", type_id=139)
    with pytest.raises(UnsupportedFormat, match="IQ4_K of the ik_llama"):
        _parse(image)
