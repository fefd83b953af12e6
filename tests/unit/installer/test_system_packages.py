"""System packages are installed where that is allowed, and else named with the whole command."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from installer.problems import SetupProblem
from installer.report import Report
from installer.system import debian
from installer.system.qt_libraries import DEBIAN_PACKAGES, not_found

LDD = """\
\tlinux-vdso.so.1 (0x00007ffd)
\tlibxcb-cursor.so.0 => not found
\tlibQt6Gui.so.6 => not found
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)
\tlibEGL.so.1 => not found
"""


class Machine:
    """A PATH with programs of our own; each call is written to a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls = folder / "calls"

    def add(self, name: str, script: str) -> None:
        path = self.folder / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> {self.calls}\n{script}\n')
        path.chmod(0o755)

    def called(self) -> list[str]:
        return self.calls.read_text().splitlines() if self.calls.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = Machine(tmp_path)
    (tmp_path / "env").symlink_to("/usr/bin/env")
    (tmp_path / "sh").symlink_to("/bin/sh")
    return found


def user(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: number)


def refusal() -> str:
    with pytest.raises(SetupProblem) as caught:
        debian.install(["liba", "libb"], "The window", Report(io.StringIO()))
    assert "\n" not in caught.value.sentence
    return caught.value.sentence


def test_without_apt_nothing_is_tried(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    user(monkeypatch, 0)
    assert "no apt-get" in refusal()
    assert machine.called() == []


def test_without_sudo_the_command_is_named(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    user(monkeypatch, 1000)
    machine.add("apt-get", "exit 0")
    assert "`sudo apt-get install liba libb`" in refusal()
    assert machine.called() == []


def test_a_sudo_that_wants_a_password_is_not_pressed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    user(monkeypatch, 1000)
    machine.add("apt-get", "exit 0")
    machine.add("sudo", "exit 1")
    assert "sudo asks for a password or refuses" in refusal()
    assert machine.called() == ["sudo -n true"]


def test_a_sudo_without_a_password_installs(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    user(monkeypatch, 1000)
    machine.add("apt-get", "exit 0")
    machine.add("sudo", 'shift; exec "$@"')
    (machine.folder / "true").symlink_to("/bin/true")
    debian.install(["liba"], "The window", Report(io.StringIO()))
    assert machine.called()[-1] == "apt-get install -y --no-install-recommends liba"


def test_root_asks_apt_again_after_an_update(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    user(monkeypatch, 0)
    machine.add("apt-get", f'[ "$1" = update ] && exit 0; [ -e {machine.folder}/twice ] && exit 0; '
                f": > {machine.folder}/twice; exit 100")  # fmt: skip
    debian.install(["liba"], "The window", Report(io.StringIO()))
    assert [line.split()[1] for line in machine.called()] == ["install", "update", "install"]


def test_a_failure_of_apt_is_told_with_its_own_reason(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    user(monkeypatch, 0)
    machine.add("apt-get", "echo 'E: Unable to locate package liba'; exit 100")
    assert "Unable to locate package liba" in refusal()


def test_a_source_that_cannot_be_reached_is_told_as_network(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    user(monkeypatch, 0)
    machine.add("apt-get", "echo 'E: Temporary failure resolving deb.example'; exit 100")
    assert "check the network" in refusal()


def test_missing_libraries_are_read_from_ldd_and_qts_own_left_out() -> None:
    assert not_found(LDD.splitlines()) == {"libxcb-cursor.so.0", "libEGL.so.1"}
    assert not_found(LDD.replace("not found", "/lib/x (0x1)").splitlines()) == set()


def test_the_packages_for_missing_libraries_are_known() -> None:
    assert DEBIAN_PACKAGES["libxcb-cursor.so.0"] == "libxcb-cursor0"
    assert all(".so" in name for name in DEBIAN_PACKAGES)
