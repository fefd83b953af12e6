"""Opens a checkpoint by what its first bytes are, never by its name.

What is no checkpoint gets a sentence of its own: an old format, a pointer file of Git LFS, a web
page saved instead of a download, an empty file.
"""

from __future__ import annotations

import re
from pathlib import Path

from engine.checkpoint.gguf_header import MAGIC
from engine.checkpoint.gguf_split import open_gguf, part_number
from engine.checkpoint.labels import file_label
from engine.checkpoint.source import CheckpointSource
from engine.errors import CheckpointUnreadable

_HEAD_BYTES = 512
_LFS_SIZE = re.compile(rb"size (\d+)")
_OLD_FORMAT = "a GGML file in the old format of 2023; get the GGUF file of this model"
_PICKLE = "a PyTorch pickle, which could run code and is never opened; get a GGUF file"
_KINDS: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (re.compile(rb"lmgg|fmgg|tjgg|algg|ggml|ggmf|ggjt|ggla"), _OLD_FORMAT),
    (re.compile(rb"PK\x03\x04|\x80[\x02-\x05]"), _PICKLE),
    (
        re.compile(rb"\s*<(!doctype|html|head|\?xml)", re.IGNORECASE),
        "a web page that was saved instead of the model; download it again",
    ),
    (
        re.compile(rb".{8}\{", re.DOTALL),
        "a safetensors file, which this version does not read; get a GGUF file",
    ),
)
"""What a file is that begins so."""


def open_checkpoint(path: Path) -> CheckpointSource:
    """Open the checkpoint at ``path``: a file, any part of a split one, or a folder that has one.

    Raises:
        CheckpointUnreadable: missing, empty, foreign, damaged or incomplete.
        UnsupportedFormat: a tensor is stored in a format that is not decoded.
    """
    found = _model_file(path) if path.is_dir() else path
    check_kind(found)
    try:
        return open_gguf(found)
    except OSError as error:
        raise _unreadable(found, error) from error


def check_kind(path: Path) -> None:
    """Refuse a file that is not GGUF, in a sentence that says what it is instead."""
    head = _head(path)
    if head[:4] == MAGIC:
        return
    raise _refuse(path, _foreign(head))


def model_files(folder: Path) -> tuple[Path, ...]:
    """The GGUF files of a folder, sorted, one a checkpoint: of a split one its lowest part."""
    kept: dict[tuple[str, int], Path] = {}
    for path in sorted(folder.glob("*.gguf")):
        part = part_number(path)
        kept.setdefault((part[0], part[2]) if part else (path.name, 0), path)
    return tuple(kept.values())


def _model_file(folder: Path) -> Path:
    files = model_files(folder)
    if len(files) == 1:
        return files[0]
    if files:
        raise _refuse(folder, f"the folder holds {len(files)} models; name one of them")
    if (folder / "config.json").is_file():
        if any(folder.glob("*.safetensors")):
            sentence = "folders of safetensors are not read by this version; get a GGUF file"
        else:
            sentence = "the folder has a config.json, but the weights are missing"
        raise _refuse(folder, sentence)
    raise _refuse(folder, "the folder holds no model")


def _head(path: Path) -> bytes:
    try:
        if not path.exists():
            raise _refuse(path, "there is no such file")
        if not path.is_file():
            raise _refuse(path, "this is not a regular file")
        with path.open("rb") as stream:
            return stream.read(_HEAD_BYTES)
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> CheckpointUnreadable:
    return _refuse(path, f"the file cannot be read ({error.strerror or type(error).__name__})")


def _refuse(path: Path, sentence: str) -> CheckpointUnreadable:
    label = file_label(path)
    return CheckpointUnreadable(f"{label}: {sentence}", file=label)


def _foreign(head: bytes) -> str:
    """What a file is that does not begin with GGUF's magic number."""
    if not head:
        return "the file is empty"
    if head.startswith(b"version https://git-lfs"):
        size = _LFS_SIZE.search(head)
        real = f" of {int(size[1])} bytes" if size else ""
        return f"this is a Git LFS pointer; the real file{real} was not fetched"
    for pattern, kind in _KINDS:
        if pattern.match(head):
            return f"this is {kind}"
    if not any(head):
        return "the file begins with zeros only; its download was not finished"
    return f"this is no model file; it begins with {head[:8]!r}, not with {MAGIC!r}"
