"""Capacities of the host's pools, measured: RAM under its cgroup limits, and disk.

Knows nothing of what the engine holds; ``engine.memory.ledger`` does the accounts. A limit that is
there but cannot be read counts as nothing free, so that a wrong reading refuses instead of
overcommitting.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from engine.memory.measured import anonymous_bytes

RAM: Final = "ram"
PINNED: Final = "pinned"
DISK: Final = "disk"
GPU: Final = "gpu"
"""Goes before the number of a GPU's pool, such as "gpu0"."""

MEBIBYTE: Final = 1024 * 1024
MINIMUM_HEADROOM_BYTES: Final = 512 * MEBIBYTE
HEADROOM_SHARE: Final = 16
GPU_MINIMUM_HEADROOM_BYTES: Final = 1024 * MEBIBYTE
GPU_HEADROOM_SHARE: Final = 10
PINNED_SHARE: Final = 2
"""Pinned memory may be one part in so many of RAM, and of what of it the engine may take."""

CGROUP_ROOT: Final = Path("/sys/fs/cgroup")
CGROUP_MEMBERSHIP: Final = Path("/proc/self/cgroup")


@dataclass(frozen=True, slots=True)
class PoolReading:
    """One pool as the operating system or the driver reports it, in bytes.

    Attributes:
        others_bytes: what neither this process holds nor is free.
        label: what it is, for people, such as a GPU's name.
    """

    name: str
    total_bytes: int
    free_bytes: int
    others_bytes: int = 0
    label: str = ""


@dataclass(frozen=True, slots=True)
class _CgroupFiles:
    """The names under which one cgroup version keeps a memory limit."""

    limit: str
    usage: str
    inactive_file: str
    deductions: tuple[str, ...]


_VERSION_1: Final = _CgroupFiles(
    limit="memory.limit_in_bytes",
    usage="memory.usage_in_bytes",
    inactive_file="total_inactive_file",
    deductions=("total_dirty", "total_writeback", "total_mapped_file"),
)
_VERSION_2: Final = _CgroupFiles(
    limit="memory.max",
    usage="memory.current",
    inactive_file="inactive_file",
    deductions=("file_dirty", "file_writeback", "file_mapped"),
)


def headroom_bytes(reading: PoolReading) -> int:
    """What is left to other programs: more on a GPU, which also draws the screen.

    Nothing of pinned memory, whose bytes are RAM's: that has a headroom of its own.
    """
    if reading.name == PINNED:
        return 0
    if reading.name.startswith(GPU):
        return max(GPU_MINIMUM_HEADROOM_BYTES, reading.total_bytes // GPU_HEADROOM_SHARE)
    return max(MINIMUM_HEADROOM_BYTES, reading.total_bytes // HEADROOM_SHARE)


def capacity_bytes(
    reading: PoolReading, held_bytes: int = 0, *, spends_headroom: bool = False
) -> int:
    """What the engine may hold in a pool in all: min(total, held + free) less the headroom.

    Args:
        held_bytes: physical bytes that the engine holds there already.
        spends_headroom: nothing is left to other programs, because a person asked for it.
    """
    headroom = 0 if spends_headroom else headroom_bytes(reading)
    return max(0, min(reading.total_bytes, held_bytes + reading.free_bytes) - headroom)


def read_ram(
    root: Path = CGROUP_ROOT,
    membership: Path = CGROUP_MEMBERSHIP,
    own: Callable[[], int | None] = anonymous_bytes,
) -> PoolReading:
    """RAM that this process can use: the machine's, bounded by every cgroup above the process."""
    machine = psutil.virtual_memory()
    total, free = int(machine.total), int(machine.available)
    for limit_bytes, limit_free_bytes in _cgroup_limits(root, membership):
        total = min(total, limit_bytes)
        free = min(free, limit_free_bytes)
    return PoolReading(RAM, total, free, max(0, total - free - (own() or 0)), "RAM")


def pinned_of(ram: PoolReading) -> PoolReading:
    """The share of RAM that may be pinned; its bytes are RAM's too (``Ledger``'s ``behind``)."""
    return PoolReading(
        PINNED,
        ram.total_bytes // PINNED_SHARE,
        capacity_bytes(ram) // PINNED_SHARE,
        label="RAM that a GPU copies from",
    )


def read_disk(folder: Path) -> PoolReading:
    """The file system that holds ``folder`` or its nearest existing parent."""
    while not folder.exists():
        folder = folder.parent
    usage = shutil.disk_usage(folder)
    others = max(0, usage.total - usage.free)
    return PoolReading(DISK, usage.total, usage.free, others, _mount_point(folder))


def _cgroup_limits(root: Path, membership: Path) -> Iterator[tuple[int, int]]:
    """(limit, free below it) of each cgroup from the process's own up to the root."""
    for hierarchy, path, files in _memory_cgroups(membership):
        folder = root / hierarchy
        parts = [part for part in path.split("/") if part not in ("", "..")]
        for depth in range(len(parts), -1, -1):
            level = folder.joinpath(*parts[:depth])
            limit = _limit(level / files.limit)
            if limit is not None:
                yield limit, _free_under(limit, level, files)


def _memory_cgroups(membership: Path) -> Iterator[tuple[str, str, _CgroupFiles]]:
    """(folder under the root, path, file names) of the memory controllers of this process."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            yield "memory", path, _VERSION_1
        elif number == "0" and not controllers:
            yield "", path, _VERSION_2


def _limit(file: Path) -> int | None:
    """The limit in bytes; None where there is none, 0 where it cannot be understood."""
    try:
        text = file.read_text().strip()
    except FileNotFoundError:
        return None
    except OSError:
        return 0
    if text == "max":
        return None
    return int(text) if text.isdecimal() else 0


def _free_under(limit: int, level: Path, files: _CgroupFiles) -> int:
    """Bytes free below a limit; only clean, unmapped, inactive file cache is credited."""
    try:
        usage = int((level / files.usage).read_text())
        pairs = (line.split() for line in (level / "memory.stat").read_text().splitlines())
        statistics = {name: int(value) for name, value in pairs}
    except (OSError, ValueError):
        return 0
    cache = statistics.get(files.inactive_file, 0)
    cache -= sum(statistics.get(name, 0) for name in files.deductions)
    return max(0, limit - usage + max(0, cache))


def _mount_point(folder: Path) -> str:
    """The root of the file system that holds an existing folder."""
    place = folder.resolve()
    while not place.is_mount() and place != place.parent:
        place = place.parent
    return str(place)
