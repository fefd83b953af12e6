"""What a file is that does not begin as a checkpoint does: a sentence for each kind.

An old format, a pointer file of Git LFS, a web page saved instead of a download, an empty file.
"""

from __future__ import annotations

import re
from pathlib import Path

from engine.checkpoint.labels import file_label
from engine.errors import CheckpointUnreadable

HEAD_BYTES = 512
_LFS_SIZE = re.compile(rb"size (\d+)")
_OLD_FORMAT = "a GGML file in the old format of 2023; get the GGUF file of this model"
_PICKLE = (
    "a PyTorch pickle, which could run code and is never opened; get a GGUF or safetensors file"
)
_KINDS: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (re.compile(rb"lmgg|fmgg|tjgg|algg|ggml|ggmf|ggjt|ggla"), _OLD_FORMAT),
    # A safetensors header may be as long as the first bytes of a pickle say.
    (re.compile(rb"PK\x03\x04|\x80[\x02-\x05](?!..\0{4}\{)", re.DOTALL), _PICKLE),
    (
        re.compile(rb"\s*<(!doctype|html|head|\?xml)", re.IGNORECASE),
        "a web page that was saved instead of the model; download it again",
    ),
)
"""What a file is that begins so."""


def read_head(path: Path) -> bytes:
    """The file's first bytes.

    Raises:
        CheckpointUnreadable: there is no such file, or it cannot be read.
    """
    try:
        if not path.exists():
            raise refuse(path, "there is no such file")
        if not path.is_file():
            raise refuse(path, "this is not a regular file")
        with path.open("rb") as stream:
            return stream.read(HEAD_BYTES)
    except OSError as error:
        raise unreadable(path, error) from error


def foreign_kind(head: bytes) -> str | None:
    """What a file is that begins so; None where nothing is known of it."""
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
    return None


def refuse(path: Path, sentence: str) -> CheckpointUnreadable:
    """A typed error that names the file."""
    label = file_label(path)
    return CheckpointUnreadable(f"{label}: {sentence}", file=label)


def unreadable(path: Path, error: OSError) -> CheckpointUnreadable:
    """The operating system's error as one of ours."""
    return refuse(path, f"the file cannot be read ({error.strerror or type(error).__name__})")
