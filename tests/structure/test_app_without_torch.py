"""A Python that imports the whole app has loaded neither torch nor a kernel."""

from __future__ import annotations

import subprocess
import sys

from tests.structure.sources import ROOT, tracked

IMPORT_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print(*sorted({name.split(".")[0] for name in sys.modules} & {"torch", "triton", "kernels"}))
"""


def loaded_by(*modules: str) -> list[str]:
    ended = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, *modules],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return ended.stdout.split()


def test_importing_every_module_of_the_app_loads_no_torch() -> None:
    modules = [
        ".".join(path.with_suffix("").parts)
        for path in tracked()
        if path.parts[0] == "app" and path.suffix == ".py" and not path.stem.startswith("__")
    ]
    assert len(modules) > 20
    assert loaded_by(*modules) == []


def test_the_probe_sees_torch_when_it_is_loaded() -> None:
    assert "torch" in loaded_by("torch")
