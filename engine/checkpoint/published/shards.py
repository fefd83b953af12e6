"""The safetensors files of one checkpoint: which they are, mapped, and whether they fit together.

A set has an index that names the file of every tensor, or names that count ("-00001-of-00003"), or
is one file. Names are plain names of files in the same folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from engine.checkpoint.foreign import foreign_kind, read_head, refuse, unreadable
from engine.checkpoint.gguf.header import MAGIC
from engine.checkpoint.labels import file_label, quoted
from engine.checkpoint.mapped import MappedFile, map_file
from engine.checkpoint.published.config import has_file, inside, read_object
from engine.checkpoint.published.header import Header, parse_header
from engine.checkpoint.published.json_text import Json, JsonLimits, json_refusal, kind_of
from engine.errors import CheckpointUnreadable

ENDING = ".safetensors"
INDEX = "model.safetensors.index.json"
INDEX_LIMITS = JsonLimits(size_bytes=64 << 20, values=2_000_000)
SHARD_LIMIT = 1024
NAME_LIMIT = 255
_COUNTED = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.safetensors", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FileSet:
    """The files of a checkpoint, not opened.

    Attributes:
        names: of the files, sorted.
        places: tensor name to file name, as the index has it; empty without an index.
    """

    folder: Path
    names: tuple[str, ...]
    places: Mapping[str, str] = field(default_factory=dict)


Shard = MappedFile[Header]
"""One file of the set."""


def file_set(folder: Path, file: str | None) -> FileSet:
    """The set that a folder holds, or that one of its files belongs to.

    Args:
        file: the name of the file that was asked for, None for the folder's own.

    Raises:
        CheckpointUnreadable: no such set, or an index that makes no sense.
    """
    if has_file(folder, INDEX):
        places = _index(folder)
        names = sorted(set(places.values()))
        if file is None or file in names:
            return FileSet(folder, tuple(names), places)
    names = _weights_of(folder) if file is None else [file]
    if not names:
        raise refuse(folder, "the folder has a config.json, but the weights are missing")
    counted = [match for name in names if (match := _COUNTED.fullmatch(name))]
    if len(counted) == len(names) and len({(c[1], c[3]) for c in counted}) == 1:
        names = _all_of(counted[0], folder)
    return FileSet(folder, tuple(names))


def open_shards(files: FileSet) -> tuple[Shard, ...]:
    """Map every file and read its header; the caller owns them.

    Raises:
        CheckpointUnreadable: a file is missing, damaged, or at odds with the others; then none
            stays mapped.
    """
    with ExitStack() as opened:
        shards = []
        for name in files.names:
            shard = _mapped(_existing(files, name))
            opened.callback(shard.close)
            shards.append(shard)
        _check_names(shards, files.places)
        opened.pop_all()
    return tuple(shards)


def _weights_of(folder: Path) -> list[str]:
    """Names of a folder's files; where some begin with "model", the others are something else."""
    found = sorted(path.name for path in folder.glob(f"*{ENDING}"))
    return [name for name in found if name.startswith("model")] or found


def _all_of(one: re.Match[str], folder: Path) -> list[str]:
    count = int(one[3])
    if not 0 < count <= SHARD_LIMIT:
        raise refuse(folder / one[0], f"the name counts {count} files; at most {SHARD_LIMIT}")
    return [f"{one[1]}-{number:05}-of-{one[3]}{ENDING}" for number in range(1, count + 1)]


def _index(folder: Path) -> dict[str, str]:
    parsed = read_object(folder, INDEX, INDEX_LIMITS)
    found = parsed.get("weight_map")
    if not isinstance(found, dict) or not found:
        raise json_refusal(INDEX, f"has {kind_of(found)} as weight_map; wanted names and files")
    files: set[Json] = set()
    places: dict[str, str] = {}
    for name, file in found.items():
        # A set has few files and many tensors: each name is judged once.
        places[name] = file if isinstance(file, str) and file in files else _plain_name(name, file)
        files.add(places[name])
    count = len(files)
    if count > SHARD_LIMIT:
        raise json_refusal(INDEX, f"names {count} files; at most {SHARD_LIMIT} are read")
    return places


def _plain_name(tensor: str, file: Json) -> str:
    """The file's name, if it is one of a file in the index's own folder."""
    if not isinstance(file, str):
        raise json_refusal(INDEX, f"has {kind_of(file)} as the file of {quoted(tensor)}")
    if (
        not file.endswith(ENDING)
        or len(file) > NAME_LIMIT
        or any(sign in file for sign in '/\\:\0*?"<>|')
        or not file.isprintable()
    ):
        raise json_refusal(
            INDEX,
            f"names the file {quoted(file)} for tensor {quoted(tensor)}; wanted the name of a "
            f"{ENDING} file in the same folder",
        )
    return file


def _existing(files: FileSet, name: str) -> Path:
    path = inside(files.folder, name)
    if not path.exists():
        whose = f"{INDEX} names it" if files.places else "its name is missing in the count"
        count = len(files.names)
        raise refuse(path, f"this file of a set of {count} is not there ({whose})")
    return path


def _mapped(path: Path) -> Shard:
    head = read_head(path)
    kind = foreign_kind(head)
    if head.startswith(MAGIC):
        kind = "this is a GGUF file under another name; name the file itself"
    if kind is not None:
        raise refuse(path, kind)
    try:
        return map_file(path, parse_header)
    except OSError as error:
        raise unreadable(path, error) from error


def _check_names(shards: Sequence[Shard], places: Mapping[str, str]) -> None:
    """Every tensor is in one file, and that is the one that the index names."""
    found: dict[str, str] = {}
    for shard in shards:
        for entry in shard.header.entries:
            other = found.setdefault(entry.name, shard.path.name)
            if other != shard.path.name:
                raise CheckpointUnreadable(
                    f"{file_label(shard.path)}: tensor {quoted(entry.name)} is also in "
                    f"{quoted(other)}",
                    file=shard.path.name,
                    tensor=entry.name,
                )
    for name, file in places.items():
        if found.get(name) != file:
            real = f"it is in {quoted(found[name])}" if name in found else "no file has it"
            raise CheckpointUnreadable(
                f"{INDEX} says that tensor {quoted(name)} is in {quoted(file)}, but {real}",
                file=file,
                tensor=name,
            )
