"""The small files beside the weights: ``config.json``, ``generation_config.json``, templates.

They are read from one folder only: a link that leads out of it is refused, but for the hub's own
cache, whose folders hold links to the files of ``blobs``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from engine.checkpoint.foreign import foreign_kind, read_head, refuse, unreadable
from engine.checkpoint.labels import file_label, quoted
from engine.checkpoint.published.json_text import (
    Json,
    JsonLimits,
    is_unicode,
    json_refusal,
    parse_object,
)
from engine.checkpoint.source import MetadataScalar, MetadataValue

CONFIG = "config.json"
GENERATION = "generation_config.json"
CONFIG_LIMITS = JsonLimits(size_bytes=4 << 20, values=200_000)
DEPTH_LIMIT = 16
KEY_LIMIT = 1024


def inside(folder: Path, name: str) -> Path:
    """The file ``name`` of a folder.

    Raises:
        CheckpointUnreadable: it is a link to a place outside.
    """
    path = folder / name
    try:
        real, root = path.resolve(), folder.resolve()
    except (OSError, RuntimeError) as error:
        raise refuse(path, "this link leads nowhere") from error
    roots = [root, root.parents[1] / "blobs"] if root.parent.name == "snapshots" else [root]
    if not any(real.is_relative_to(each) for each in roots):
        raise refuse(path, f"this is a link to a file outside {quoted(root.name)}")
    return path


def read_object(folder: Path, name: str, limits: JsonLimits) -> dict[str, Json]:
    """The JSON object in a file of the folder.

    Raises:
        CheckpointUnreadable: the file is missing, foreign, too large or no sound object.
    """
    raw = read_text(folder, name, limits.size_bytes)
    return parse_object(raw, file_label(Path(name)), limits)


def read_text(folder: Path, name: str, limit: int) -> bytes:
    """A file of the folder whole, at most ``limit`` bytes; see ``read_object`` for errors."""
    path = inside(folder, name)
    kind = foreign_kind(read_head(path))
    if kind is not None:
        raise refuse(path, kind)
    try:
        size = path.stat().st_size
        if size > limit:
            raise refuse(path, f"the file has {size} bytes; at most {limit} are read")
        return path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error


def has_file(folder: Path, name: str) -> bool:
    """Whether the folder has the file, or a link of that name."""
    path = folder / name
    return path.is_file() or path.is_symlink()


def flattened(config: Mapping[str, Json], label: str) -> dict[str, MetadataValue]:
    """Keys joined by dots, arrays as tuples; what is null is left out, with arrays that hold it.

    Raises:
        CheckpointUnreadable: nested too deeply, a text that is no Unicode, or two keys that are
            one when joined.
    """
    flat: dict[str, MetadataValue] = {}
    for key, value in _leaves(config, "", label, 1):
        if key in flat:
            raise json_refusal(label, f"has {quoted(key)} twice, once as an object in an object")
        if len(key) > KEY_LIMIT or not is_unicode(key):
            raise json_refusal(label, f"has the key {quoted(key)}, which is no name")
        flat[key] = value
    return flat


def _leaves(
    value: Mapping[str, Json], before: str, label: str, depth: int
) -> Iterator[tuple[str, MetadataValue]]:
    _check_depth(depth, label)
    for key, each in value.items():
        full = f"{before}{key}"
        if isinstance(each, dict):
            yield from _leaves(each, f"{full}.", label, depth + 1)
        elif isinstance(each, list) and any(isinstance(part, dict) for part in each):
            numbered = {str(place): part for place, part in enumerate(each)}
            yield from _leaves(numbered, f"{full}.", label, depth + 1)
        else:
            found = _array(each, full, label, depth + 1)
            if found is not None:
                yield full, found


def _array(value: Json, key: str, label: str, depth: int) -> MetadataValue | None:
    if not isinstance(value, list):
        return _scalar(value, key, label)
    _check_depth(depth, label)
    parts = [_array(part, key, label, depth + 1) for part in value]
    kept = tuple(part for part in parts if part is not None)
    return kept if len(kept) == len(parts) else None


def _scalar(value: Json, key: str, label: str) -> MetadataScalar | None:
    if isinstance(value, str) and not is_unicode(value):
        raise json_refusal(label, f"has a text at {quoted(key)} that is no Unicode")
    return value if isinstance(value, bool | int | float | str) else None


def _check_depth(depth: int, label: str) -> None:
    if depth > DEPTH_LIMIT:
        raise json_refusal(label, f"is nested more than {DEPTH_LIMIT} deep")
