"""The converter out of a source archive is whole, the expected one, and ran nothing on its way."""

from __future__ import annotations

import hashlib
import io
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from installer.fetching.converter import LOCK, provide_converter
from installer.places import Places
from installer.problems import SetupProblem
from installer.report import Report

TOP = "tiny_archive-1.0"
INNER = f"{TOP}/vendor/llama.cpp"
FILES = {
    f"{TOP}/PKG-INFO": b"Metadata-Version: 2.1\nName: tiny-archive\nVersion: 1.0\n\nText: more\n",
    f"{TOP}/pyproject.toml": (
        b'[build-system]\nrequires = []\nbuild-backend = "scikit_build_core.build"\n'
    ),
    f"{INNER}/convert_hf_to_gguf.py": b"print('converter')\n",
    f"{INNER}/conversion/base.py": b"",
    f"{INNER}/models/ggml-vocab-tiny.gguf": b"GGUF",
    f"{INNER}/src/llama.cpp": b"int main;",
    f"{TOP}/setup.py": b"raise SystemExit('built')",
}


class Shelf:
    """A checkout's lock and a folder of archives that pip is pointed to."""

    def __init__(self, folder: Path) -> None:
        self.where = Places(folder / "checkout", False)
        self.archives = folder / "archives"
        self.target = folder / "models"
        self.where.lock.mkdir(parents=True)
        self.archives.mkdir()

    def fill(self, files: Mapping[str, bytes] = FILES) -> None:
        archive = self.archives / f"{TOP}.tar.gz"
        with tarfile.open(archive, "w:gz") as packed:
            for name, content in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                packed.addfile(member, io.BytesIO(content))
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        (self.where.lock / LOCK).write_text(f"tiny-archive==1.0 \\\n    --hash=sha256:{digest}\n")

    def provide(self) -> Path:
        return provide_converter(self.target, self.where, Report(io.StringIO()))

    def held(self) -> list[str]:
        paths = (path for path in self.target.rglob("*") if path.is_file())
        return sorted(path.relative_to(self.target).as_posix() for path in paths)


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    found = Shelf(tmp_path)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(found.archives))
    return found


def test_only_the_converter_and_its_models_are_taken(shelf: Shelf) -> None:
    shelf.fill()
    path = shelf.provide()
    assert path == shelf.target / "llama.cpp"
    assert shelf.held() == [
        "llama.cpp/archive.txt",
        "llama.cpp/conversion/base.py",
        "llama.cpp/convert_hf_to_gguf.py",
        "llama.cpp/models/ggml-vocab-tiny.gguf",
    ]


def test_what_is_there_is_fetched_again_only_when_the_lock_says_another(shelf: Shelf) -> None:
    shelf.fill()
    converter = shelf.provide() / "convert_hf_to_gguf.py"
    shutil.move(shelf.archives, shelf.archives.with_name("away"))
    shelf.provide()
    shutil.move(shelf.archives.with_name("away"), shelf.archives)
    shelf.fill(FILES | {f"{INNER}/convert_hf_to_gguf.py": b"newer"})
    shelf.provide()
    assert converter.read_bytes() == b"newer"


def test_an_archive_that_the_lock_does_not_accept_is_not_unpacked(shelf: Shelf) -> None:
    shelf.fill()
    lock = shelf.where.lock / LOCK
    lock.write_text(f"{lock.read_text()[:-9]}00000000\n")
    with pytest.raises(SetupProblem, match="SHA-256 differs"):
        shelf.provide()
    assert shelf.held() == []


def test_an_archive_without_the_converter_is_told(shelf: Shelf) -> None:
    shelf.fill({name: FILES[name] for name in list(FILES)[:2]})
    with pytest.raises(SetupProblem, match="holds no convert_hf_to_gguf"):
        shelf.provide()
    assert shelf.held() == []


def test_a_link_or_a_path_that_leads_out_is_not_followed(shelf: Shelf, tmp_path: Path) -> None:
    shelf.fill()
    archive = shelf.archives / f"{TOP}.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        for name, content in FILES.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo(f"{INNER}/conversion/out")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
        packed.addfile(link)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    (shelf.where.lock / LOCK).write_text(f"tiny-archive==1.0 --hash=sha256:{digest}\n")
    assert not (shelf.provide() / "conversion" / "out").exists()
