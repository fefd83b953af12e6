"""The committed libraries are those of the committed sources; no compiler is needed to see it.

`python -m kernels.cpu.build --check` builds both again and compares every byte; it takes minutes
and is run by hand after a change of sources.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kernels.cpu import build

LIBRARIES = sorted(build.TARGETS)


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_committed_library_carries_the_digest_of_its_sources(name: str) -> None:
    """Read as bytes, so that each system checks the other's library too."""
    assert build.source_digest().encode() in (build.HERE / name).read_bytes(), (
        f"{name} is not built from these sources: python -m kernels.cpu.build"
    )


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sources in a folder of their own, where they may be changed."""
    folder = tmp_path / "native"
    shutil.copytree(build.SOURCES, folder)
    monkeypatch.setattr(build, "SOURCES", folder)
    return folder


def test_the_digest_does_not_depend_on_where_the_sources_lie(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = build.source_digest()
    monkeypatch.setattr(build, "SOURCES", build.HERE / "native")
    assert moved == build.source_digest()
    assert (copied / "pool.c").exists()


def test_line_ends_of_a_checkout_do_not_change_the_digest(copied: Path) -> None:
    before = build.source_digest()
    text = (copied / "pool.c").read_bytes()
    (copied / "pool.c").write_bytes(text.replace(b"\n", b"\r\n"))
    assert build.source_digest() == before


@pytest.mark.parametrize("name", ["pool.c", "lanes.h"])
def test_any_changed_source_changes_the_digest(copied: Path, name: str) -> None:
    """The control."""
    before = build.source_digest()
    with (copied / name).open("a") as file:
        file.write(" ")
    assert build.source_digest() != before


def test_a_changed_flag_or_a_new_file_changes_the_digest(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {build.source_digest()}
    (copied / "new.h").touch()
    found.add(build.source_digest())
    monkeypatch.setattr(build, "STRICT", (*build.STRICT, "-ffast-math"))
    found.add(build.source_digest())
    assert len(found) == 3


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """In place of zig: writes what it was asked for into the file it should make."""
    calls: list[list[str]] = []

    def ran(command: list[str], **_: object) -> None:
        calls.append(command)
        Path(command[command.index("-o") + 1]).write_text(" ".join(command[3:]))

    monkeypatch.setattr(subprocess, "run", ran)
    return calls


def test_a_check_names_every_library_that_differs(
    compiler: list[list[str]], tmp_path: Path
) -> None:
    assert build.differing(tmp_path) == list(build.TARGETS)
    assert len(compiler) == len(build.TARGETS) * (len(build.UNITS) + 1)
    assert all("-ffp-contract=off" in call for call in compiler if "-c" in call)


def test_only_linux_objects_are_position_independent(
    compiler: list[list[str]], tmp_path: Path
) -> None:
    for name, target in build.TARGETS.items():
        build.build(name, target, tmp_path)
    compiled = [call for call in compiler if "-c" in call]
    targets = [call[call.index("-target") + 1] for call in compiled]
    assert {"linux" in target for target in targets} == {True, False}
    assert [("-fPIC" in call) for call in compiled] == ["linux" in each for each in targets]
