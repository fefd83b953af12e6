"""Opens a checkpoint by what its files hold, never by its name.

A GGUF file or any part of a split one, a safetensors file or any shard, or a folder with one of
these. What is no checkpoint gets a sentence of its own.
"""

from __future__ import annotations

import re
from pathlib import Path

from engine.checkpoint.foreign import foreign_kind, read_head, refuse, unreadable
from engine.checkpoint.gguf.checkpoint import map_part
from engine.checkpoint.gguf.header import MAGIC
from engine.checkpoint.gguf.split import open_gguf, part_number
from engine.checkpoint.published.checkpoint import open_published
from engine.checkpoint.published.config import CONFIG
from engine.checkpoint.published.shards import ENDING
from engine.checkpoint.source import CheckpointSource
from engine.errors import CheckpointUnreadable

_SAFETENSORS = re.compile(rb".{4}\0{4}\{", re.DOTALL)
_JSON = re.compile(rb"\s*\{\s*[\"}]")
_REVISION_LIMIT = 128
_PICTURES = "clip"
"""The architecture of GGUF files that hold only the picture part of a model."""


def open_checkpoint(path: Path) -> CheckpointSource:
    """Open the checkpoint at ``path``: a file, any part of a split one, or a folder that has one.

    Raises:
        CheckpointUnreadable: missing, empty, foreign, damaged or incomplete.
        UnsupportedFormat: a tensor is stored in a format that is not decoded.
    """
    found = _model_in(path) if path.is_dir() else path
    try:
        if found.is_dir():
            return open_published(found)
        if is_safetensors(read_head(found)):
            return open_published(found.parent, found)
        check_kind(found)
        return open_gguf(found)
    except OSError as error:
        raise unreadable(found, error) from error


def check_kind(path: Path) -> None:
    """Refuse a file that is not GGUF, in a sentence that says what it is instead."""
    head = read_head(path)
    if head[:4] != MAGIC:
        other = f"this is no model file; it begins with {head[:8]!r}, not with {MAGIC!r}"
        if _JSON.match(head):
            other = "this is a JSON text; name the folder that it lies in"
        raise refuse(path, foreign_kind(head) or other)


def is_safetensors(head: bytes) -> bool:
    """Whether a file that begins so claims to be safetensors: a length below 4 GiB, an object."""
    return foreign_kind(head) is None and bool(_SAFETENSORS.match(head))


def model_files(folder: Path) -> tuple[Path, ...]:
    """The checkpoints of a folder: its GGUF files, sorted, and itself where it is a published one.

    Of a split file it is the lowest part. Files that hold only the picture part of a model count
    where there is nothing else.
    """
    kept: dict[tuple[str, int], Path] = {}
    for path in sorted(folder.glob("*.gguf")):
        part = part_number(path)
        kept.setdefault((part[0], part[2]) if part else (path.name, 0), path)
    files = tuple(kept.values())
    models = files if len(files) < 2 else tuple(file for file in files if not _is_picture(file))
    return (*(models or files), *([folder] if is_published(folder) else []))


def is_published(folder: Path) -> bool:
    """Whether a folder has a config and weights beside it."""
    return (folder / CONFIG).is_file() and any(folder.glob(f"*{ENDING}"))


def _model_in(folder: Path) -> Path:
    folder = _revision(folder)
    if is_published(folder):
        # Its folder is the one name that it has; a GGUF file beside it has its own.
        return folder
    models = model_files(folder)
    if len(models) == 1:
        return models[0]
    if models:
        raise refuse(folder, f"the folder holds {len(models)} models; name one of them")
    if any(folder.glob(f"*{ENDING}")):
        return folder
    for other in sorted(folder.glob("*.bin")):
        kind = foreign_kind(read_head(other))
        if kind is not None:
            raise refuse(other, kind)
    if (folder / CONFIG).is_file():
        raise refuse(folder, f"the folder has a {CONFIG}, but the weights are missing")
    raise refuse(folder, "the folder holds no model")


def _revision(folder: Path) -> Path:
    """Of a repository in the hub's cache the revision that was fetched last; else the folder."""
    snapshots, main = folder / "snapshots", folder / "refs" / "main"
    if not snapshots.is_dir():
        return folder
    revisions = sorted(path for path in snapshots.iterdir() if path.is_dir())
    if main.is_file():
        with main.open("rb") as stream:
            named = stream.read(_REVISION_LIMIT).decode("utf-8", "replace").strip()
        revisions = [path for path in revisions if path.name == named] or revisions
    if len(revisions) != 1:
        raise refuse(folder, f"the folder holds {len(revisions)} revisions; name one of them")
    return revisions[0]


def _is_picture(path: Path) -> bool:
    """Whether a GGUF file says that it holds a picture part; a damaged one says nothing."""
    try:
        part = map_part(path)
    except (CheckpointUnreadable, OSError):
        return False
    architecture = part.header.metadata.get("general.architecture")
    part.close()
    return architecture == _PICTURES
