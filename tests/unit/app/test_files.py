"""Small files and blobs: the old content or the new, whatever fails in between."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from app.chat.storage.blobs import BlobFolder
from app.errors import StoreDamaged, StoreError, StoreFull
from app.files import write_atomically


def test_a_file_is_replaced_whole_and_private(tmp_path: Path) -> None:
    file = tmp_path / "f"
    write_atomically(file, b"old")
    write_atomically(file, b"new")
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("call", ["os.fsync", "pathlib.Path.replace"])
def test_a_fault_on_the_way_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    file = tmp_path / "f"
    write_atomically(file, b"old")
    monkeypatch.setattr(call, failing(errno.ENOSPC))
    with pytest.raises(OSError, match="fault"):
        write_atomically(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def failing(number: int) -> Callable[..., None]:
    def fail(*_arguments: object) -> None:
        raise OSError(number, "a fault")

    return fail


def test_a_blob_is_found_by_its_content(tmp_path: Path) -> None:
    blobs = BlobFolder(tmp_path / "blobs")
    digest = blobs.put(b"an image")
    assert digest == hashlib.sha256(b"an image").hexdigest()
    assert blobs.put(b"an image") == digest
    assert blobs.get(digest) == b"an image"
    files = [f for f in (tmp_path / "blobs").rglob("*") if f.is_file()]
    assert [stat.S_IMODE(f.stat().st_mode) for f in files] == [0o600]
    assert stat.S_IMODE((tmp_path / "blobs").stat().st_mode) == 0o700


def test_a_damaged_blob_is_told_and_put_again(tmp_path: Path) -> None:
    blobs = BlobFolder(tmp_path)
    digest = blobs.put(b"an image")
    (tmp_path / digest[:2] / digest[2:]).write_bytes(b"torn")
    with pytest.raises(StoreDamaged):
        blobs.get(digest)
    blobs.put(b"an image")
    assert blobs.get(digest) == b"an image"


@pytest.mark.parametrize("name", ["", "..", "../../passwd", "A" * 64, "a" * 63, "a" * 64 + "\n"])
def test_only_a_digest_names_a_blob(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match="no digest"):
        BlobFolder(tmp_path).get(name)


def test_a_blob_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        BlobFolder(tmp_path).get("a" * 64)


@pytest.mark.parametrize(("number", "kind"), [(errno.ENOSPC, StoreFull), (errno.EIO, StoreError)])
def test_a_full_disk_keeps_no_half_blob(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[StoreError]
) -> None:
    blobs = BlobFolder(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing(number))
        with pytest.raises(kind):
            blobs.put(b"an image")
    assert [f for f in tmp_path.rglob("*") if f.is_file()] == []
    assert blobs.get(blobs.put(b"an image")) == b"an image"
