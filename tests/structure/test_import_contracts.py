"""Each import contract of pyproject.toml is broken once, in a copy, to see that it bites."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.structure.sources import ROOT

PACKAGES = ("app", "engine", "kernels", "installer")
# contract -> (file, the import that it must refuse)
BREAKS = {
    "layers": ("kernels/checks.py", "import engine.config"),
    "app-without-torch": ("app/text.py", "import torch"),
    "engine-without-qt": ("engine/failure.py", "import PySide6.QtCore"),
    "protocol-only": ("app/text.py", "import engine.config"),
    "engine-inside": ("engine/errors.py", "import engine.loop"),
    "policy-is-pure": ("engine/states/marks.py", "import torch"),
    "no-installer-inside": ("engine/failure.py", "import installer.places"),
}
LINT = "from importlinter.cli import lint_imports_command as lint; lint()"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The product without its tests, in a folder of its own."""
    folder = tmp_path_factory.mktemp("copy")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=lambda _, names: unwanted(names))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def unwanted(names: list[str]) -> set[str]:
    return {n for n in names if "." in n and not n.endswith(".py")} | {"__pycache__"}


def lint(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LINT, "--no-cache", *arguments],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_every_contract_of_the_project_has_a_break_here() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    named = {line.split('"')[1] for line in text.splitlines() if line.startswith("id = ")}
    assert named == set(BREAKS)


def test_the_untouched_copy_keeps_every_contract(copy: Path) -> None:
    ended = lint(copy)
    assert ended.returncode == 0, ended.stdout
    assert f"{len(BREAKS)} kept, 0 broken" in ended.stdout


@pytest.mark.parametrize("contract", sorted(BREAKS))
def test_a_contract_bites_when_it_is_broken(copy: Path, contract: str) -> None:
    file, line = BREAKS[contract]
    path = copy / file
    kept = path.read_text("utf-8")
    path.write_text(f"{kept}\n{line}\n", "utf-8")
    try:
        ended = lint(copy, "--contract", contract)
    finally:
        path.write_text(kept, "utf-8")
    assert ended.returncode == 1, ended.stdout
    assert "0 kept, 1 broken" in ended.stdout


def test_the_app_reaches_torch_through_no_other_module(copy: Path) -> None:
    path = copy / "engine/protocol/parts.py"
    kept = path.read_text("utf-8")
    path.write_text(f"{kept}\nimport torch\n", "utf-8")
    try:
        ended = lint(copy, "--contract", "app-without-torch")
    finally:
        path.write_text(kept, "utf-8")
    assert ended.returncode == 1
    assert "engine.protocol.parts" in ended.stdout
