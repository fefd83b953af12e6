"""What can be wrong with safetensors files and their sets: the damage, and what the error says."""

from __future__ import annotations

from collections.abc import Callable
from struct import pack
from typing import Any

from tests.helpers.safetensors_edit import FIRST, ONE, SECOND, Folder
from tests.helpers.tiny_safetensors import INDEX, Stored, taken_apart, tensors_file

Damage = Callable[[Folder], object]
Case = tuple[Damage, tuple[str, ...]]
NORM = "model.norm.weight"
Q = "model.layers.0.self_attn.q_proj.weight"
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 98000000\n"


def place(folder: Folder, value: object) -> None:
    """Send every tensor of the second file somewhere else."""

    def change(places: dict[str, Any]) -> None:
        for name, found in places.items():
            if found == SECOND:
                places[name] = value

    folder.places(change)


def offsets(folder: Folder, name: str, begin: int, end: int) -> None:
    """Move a tensor by so many bytes at each end."""

    def change(header: dict[str, Any]) -> None:
        first, last = header[name]["data_offsets"]
        header[name]["data_offsets"] = [first + begin, last + end]

    folder.header(change)


def same_bytes(header: dict[str, Any]) -> None:
    header["twin"] = dict(header[NORM])


def copied(folder: Folder) -> None:
    """Put a tensor of the first file into the second one too."""
    header, data = taken_apart((folder.path / SECOND).read_bytes())
    own = {
        name: Stored(each["dtype"], tuple(each["shape"]), data[slice(*each["data_offsets"])])
        for name, each in header.items()
        if name != "__metadata__"
    }
    first, _ = taken_apart((folder.path / FIRST).read_bytes())
    name = next(name for name in first if name != "__metadata__")
    (folder.path / SECOND).write_bytes(
        tensors_file(own | {name: Stored("F32", (1,), bytes(4))}, {"format": "pt"})
    )


def gap(folder: Folder) -> None:
    (folder.path / INDEX).unlink()
    (folder.path / FIRST).unlink()


def many_files(places: dict[str, Any]) -> None:
    places |= {f"t{number}": f"f{number}.safetensors" for number in range(1100)}


def shard_folder(folder: Folder) -> None:
    (folder.path / SECOND).unlink()
    (folder.path / SECOND).mkdir()


def circle(folder: Folder) -> None:
    (folder.path / SECOND).unlink()
    (folder.path / SECOND).symlink_to(folder.path / SECOND)


HEADER: dict[str, Case] = {
    "empty": (lambda f: f.bytes(lambda _: b""), (ONE, "the file is empty")),
    "seven bytes": (lambda f: f.bytes(lambda raw: raw[:7]), (ONE, "has 7 bytes")),
    "header past the file": (
        lambda f: f.bytes(lambda raw: pack("<Q", len(raw)) + raw[8:]),
        (ONE, "the header ends at byte", "not downloaded whole"),
    ),
    "header of 8 EiB": (
        lambda f: f.bytes(lambda raw: pack("<Q", 1 << 63) + raw[8:]),
        (ONE, str(1 << 63), "100000000"),
    ),
    "header of nothing": (
        lambda f: f.bytes(lambda raw: pack("<Q", 0) + raw[8:]),
        (ONE, "not with an object"),
    ),
    "header not utf-8": (
        lambda f: f.text(lambda text: text.encode().replace(b"norm", b"n\xffrm", 1)),
        (ONE, "not UTF-8 at byte"),
    ),
    "header cut": (lambda f: f.text(lambda text: text[:-9]), (ONE, "no JSON at line 1")),
    "header an array": (
        lambda f: f.text(lambda text: f"[{text}]"),
        (ONE, "not with an object"),
    ),
    "header nested": (
        lambda f: f.text(lambda _: '{"a":' + "[" * 50_000 + "]" * 50_000 + "}"),
        (ONE, "nested too deeply"),
    ),
    "header a bomb": (
        lambda f: f.text(lambda _: '{"a":[' + "[],[]," * 2_100_000 + "0]}"),
        (ONE, "values; at most 4000000"),
    ),
    "a name twice": (
        lambda f: f.text(lambda text: text[:-1] + f',"{NORM}":{{}}}}'),
        (ONE, f"the key '{NORM}' twice"),
    ),
    "a field twice": (
        lambda f: f.text(lambda text: text.replace('"shape"', '"dtype": "F16", "shape"', 1)),
        (ONE, "'dtype' twice"),
    ),
    "no dtype": (
        lambda f: f.header(lambda h: h[NORM].pop("dtype")),
        (ONE, NORM, "data_offsets, dtype, shape"),
    ),
    "a strange field": (lambda f: f.entry(scale=2), (ONE, NORM, "wanted an object of")),
    "an entry of 7": (lambda f: f.header(lambda h: h.update(x=7)), (ONE, "'x' is 7")),
    "dtype a number": (lambda f: f.entry(dtype=32), (ONE, NORM, "has 32 as dtype")),
    "dtype unknown": (lambda f: f.entry(dtype="Q4"), (ONE, NORM, "'Q4'")),
    "dtype not read": (lambda f: f.entry(dtype="U32"), (ONE, NORM, "U32", "BF16")),
    "dtype of another size": (lambda f: f.entry(dtype="F16"), (NORM, "has 96 bytes", "takes 48")),
    "shape nan": (
        lambda f: f.entry(shape=[float("nan")]),
        (ONE, NORM, "[nan]", "whole numbers"),
    ),
    "shape of text": (lambda f: f.entry(shape="24"), (NORM, "the text '24'")),
    "shape a fraction": (lambda f: f.entry(shape=[24.0]), (NORM, "[24.0]")),
    "shape true": (lambda f: f.entry(shape=[True, 24]), (NORM, "[True, 24]")),
    "shape negative": (lambda f: f.entry(shape=[-24]), (NORM, "[-24]")),
    "shape empty": (lambda f: f.entry(shape=[0, 24]), (NORM, "[0, 24]")),
    "shape of nine": (lambda f: f.entry(shape=[1] * 8 + [24]), (NORM, "at most 8")),
    "shape nested": (lambda f: f.entry(shape=[[24]]), (NORM, "an array of 1")),
    "shape beyond 64 bits": (
        lambda f: f.entry(shape=[1 << 62, 1 << 62]),
        (NORM, "has 96 bytes", str(1 << 126)),
    ),
    "a number beyond 64 bits": (
        lambda f: f.entry(shape=[1 << 64]),
        (ONE, NORM, "[1.8446744073709552e+19]", "whole numbers"),
    ),
    "a number of 5,000 digits": (
        lambda f: f.text(lambda text: text.replace("[24]", "[" + "9" * 5000 + "]", 1)),
        (ONE, "99999999999999999999...", "5000 digits"),
    ),
    "offsets negative": (lambda f: f.entry(data_offsets=[-96, 0]), (NORM, "[-96, 0]")),
    "offsets reversed": (lambda f: f.entry(data_offsets=[96, 0]), (NORM, "[96, 0]")),
    "offsets of three": (lambda f: f.entry(data_offsets=[0, 96, 96]), (NORM, "[0, 96, 96]")),
    "offsets null": (lambda f: f.entry(data_offsets=None), (NORM, "null")),
    "a tensor past the file": (
        lambda f: offsets(f, NORM, 1 << 40, 1 << 40),
        (ONE, NORM, "ends at byte", "but the file has"),
    ),
    "a file cut": (
        lambda f: f.bytes(lambda raw: raw[:-5]),
        (ONE, "ends at byte", "not downloaded whole"),
    ),
    "two tensors over the same bytes": (
        lambda f: f.header(same_bytes),
        (ONE, "starts at byte", NORM, "'twin'", "inside"),
    ),
    "two tensors share a byte": (
        lambda f: offsets(f, NORM, -1, -1),
        (ONE, NORM, "starts at byte", "inside 'model.embed_tokens.weight'"),
    ),
    "a hole": (
        lambda f: f.header(lambda h: h.pop(NORM)),
        (ONE, "belong to no tensor"),
    ),
    "a hole in front": (
        lambda f: f.header(lambda h: h.pop("model.embed_tokens.weight")),
        (ONE, NORM, "belong to no tensor"),
    ),
    "bytes behind": (
        lambda f: f.bytes(lambda raw: raw + b"\0" * 9),
        (ONE, "but its tensors end at byte"),
    ),
    "metadata of numbers": (
        lambda f: f.header(lambda h: h.update(__metadata__={"format": 7})),
        (ONE, "__metadata__", "no text"),
    ),
    "metadata a list": (
        lambda f: f.header(lambda h: h.update(__metadata__=[])),
        (ONE, "__metadata__ is an array of 0"),
    ),
    "half a surrogate": (
        lambda f: f.text(lambda text: text.replace(NORM, "\\ud800", 1)),
        (ONE, "ud800", "no name"),
    ),
    "a name of nothing": (
        lambda f: f.header(lambda h: h.update({"": h.pop(NORM)})),
        (ONE, "''", "no name"),
    ),
    "a name of 2,000 letters": (
        lambda f: f.header(lambda h: h.update({"n" * 2000: h.pop(NORM)})),
        (ONE, "nnn…'", "no name"),
    ),
    "a web page": (
        lambda f: f.bytes(lambda _: b"<!DOCTYPE html><html>"),
        (ONE, "a web page"),
    ),
    "zeros": (lambda f: f.bytes(lambda raw: bytes(len(raw))), (ONE, "zeros only")),
    "a pickle": (lambda f: f.bytes(lambda _: b"PK\x03\x04" + bytes(99)), (ONE, "pickle")),
}
SET: dict[str, Case] = {
    "a shard missing": (
        lambda f: (f.path / SECOND).unlink(),
        (SECOND, "of a set of 2 is not there", INDEX),
    ),
    "a shard missing without an index": (gap, (FIRST, "of a set of 2 is not there", "count")),
    "a shard cut": (
        lambda f: f.bytes(lambda raw: raw[: len(raw) // 2], SECOND),
        (SECOND, "ends at byte", "not downloaded whole"),
    ),
    "a shard of LFS": (
        lambda f: f.bytes(lambda _: LFS, SECOND),
        (SECOND, "Git LFS pointer", "98000000 bytes"),
    ),
    "a shard that is a folder": (
        shard_folder,
        (SECOND, "not a regular file"),
    ),
    "a file further up": (
        lambda f: place(f, "../model.safetensors"),
        (INDEX, "'../model.safetensors'", "same folder"),
    ),
    "a file from the root": (
        lambda f: place(f, "/etc/model.safetensors"),
        (INDEX, "'/etc/model.safetensors'"),
    ),
    "a file of a drive": (
        lambda f: place(f, "C:x.safetensors"),
        (INDEX, "'C:x.safetensors'"),
    ),
    "a file of a folder below": (
        lambda f: place(f, "a\\b.safetensors"),
        (INDEX, "b.safetensors'"),
    ),
    "a file that is no safetensors": (
        lambda f: place(f, "config.json"),
        (INDEX, "'config.json'"),
    ),
    "a file called 7": (lambda f: place(f, 7), (INDEX, "has 7 as the file of")),
    "a file with a zero byte": (
        lambda f: place(f, "a\0.safetensors"),
        (INDEX, "same folder"),
    ),
    "a link out": (lambda f: f.link_out(SECOND), (SECOND, "link to a file outside 'tiny'")),
    "the index a link out": (lambda f: f.link_out(INDEX), (INDEX, "outside 'tiny'")),
    "a link in a circle": (
        circle,
        (SECOND, "link"),
    ),
    "no weight_map": (
        lambda f: f.json(INDEX, lambda index: index.pop("weight_map") and None),
        (INDEX, "null as weight_map"),
    ),
    "weight_map a list": (
        lambda f: f.json(INDEX, lambda _: {"weight_map": []}),
        (INDEX, "an array of 0"),
    ),
    "an index of no JSON": (
        lambda f: (f.path / INDEX).write_text("{'a': 1}"),
        (INDEX, "no JSON at line 1, column 2"),
    ),
    "1,100 files": (lambda f: f.places(many_files), (INDEX, "names 1102 files", "1024")),
    "a tensor in another file": (
        lambda f: f.places(lambda places: places.update({Q: FIRST, NORM: FIRST})),
        (INDEX, FIRST, "but it is in", SECOND),
    ),
    "a tensor in no file": (
        lambda f: f.places(lambda places: places.update(ghost=FIRST)),
        (INDEX, "'ghost'", "no file has it"),
    ),
    "a tensor in two files": (copied, (SECOND, "is also in", FIRST)),
}
