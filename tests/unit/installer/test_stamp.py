"""A stamp is believed only when it is whole and agrees with lock, checkout and interpreter."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from installer import stamp
from installer.stamp import Stamp


def made(root: Path) -> Stamp:
    return Stamp("cpu", {"run.txt": "1", "torch-cpu.txt": "2"}, str(root), sys.executable)


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    stamp.write(tmp_path / "s.json", made(tmp_path))
    assert stamp.read(tmp_path / "s.json") == made(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["s.json"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"backend": "cpu"}', b"\xff\xfe"])
def test_a_torn_or_foreign_stamp_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "s.json").write_bytes(content)
    assert stamp.read(tmp_path / "s.json") is None


def test_a_missing_stamp_is_none(tmp_path: Path) -> None:
    assert stamp.read(tmp_path / "s.json") is None


def test_more_than_was_asked_for_agrees(tmp_path: Path) -> None:
    assert stamp.agrees(made(tmp_path), {"run.txt": "1"}, tmp_path)


def test_a_changed_lock_a_moved_checkout_and_a_lost_python_do_not_agree(tmp_path: Path) -> None:
    good = made(tmp_path)
    assert not stamp.agrees(good, {"run.txt": "other"}, tmp_path)
    assert not stamp.agrees(good, {"run.txt": "1", "test.txt": "3"}, tmp_path)
    assert not stamp.agrees(good, {"run.txt": "1"}, tmp_path / "moved")
    lost = replace(good, base_python=str(tmp_path / "python3"))
    assert not stamp.agrees(lost, {"run.txt": "1"}, tmp_path)


def test_a_digest_changes_with_one_byte_of_the_lock(tmp_path: Path) -> None:
    (tmp_path / "run.txt").write_text("a==1\n")
    before = stamp.digests(tmp_path, ["run.txt"])
    (tmp_path / "run.txt").write_text("a==2\n")
    assert stamp.digests(tmp_path, ["run.txt"]) != before
