"""A model out of wheels has its final name only when it is whole and the expected one."""

from __future__ import annotations

import hashlib
import io
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from installer import models
from installer.models import PackedModel
from installer.places import Places
from installer.problems import SetupProblem
from installer.report import Report
from tests.helpers.tiny_wheels import make_wheel

PARTS = (b"GGUF first part, ", b"second part, ", b"third.")


class Shelf:
    """A checkout's lock and a folder of wheels that pip is pointed to, and nothing else."""

    def __init__(self, folder: Path) -> None:
        self.where = Places(folder / "checkout", False)
        self.wheels = folder / "wheels"
        self.target = folder / "models"
        self.where.lock.mkdir(parents=True)
        self.wheels.mkdir()

    def fill(self, parts: tuple[bytes, ...]) -> PackedModel:
        lines = []
        for number, part in enumerate(parts):
            member = f"part{number}/data/model.gguf.part{number}"
            lines.append(make_wheel(self.wheels, f"part{number}", "1.0", {member: part}))
        (self.where.lock / "parts.txt").write_text("".join(lines))
        whole = b"".join(parts)
        return PackedModel(
            title="tiny model",
            file="model.gguf",
            lock="parts.txt",
            members=tuple(f"model.gguf.part{number}" for number in range(len(parts))),
            sha256=hashlib.sha256(whole).hexdigest(),
            size_bytes=len(whole),
        )

    def provide(self, model: PackedModel) -> Path:
        return models.provide(model, self.target, self.where, Report(io.StringIO()))

    def left(self) -> list[str]:
        return sorted(path.name for path in self.target.rglob("*"))


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    found = Shelf(tmp_path)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(found.wheels))
    return found


def refusal(shelf: Shelf, model: PackedModel) -> str:
    with pytest.raises(SetupProblem) as caught:
        shelf.provide(model)
    assert shelf.left() == []
    return caught.value.sentence


def test_parts_are_joined_in_order_and_nothing_else_stays(shelf: Shelf) -> None:
    path = shelf.provide(shelf.fill(PARTS))
    assert path.read_bytes() == b"".join(PARTS)
    assert shelf.left() == ["model.gguf"]


def test_a_model_that_is_there_is_not_fetched_again(shelf: Shelf) -> None:
    model = shelf.fill(PARTS)
    shelf.provide(model)
    shutil.rmtree(shelf.wheels)
    assert shelf.provide(model).is_file()


def test_a_file_of_another_size_is_fetched_anew(shelf: Shelf) -> None:
    model = shelf.fill(PARTS)
    shelf.target.mkdir()
    (shelf.target / "model.gguf").write_bytes(b"cut")
    assert shelf.provide(model).read_bytes() == b"".join(PARTS)


def test_another_content_is_thrown_away(shelf: Shelf) -> None:
    model = shelf.fill(PARTS)
    shelf.fill((b"another", *PARTS[1:]))
    assert "SHA-256" in refusal(shelf, model)


def test_a_wheel_that_the_lock_does_not_accept_is_not_opened(shelf: Shelf) -> None:
    model = shelf.fill(PARTS)
    lock = shelf.where.lock / "parts.txt"
    lock.write_text(f"{lock.read_text()[:-9]}00000000\n")
    sentence = refusal(shelf, model)
    assert "part2==1.0" in sentence
    assert "SHA-256 differs" in sentence


def test_a_missing_part_is_told(shelf: Shelf) -> None:
    model = shelf.fill(PARTS)
    (shelf.wheels / "part1-1.0-py3-none-any.whl").unlink()
    assert "No source of pip has part1==1.0" in refusal(shelf, model)


def test_a_full_disk_is_told_before_anything_is_fetched(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(100, 99, 1))
    assert "0 MB free" in refusal(shelf, shelf.fill(PARTS))


def test_a_folder_that_cannot_be_made_is_told(shelf: Shelf) -> None:
    model = shelf.fill(PARTS)
    shelf.target.write_text("a file in the way")
    with pytest.raises(SetupProblem, match="could not be written"):
        shelf.provide(model)


def test_what_a_killed_fetch_left_behind_is_removed(shelf: Shelf) -> None:
    model = shelf.fill(PARTS)
    stray = shelf.target / ".fetching-abc"
    stray.mkdir(parents=True)
    (stray / "half.whl").write_bytes(b"half")
    shelf.provide(model)
    assert shelf.left() == ["model.gguf"]
