"""Makes the virtual environment from the lock, and repairs one that is half made."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from installer import locked, stamp
from installer.places import Places
from installer.problems import SPACE, SetupProblem, not_found, pip_news, pip_problem
from installer.report import Report
from installer.system import debian, gpu
from installer.system.children import run

GIB = 1 << 30
NEEDED_BYTES = {"cpu": 3 * GIB // 2, "cuda": 9 * GIB}
TEST_BYTES = 2 * GIB + GIB // 4
SELF_TEST = "import jinja2, keyring, msgspec, numpy, platformdirs, psutil, tokenizers, torch"


def prepare(where: Places, report: Report, *, tests: bool, backend: str | None) -> None:
    """Bring the environment to what the lock says; quick when it is there already.

    Args:
        tests: install the test tools too.
        backend: the torch build that the person asked for, or None to keep or choose one.

    Raises:
        SetupProblem: with one sentence for each way in which this can fail.
    """
    if is_ready(where, tests=tests, backend=backend):
        return
    old = stamp.read(where.stamp)
    chosen = backend or (old.backend if old else choose_backend(where, report))
    make(where, report, old, tests=tests, backend=chosen)


def is_ready(where: Places, *, tests: bool, backend: str | None) -> bool:
    """Whether the environment holds what the lock says; only looks at the stamp."""
    old = stamp.read(where.stamp)
    if old is None or backend not in (None, old.backend):
        return False
    names = [part.name for part in locked.parts(old.backend, tests=tests, windows=where.windows)]
    return stamp.agrees(old, stamp.digests(where.lock, names), where.root)


def choose_backend(where: Places, report: Report) -> str:
    """Look for a GPU and choose the build of torch; says why."""
    builds = locked.torch_builds(where.lock, "cuda", windows=where.windows)
    choice = gpu.choose(gpu.find_gpu(), cuda_locked=locked.this_python() in builds)
    report.say(choice.reason)
    return choice.backend


def make(
    where: Places, report: Report, old: stamp.Stamp | None, *, tests: bool, backend: str
) -> None:
    """Make or complete the environment; the stamp is written last."""
    check_build(where, backend)
    with_tests = tests or (old is not None and "test.txt" in old.locks)
    parts = locked.parts(backend, tests=with_tests, windows=where.windows)
    check_space(where, NEEDED_BYTES[backend] + (TEST_BYTES if with_tests else 0))
    where.stamp.unlink(missing_ok=True)
    with report.step("Python environment"):
        make_venv(where, report, fresh=old is not None and not same_base(old))
        drop_half_installed(where.packages)
    for part in parts:
        with report.step(f"Installing {part.title}"):
            install(where, part, report)
    with report.step("Checking what was installed"):
        remove_strays(where, parts)
        link(where)
        self_test(where)
    made = stamp.Stamp(
        backend=backend,
        locks=stamp.digests(where.lock, [part.name for part in parts]),
        root=str(where.root),
        base_python=base_python(),
    )
    stamp.write(where.stamp, made)


def note_qt_complete(where: Places, made: stamp.Stamp) -> None:
    """Remember that Qt's system libraries are all there, so that a start need not look again."""
    stamp.write(where.stamp, replace(made, qt_complete=True))


def base_python() -> str:
    """The interpreter that environments are made with, links resolved."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def same_base(old: stamp.Stamp) -> bool:
    """Whether the environment was made with the Python that runs now."""
    return old.base_python == base_python()


def check_build(where: Places, backend: str) -> None:
    """Refuse a Python for which the lock has no build of torch, before anything is fetched."""
    builds = locked.torch_builds(where.lock, backend, windows=where.windows)
    if locked.this_python() not in builds:
        known = ", ".join(f"3.{tag[3:]}" for tag in builds) or "no Python"
        raise SetupProblem(
            f"The lock has torch's {backend.upper()} build for Python {known} on this system, and "
            f"this is Python {sys.version_info.major}.{sys.version_info.minor}; "
            "start the command with one of those."
        )


def check_space(where: Places, needed_bytes: int) -> None:
    """Refuse to begin what the disk cannot hold; an environment that exists counts as there."""
    if where.packages.exists():
        needed_bytes //= 2
    free_bytes = shutil.disk_usage(where.root).free
    if free_bytes < needed_bytes:
        raise SetupProblem(
            f"The disk of {where.root} has {free_bytes / GIB:.1f} GiB free and about "
            f"{needed_bytes / GIB:.1f} GiB are needed; make room and start the same command again."
        )


def make_venv(where: Places, report: Report, *, fresh: bool) -> None:
    """Make the environment, or keep one whose interpreter and pip work."""
    if not fresh and where.packages.is_dir() and works(where):
        return
    if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        debian.install([f"python{version}-venv"], "Python's venv module", report)
    ended = run([sys.executable, "-m", "venv", "--clear", where.environment], report.detail)
    if ended.code == 0:
        return
    if SPACE.search(ended.output):
        raise SetupProblem("The disk is full: there was no space left for the Python environment.")
    last = (ended.output.strip().splitlines() or ["no reason given"])[-1]
    raise SetupProblem(f"Python could not make an environment in {where.environment}: {last}")


def works(where: Places) -> bool:
    """Whether the environment's interpreter starts and has pip."""
    return run([where.python, "-m", "pip", "--version"]).code == 0


def drop_half_installed(packages: Path) -> None:
    """Forget packages whose installation was cut off, so that pip lays them anew.

    pip writes a package's RECORD last; without one it still takes the package for installed.
    """
    for folder in packages.glob("*.dist-info"):
        if not (folder / "RECORD").is_file():
            shutil.rmtree(folder)


def install(where: Places, part: locked.Part, report: Report) -> None:
    """Install one lock file by pip in hash mode: its configured sources first, then the spare."""
    order: list[str | Path] = [
        where.python, "-m", "pip", "install", "--no-input", "--no-deps", "--require-hashes",
        "--only-binary", ":all:", "--progress-bar", "off", "--no-compile",
        "--disable-pip-version-check", "-r", where.lock / part.name,
    ]  # fmt: skip

    def on_line(line: str) -> None:
        if (news := pip_news(line)) is not None:
            report.detail(news)

    ended = run(order, on_line)
    if ended.code != 0 and part.spare_index and not_found(ended.output):
        report.detail(f"not in pip's configured sources, asking {part.spare_index}")
        ended = run([*order, "--index-url", part.spare_index], on_line)
    if ended.code != 0:
        raise pip_problem(ended.output, part.title)


def remove_strays(where: Places, parts: tuple[locked.Part, ...]) -> None:
    """Uninstall packages that the lock does not name, left over from an older lock."""
    wanted = {"pip", "setuptools"}
    for part in parts:
        wanted |= set(locked.requirements((where.lock / part.name).read_text("utf-8")))
    names = {
        re.sub(r"[-_.]+", "-", folder.name.rsplit("-", 1)[0].removesuffix(".dist-info")).lower()
        for folder in (entry.with_suffix("") for entry in where.packages.glob("*.dist-info"))
    }
    strays = sorted(names - wanted)
    if strays:
        run([where.python, "-m", "pip", "uninstall", "-y", *strays])


def link(where: Places) -> None:
    """Make the checkout importable in the environment, and `hearth` one of its programs."""
    (where.packages / "hearth.pth").write_text(f"{where.root}\n", "utf-8")
    where.launcher.write_text(launcher_text(where), "utf-8")
    where.launcher.chmod(0o755)


def launcher_text(where: Places) -> str:
    """The launcher. -P keeps a folder named `app` in the current directory out of the way."""
    if where.windows:
        return '@"%~dp0python.exe" -P -m app %*\r\n'
    return f'#!/bin/sh\nexec {shlex.quote(str(where.python))} -P -m app "$@"\n'


def self_test(where: Places) -> None:
    """Import what the engine stands on; a package that does not load is told at once."""
    ended = run([where.python, "-P", "-c", SELF_TEST])
    if ended.code != 0:
        shutil.rmtree(where.environment, ignore_errors=True)
        last = (ended.output.strip().splitlines() or ["no reason given"])[-1]
        raise SetupProblem(
            f"What was installed does not load ({last}); the environment was removed, "
            "start the same command again to make it anew."
        )
