"""Sound headers read as written; every other one gets the sentence that is meant for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest

from engine.checkpoint.gguf.header import Header, parse_header
from engine.checkpoint.gguf.table import tensor_table
from engine.checkpoint.source import MetadataValue
from tests.fuzz.small_headers import small_images
from tests.helpers.gguf_edit import (
    BOOL,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    STRING,
    U8,
    U16,
    U32,
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


def _with(key: str, value: bytes) -> Image:
    image = _sound()
    image.set(key, value)
    return image


def _sound() -> Image:
    image = Image()
    image.set("general.architecture", string("llama"))
    image.tensors = [
        Line(b"a", (8,), 0, bytes(32)),
        Line(b"b", (32, 2), 2, bytes(36)),
        Line(b"c", (3,), 0, bytes(12)),
    ]
    return image


def _plain(value: MetadataValue) -> object:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(element) for element in value]
    return value


@pytest.mark.parametrize(
    ("encoded", "wanted"),
    [
        (scalar(U8, 255), 255),
        (scalar(I8, -128), -128),
        (scalar(U16, 65_535), 65_535),
        (scalar(I16, -32_768), -32_768),
        (scalar(U32, 2**32 - 1), 2**32 - 1),
        (scalar(I32, -(2**31)), -(2**31)),
        (scalar(F32, 0.1), float(np.float32(0.1))),
        (scalar(BOOL, 1), True),
        (scalar(U64, 2**64 - 1), 2**64 - 1),
        (scalar(I64, -(2**63)), -(2**63)),
        (scalar(F64, 0.1), 0.1),
        (string(""), ""),
        (string("é\U0001f600"), "é\U0001f600"),
        (string("x" * 70_000), "x" * 70_000),
        (array(BOOL, []), []),
        (array(STRING, []), []),
        (array(BOOL, [1, 0, 1]), [True, False, True]),
        (array(I16, [-1, 2, 3]), [-1, 2, 3]),
        (array(F64, [0.5]), [0.5]),
        (array(STRING, ["a", "", "ü"]), ["a", "", "ü"]),
        (array(U32, range(10_000)), list(range(10_000))),
        (nested([array(U8, [1, 2]), array(U8, [])]), [[1, 2], []]),
        (nested([nested([array(STRING, ["z"])])]), [[["z"]]]),
        (nested([]), []),
    ],
)
def test_every_value_type_reads_as_written(encoded: bytes, wanted: object) -> None:
    """The key behind it reads too, so that no value swallows what follows."""
    image = _with("x.value", encoded)
    image.set("x.after", u32(7))
    found = _parse(image).metadata
    assert _plain(found["x.value"]) == wanted
    assert found["x.after"] == 7


def test_truth_values_are_truth_values_and_not_numbers() -> None:
    found = _parse(_with("x", array(BOOL, [1, 0]))).metadata["x"]
    assert isinstance(found, Sequence)
    assert found[0] is True
    assert found[1] is False


def test_arrays_index_slice_and_end_like_sequences() -> None:
    image = _with("n", array(I32, [5, 6, 7]))
    image.set("s", array(STRING, ["a", "bc", "d"]))
    found = _parse(image).metadata
    for key, wanted in (("n", (5, 6, 7)), ("s", ("a", "bc", "d"))):
        values = found[key]
        assert isinstance(values, Sequence)
        assert values[-1] == wanted[-1]
        assert values[1:] == wanted[1:]
        assert values[::-1] == wanted[::-1]
        assert wanted[1] in values
        with pytest.raises(IndexError):
            values[3]


def test_words_that_are_not_utf8_stay_apart_and_lose_nothing() -> None:
    words = [b"\xff", b"\xfe", b"a\xc3", "a\u00c3".encode(), b"\xed\xa0\x80"]
    found = _parse(_with("s", array(STRING, words))).metadata["s"]
    assert isinstance(found, Sequence)
    assert len(set(found)) == len(words)
    assert found[0] == "\U0010ffff"
    assert found[2] == "a\U0010ffc3"
    assert all(str(word).encode().decode() == word for word in found)


@pytest.mark.parametrize("alignment", [1, 8, 16, 64, 4096])
def test_every_legal_alignment_finds_the_same_tensor_bytes(alignment: int) -> None:
    image = _sound()
    image.tensors = [replace(line, data=bytes([9]) * len(line.data)) for line in image.tensors]
    image.alignment = alignment
    image.set("general.alignment", u32(alignment))
    raw = image.to_bytes()
    table = tensor_table(parse_header(raw, "x"), "x", len(raw), 0)
    for facts, line in zip(table, image.tensors, strict=True):
        assert raw[facts.offset : facts.offset + facts.size_bytes] == line.data


def test_version_2_reads_like_version_3() -> None:
    image = _sound()
    image.version = 2
    assert _parse(image).entries == _parse(_sound()).entries


def test_shapes_are_slowest_first_and_a_scalar_has_one_element() -> None:
    image = _sound()
    image.tensors.append(Line(b"stack", (32, 3, 2), 0, bytes(32 * 3 * 2 * 4)))
    image.tensors.append(Line(b"scalar", (), 0, bytes(4)))
    raw = image.to_bytes()
    table = {f.name: f.shape for f in tensor_table(parse_header(raw, "x"), "x", len(raw), 0)}
    assert table["stack"] == (2, 3, 32)
    assert table["scalar"] == (1,)


@pytest.mark.parametrize("image", small_images())
def test_no_parse_takes_more_steps_than_the_file_has_bytes(image: Image) -> None:
    raw = image.to_bytes()
    assert 0 < parse_header(raw, "x").steps <= len(raw)


def test_a_file_of_gguf_py_with_all_its_types_reads_alike(tmp_path: Path) -> None:
    path = tmp_path / "all.gguf"
    _write_by_gguf(path)
    reader = gguf.GGUFReader(path)
    header = parse_header(path.read_bytes(), path.name)
    wanted = {k: f.contents() for k, f in reader.fields.items() if not k.startswith("GGUF.")}
    assert {key: _plain(value) for key, value in header.metadata.items()} == wanted
    table = tensor_table(header, path.name, path.stat().st_size, 0)
    assert [(f.name, f.offset, f.size_bytes) for f in table] == [
        (t.name, int(t.data_offset), int(t.n_bytes)) for t in reader.tensors
    ]
    assert [f.format.upper() for f in table] == [t.tensor_type.name for t in reader.tensors]


def _write_by_gguf(path: Path) -> None:
    """One tensor of every type and one key of every kind, as ``gguf``'s own writer puts them."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint8("k.u8", 200)
    writer.add_int8("k.i8", -3)
    writer.add_uint16("k.u16", 60_000)
    writer.add_int16("k.i16", -300)
    writer.add_uint32("k.u32", 4_000_000_000)
    writer.add_int32("k.i32", -5)
    writer.add_uint64("k.u64", 2**63)
    writer.add_int64("k.i64", -(2**62))
    writer.add_float32("k.f32", 0.3)
    writer.add_float64("k.f64", 0.3)
    writer.add_bool("k.bool", True)
    writer.add_string("k.string", "ß")
    writer.add_array("k.strings", ["a", "bb", ""])
    writer.add_array("k.numbers", [1, -2, 3])
    writer.add_array("k.floats", [0.5, 0.25])
    writer.add_array("k.bools", [True, False])
    for kind, (elements, size) in gguf.GGML_QUANT_SIZES.items():
        if kind.name not in ("Q8_1", "Q8_K"):
            data = np.zeros((3, 2 * size), np.uint8)
            shape = (3, 2 * elements)
            writer.add_tensor_info(kind.name, shape, np.dtype(np.float32), data.nbytes, kind)
            writer.tensors[0][kind.name].tensor = data
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
