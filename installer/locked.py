"""What the lock offers: the files of an installation, and the Pythons that torch is there for."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

TORCH_FILE = re.compile(r"^# torch-\S+?-(cp\d+)-\S+-(\S+)\.whl$", re.MULTILINE)
PYTORCH_INDEX = "https://download.pytorch.org/whl/cpu"


@dataclass(frozen=True, slots=True)
class Part:
    """One lock file: what a person calls it, and where else its packages may be found.

    Attributes:
        name: the file in installer/lock.
        title: for progress and messages.
        spare_index: an index to ask when pip's configured sources lack it; "" for none.
    """

    name: str
    title: str
    spare_index: str = ""


def parts(backend: str, *, tests: bool, windows: bool) -> tuple[Part, ...]:
    """The lock files of one installation, in the order of installing."""
    spare = PYTORCH_INDEX if backend == "cpu" and not windows else ""
    found = (Part(f"torch-{backend}.txt", "torch", spare), Part("run.txt", "packages"))
    return (*found, Part("test.txt", "test tools")) if tests else found


def torch_builds(lock: Path, backend: str, *, windows: bool) -> tuple[str, ...]:
    """The Python tags (cp311, ...) that the lock has a torch build for on this system."""
    mark = "win_amd64" if windows else "manylinux"
    text = (lock / f"torch-{backend}.txt").read_text("utf-8")
    return tuple(python for python, platform in TORCH_FILE.findall(text) if mark in platform)


def this_python() -> str:
    """The tag of the running Python, such as cp311."""
    return f"cp{sys.version_info.major}{sys.version_info.minor}"


def requirements(text: str) -> dict[str, str]:
    """Package name -> version, of one lock file's text."""
    return dict(re.findall(r"^([a-z0-9.-]+)==([^\s;]+)", text, re.MULTILINE))
