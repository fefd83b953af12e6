"""Writes THIRD_PARTY_NOTICES.md: each package of the lock with its version and licence.

Run in an environment that `bootstrap.py test` made::

    .venv/bin/python installer/lock/make_notices.py

`notices.md.in` has the text around them. Licences are read from what the packages say themselves.
What is not installed here (other platforms, CUDA) is declared below, as its metadata has it.
"""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

from installer import locked

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SETS = {
    "run.txt": "To run",
    "torch-cpu.txt": "To run: torch",
    "torch-cuda.txt": "To run with an NVIDIA GPU",
    "test.txt": "For the tests only",
}
NVIDIA = "LicenseRef-NVIDIA-Proprietary"
DECLARED = {
    "colorama": "BSD License",
    "cuda-bindings": "Apache-2.0",
    "cuda-pathfinder": "Apache-2.0",
    "cuda-toolkit": "none stated; a package without files that names the ones below",
    "nvidia-ml-py": "BSD License",
    "nvidia-nvtx": "Apache-2.0",
    "pywin32-ctypes": "BSD-3-Clause",
    "triton": "MIT License",
    "triton-windows": "MIT License",
}


def main() -> int:
    """Write the page; fails on a package whose licence nobody states."""
    parts = []
    for name, title in SETS.items():
        pins = locked.requirements((ROOT / "installer" / "lock" / name).read_text("utf-8"))
        parts.append(f"## {title}\n\n| package | version | licence |\n| --- | --- | --- |\n")
        parts.extend(f"| {pin} | {pins[pin]} | {licence(pin)} |\n" for pin in sorted(pins))
        parts.append("\n")
    page = (HERE / "notices.md.in").read_text("utf-8").replace("{packages}\n", "".join(parts))
    (ROOT / "THIRD_PARTY_NOTICES.md").write_text(page, "utf-8", newline="\n")
    return 0


def licence(name: str) -> str:
    """What a package's own metadata says its licence is."""
    if name in DECLARED:
        return DECLARED[name]
    if name.startswith("nvidia-"):
        return NVIDIA
    try:
        found = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        sys.exit(f"{name} is neither installed nor declared in make_notices.py")
    expression, free_text = (field(found, key) for key in ("License-Expression", "License"))
    stated = expression or from_classifiers(found) or free_text
    if not stated:
        sys.exit(f"{name} states no licence")
    return stated.strip().splitlines()[0]


def field(found: metadata.PackageMetadata, key: str) -> str:
    """One field of a package's metadata, "" when it is not there."""
    return next(iter(found.get_all(key) or ()), "")


def from_classifiers(found: metadata.PackageMetadata) -> str:
    """The licence in a package's classifiers, "" when there is none."""
    stated = [line for line in found.get_all("Classifier") or () if line.startswith("License ::")]
    words = [line.rsplit(" :: ", 1)[-1] for line in stated]
    return ", ".join(word for word in words if word != "OSI Approved")


if __name__ == "__main__":
    sys.exit(main())
