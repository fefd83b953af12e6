"""The stamp in the environment: which lock files, torch build and Python it was made from.

It is removed before anything is changed and written when everything is in, so an environment
without one is half made, and one whose stamp agrees with the lock needs no further look.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Stamp:
    """What an environment holds.

    Attributes:
        backend: the torch build, "cpu" or "cuda".
        locks: lock file name -> SHA-256 of what was installed from it.
        root: the checkout that the launcher and the path file point to.
        base_python: the interpreter that the environment was made with.
        qt_complete: every system library that Qt wants was found.
    """

    backend: str
    locks: dict[str, str]
    root: str
    base_python: str
    qt_complete: bool = False


def read(path: Path) -> Stamp | None:
    """The stamp at ``path``; None when there is none or it cannot be read."""
    try:
        return Stamp(**json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def write(path: Path, stamp: Stamp) -> None:
    """Write the stamp in one move, so that it is whole or absent."""
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(asdict(stamp), indent=1, sort_keys=True) + "\n", "utf-8")
    temporary.replace(path)


def digests(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Lock file name -> SHA-256 of its content now."""
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


def agrees(stamp: Stamp, wanted: dict[str, str], root: Path) -> bool:
    """Whether the environment holds at least what ``wanted`` asks for, for this checkout."""
    return (
        all(stamp.locks.get(name) == digest for name, digest in wanted.items())
        and stamp.root == str(root)
        and Path(stamp.base_python).is_file()
    )
