"""Measured capacities respect cgroup limits of both versions and fail closed."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from engine.memory.pools import (
    MEBIBYTE,
    PoolReading,
    capacity_bytes,
    read_disk,
    read_ram,
)

GIBIBYTE = 1024 * MEBIBYTE


def _ram(root: Path, membership: Path) -> tuple[int, int]:
    found = read_ram(root, membership)
    return found.total_bytes, found.free_bytes


def _membership(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "membership"
    file.write_text(text)
    return file


def _level(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)


@pytest.mark.parametrize(
    ("total", "free", "held", "capacity"),
    [
        (4 * GIBIBYTE, 3 * GIBIBYTE, 0, 3 * GIBIBYTE - 512 * MEBIBYTE),
        (64 * GIBIBYTE, 60 * GIBIBYTE, 0, 56 * GIBIBYTE),
        (64 * GIBIBYTE, 60 * GIBIBYTE, 2 * GIBIBYTE, 58 * GIBIBYTE),
        (64 * GIBIBYTE, 60 * GIBIBYTE, 8 * GIBIBYTE, 60 * GIBIBYTE),
        (GIBIBYTE, 100 * MEBIBYTE, 0, 0),
    ],
)
def test_capacity_is_what_is_free_and_held_less_the_headroom(
    total: int, free: int, held: int, capacity: int
) -> None:
    assert capacity_bytes(PoolReading("ram", total, free), held) == capacity


def test_without_a_cgroup_the_machine_is_the_limit(tmp_path: Path) -> None:
    reading = read_ram(tmp_path, tmp_path / "missing")
    assert reading.total_bytes == psutil.virtual_memory().total
    assert 0 < reading.free_bytes <= reading.total_bytes


def test_version_2_limits_of_every_level_count_and_clean_cache_is_credited(tmp_path: Path) -> None:
    membership = _membership(tmp_path, "0::/user/app\n")
    _level(tmp_path, {})
    _level(tmp_path / "user", {"memory.max": "1000\n", "memory.current": "900", "memory.stat": ""})
    _level(
        tmp_path / "user/app",
        {
            "memory.max": "2000",
            "memory.current": "1950",
            "memory.stat": "inactive_file 400\nfile_dirty 20\nfile_writeback 10\nfile_mapped 70\n",
        },
    )
    assert _ram(tmp_path, membership) == (1000, 100)
    (tmp_path / "user/memory.max").write_text("max")
    assert _ram(tmp_path, membership) == (2000, 350)


def test_version_1_limits_count(tmp_path: Path) -> None:
    membership = _membership(tmp_path, "5:cpu:/x\n4:memory:/box\n")
    _level(
        tmp_path / "memory/box",
        {
            "memory.limit_in_bytes": "3000",
            "memory.usage_in_bytes": "2900",
            "memory.stat": "total_inactive_file 50\ntotal_mapped_file 60\n",
        },
    )
    assert _ram(tmp_path, membership) == (3000, 100)


@pytest.mark.parametrize(
    "files",
    [
        {"memory.max": "nonsense", "memory.current": "1", "memory.stat": ""},
        {"memory.max": "5000", "memory.stat": ""},
        {"memory.max": "5000", "memory.current": "1"},
        {"memory.max": "5000", "memory.current": "1", "memory.stat": "inactive_file many"},
    ],
)
def test_a_limit_that_cannot_be_read_leaves_nothing_free(
    tmp_path: Path, files: dict[str, str]
) -> None:
    membership = _membership(tmp_path, "0::/\n")
    _level(tmp_path, files)
    assert read_ram(tmp_path, membership).free_bytes == 0


def test_a_limit_file_that_is_no_file_leaves_nothing_free(tmp_path: Path) -> None:
    membership = _membership(tmp_path, "0::/\n")
    (tmp_path / "memory.max").mkdir()
    assert _ram(tmp_path, membership) == (0, 0)


def test_the_disk_of_a_folder_to_be_made_is_its_parents(tmp_path: Path) -> None:
    there, later = read_disk(tmp_path), read_disk(tmp_path / "not" / "yet")
    assert there.total_bytes == later.total_bytes > 0
