"""Small pieces of making an environment: launchers, half-installed packages, space, builds."""

from __future__ import annotations

import io
import shutil
import subprocess
from collections import namedtuple
from pathlib import Path

import pytest

from installer import environment
from installer.places import Places, places
from installer.problems import SetupProblem
from installer.report import Report

ARGUMENTS = ["two words", "it's", '"quoted"', "$HOME", "*"]


def test_the_launcher_passes_every_argument_on_from_a_folder_with_spaces(tmp_path: Path) -> None:
    where = Places(tmp_path / "a folder with 'signs'", False)
    where.scripts.mkdir(parents=True)
    where.python.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    where.python.chmod(0o755)
    where.launcher.write_text(environment.launcher_text(where))
    where.launcher.chmod(0o755)
    told = subprocess.run(
        [where.launcher, *ARGUMENTS], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert told.stdout.splitlines() == ["-P", "-m", "app", *ARGUMENTS]


def test_an_environment_of_windows_lies_where_windows_puts_it() -> None:
    where = Places(Path("checkout"), True)
    assert where.python == Path("checkout/.venv/Scripts/python.exe")
    assert where.launcher == Path("checkout/.venv/Scripts/hearth.cmd")
    assert where.packages == Path("checkout/.venv/Lib/site-packages")
    assert environment.launcher_text(where) == '@"%~dp0python.exe" -P -m app %*\r\n'


def test_a_package_without_its_record_is_forgotten_and_a_whole_one_stays(tmp_path: Path) -> None:
    for name, files in {"cut": ["METADATA"], "whole": ["METADATA", "RECORD"]}.items():
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        for file in files:
            (folder / file).write_text("")
    environment.drop_half_installed(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["whole-1.0.dist-info"]


def test_too_little_space_is_told_with_both_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, 1 << 30))
    with pytest.raises(SetupProblem, match=r"1\.0 GiB free and about 3\.0 GiB are needed"):
        environment.check_space(Places(tmp_path, False), 3 << 30)
    environment.check_space(Places(tmp_path, False), 1 << 30)


def test_a_python_without_a_build_of_torch_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment.check_build(places(), "cpu")
    monkeypatch.setattr("installer.locked.this_python", lambda: "cp399")
    with pytest.raises(SetupProblem, match=r"CPU build for Python 3\.11"):
        environment.check_build(places(), "cpu")


def test_progress_in_a_log_is_a_line_a_step_and_details_are_rare() -> None:
    stream = io.StringIO()
    report = Report(stream)
    with report.step("Fetching"):
        for number in range(100):
            report.detail(f"part {number}")
    lines = stream.getvalue().splitlines()
    assert lines[0] == "Fetching ..."
    assert lines[-1].startswith("  Fetching: done in ")
    assert len(lines) == 2


def test_a_step_that_fails_says_that_it_stopped() -> None:
    stream = io.StringIO()
    report = Report(stream)
    with pytest.raises(SetupProblem), report.step("Fetching"):
        raise SetupProblem("No.")
    assert stream.getvalue().splitlines()[-1] == "  Fetching: stopped"
