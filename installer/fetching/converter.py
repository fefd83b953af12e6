"""Fetches llama.cpp's converter and vocabularies, which the tests compare with.

They lie in the source archive of llama-cpp-python. pip brings it, so that its index, proxy and
certificates count, and checks its SHA-256. pip wants to know a source archive's name and version
before it keeps the file, and would run the archive's build program to learn them; ``BACKEND``
stands in for that program, so nothing out of the archive runs here.
"""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from installer.places import Places
from installer.problems import SetupProblem, pip_news, pip_problem
from installer.report import Report
from installer.system.children import run

TITLE = "converter of llama.cpp"
LOCK = "test-converter.txt"
INNER = "vendor/llama.cpp"
TAKEN = ("convert_hf_to_gguf.py", "conversion", "gguf-py", "models", "LICENSE")
MARK = "archive.txt"
ARCHIVE_BYTES = 76_589_250
NEEDED_BYTES = 600_000_000
SCRATCH = ".fetching-"
BACKEND = '''\
"""Says what pip asks of a build program, from the archive's own PKG-INFO; builds nothing."""

from pathlib import Path


def get_requires_for_build_wheel(config_settings=None):
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    lines = Path("PKG-INFO").read_text("utf-8").splitlines()
    found = dict(line.split(": ", 1) for line in lines[:20] if ": " in line)
    name = f"{found['Name'].replace('-', '_')}-{found['Version']}.dist-info"
    folder = Path(metadata_directory, name)
    folder.mkdir()
    text = f"Metadata-Version: 2.1\\nName: {found['Name']}\\nVersion: {found['Version']}\\n"
    (folder / "METADATA").write_text(text, "utf-8")
    return name
'''


def provide_converter(folder: Path, where: Places, report: Report) -> Path:
    """The converter's folder, ``folder`` / llama.cpp, fetched when it is not there yet.

    Raises:
        SetupProblem: no network, no space, or not the archive that was expected.
    """
    target, lock = folder / "llama.cpp", (where.lock / LOCK).read_text("utf-8")
    if _mark(target) == lock:
        return target
    with report.step(f"Fetching the {TITLE} ({ARCHIVE_BYTES / 1e6:.0f} MB)"):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for cut_off in folder.glob(f"{SCRATCH}*"):
                shutil.rmtree(cut_off, ignore_errors=True)
            _check_space(folder)
            with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=folder) as scratch:
                archive = _download(where, Path(scratch), report)
                found = _unpack(archive, Path(scratch) / "unpacked")
                (found / MARK).write_text(lock, "utf-8")
                shutil.rmtree(target, ignore_errors=True)
                found.rename(target)
        except OSError as error:
            raise SetupProblem(
                f"The {TITLE} could not be written to {folder}: {error.strerror or error}."
            ) from error
    return target


def _mark(target: Path) -> str | None:
    """What a whole folder was made from, None where there is none."""
    try:
        return (target / MARK).read_text("utf-8")
    except OSError:
        return None


def _check_space(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < NEEDED_BYTES:
        raise SetupProblem(
            f"The disk of {folder} has {free / 1e6:.0f} MB free and {NEEDED_BYTES / 1e6:.0f} MB "
            f"are needed for the {TITLE}; make room and start the same command again."
        )


def _download(where: Places, scratch: Path, report: Report) -> Path:
    def on_line(line: str) -> None:
        if (news := pip_news(line)) is not None:
            report.detail(news)

    stand_in = scratch / "backend" / "scikit_build_core"
    stand_in.mkdir(parents=True)
    (stand_in / "__init__.py").touch()
    (stand_in / "build.py").write_text(BACKEND, "utf-8")
    kept = scratch / "kept"
    order: list[str | Path] = [
        sys.executable, "-m", "pip", "download", "--no-input", "--no-deps", "--require-hashes",
        "--no-build-isolation", "--no-binary", ":all:", "--progress-bar", "off",
        "--disable-pip-version-check", "-r", where.lock / LOCK, "-d", kept,
    ]  # fmt: skip
    ended = run(order, on_line, {**os.environ, "PYTHONPATH": str(stand_in.parent)})
    if ended.code != 0:
        raise pip_problem(ended.output, f"the {TITLE}")
    (archive,) = kept.glob("*.tar.gz")
    return archive


def _unpack(archive: Path, folder: Path) -> Path:
    """Take what is needed out of the archive, links and all else left; returns its folder."""
    with tarfile.open(archive) as packed:
        members = [member for member in packed if member.isfile() and _is_taken(member.name)]
        packed.extractall(folder, members, filter="data")
    found = [path / INNER for path in folder.glob("*") if (path / INNER / TAKEN[0]).is_file()]
    if len(found) != 1:
        raise SetupProblem(f"The archive that came for the {TITLE} holds no {TAKEN[0]}.")
    return found[0]


def _is_taken(name: str) -> bool:
    _, _, inner = name.partition(f"/{INNER}/")
    return inner.split("/", 1)[0] in TAKEN
