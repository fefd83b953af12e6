"""Looking for checkpoints in folders: what is there, what is away, what cannot be read.

A checkpoint is a GGUF file, the first part of a split one, or a folder as models are published: a
config.json beside safetensors files.

One bad entry never hides the others. What was seen before and is not there now is remembered in a
small file of the data directory and keeps its place in the catalogue, marked as away; it is
forgotten when its folder is there without it.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from app.files import write_atomically
from app.library.catalogue import ENDING, Catalogue, Installed

PART: Final = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$", re.IGNORECASE)
CONFIG: Final = "config.json"
WEIGHTS: Final = ".safetensors"
DEPTH: Final = 4
log = logging.getLogger(__name__)


class Seen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A checkpoint as it was seen last, in which folder."""

    path: str
    folder: str
    file_bytes: int


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at the folders found; ``problems`` has one sentence each."""

    catalogue: Catalogue
    problems: tuple[str, ...]


def look(folders: Sequence[Path], remembered: Path | None = None) -> Look:
    """Look through ``folders`` and remember what is there in the file ``remembered``."""
    problems: list[str] = []
    seen: dict[str, Seen] = {}
    away: dict[str, Seen] = {}
    before = _read(remembered)
    for folder in folders:
        missing = not folder.is_dir()
        if missing and folder != folders[0]:
            problems.append(f"The folder {folder} is not there now.")
        for entry in before if missing else ():
            if entry.folder == str(folder):
                away[entry.path] = entry
        for entry in () if missing else _checkpoints(folder, problems):
            seen.setdefault(entry.path, entry)
    _write(remembered, [*seen.values(), *away.values()], before)
    installed = [Installed(Path(entry.path), entry.file_bytes) for entry in seen.values()]
    installed += [
        Installed(Path(entry.path), entry.file_bytes, present=False)
        for path, entry in away.items()
        if path not in seen
    ]
    ordered = sorted(installed, key=lambda entry: (entry.name.casefold(), entry.path))
    return Look(Catalogue(tuple(ordered)), tuple(problems))


def is_published(folder: Path) -> bool:
    """Whether a folder is a checkpoint as models are published; False for what is no folder."""
    return (folder / CONFIG).is_file() and any(folder.glob(f"*{WEIGHTS}"))


def _checkpoints(folder: Path, problems: list[str]) -> Iterator[Seen]:
    for path in _files(folder, problems, DEPTH):
        part = PART.search(path.name)
        if path.name.startswith("mmproj") or (part is not None and int(part[1]) != 1):
            continue
        parts = [path] if part is None else _parts(path, int(part[2]))
        if path.is_dir():
            parts = sorted(path.glob(f"*{WEIGHTS}"))
        try:
            size = sum(file.stat().st_size for file in parts)
        except OSError as error:
            problems.append(f"The model {path} cannot be read: {error.strerror or error}.")
            continue
        yield Seen(path=str(path), folder=str(folder), file_bytes=size)


def _parts(first: Path, count: int) -> list[Path]:
    return [
        first.with_name(PART.sub(f"-{number:05d}-of-{count:05d}{ENDING}", first.name))
        for number in range(1, count + 1)
    ]


def _files(folder: Path, problems: list[str], depth: int) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        problems.append(f"The folder {folder} cannot be read: {error.strerror or error}.")
        return
    names = [entry.name for entry in entries]
    if CONFIG in names and any(name.endswith(WEIGHTS) for name in names):
        yield folder
    for entry in entries:
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            if depth > 1 and not entry.name.startswith("."):
                yield from _files(path, problems, depth - 1)
        elif entry.name.lower().endswith(ENDING):
            yield path


def _read(file: Path | None) -> tuple[Seen, ...]:
    if file is None:
        return ()
    try:
        return msgspec.json.decode(file.read_bytes(), type=tuple[Seen, ...])
    except (OSError, msgspec.DecodeError):
        return ()


def _write(file: Path | None, entries: Iterable[Seen], before: Iterable[Seen]) -> None:
    now = tuple(entries)
    if file is None or set(now) == set(before):
        return
    try:
        write_atomically(file, msgspec.json.encode(now))
    except OSError as error:
        log.info("checkpoints not remembered path=%s reason=%s", file, error)
