"""What the engine runs on, asked once: the processor's name, what it can, how many threads.

Imports no torch, so that the handshake is quick.
"""

from __future__ import annotations

import math
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from engine.config import Compute
from kernels.cpu.library import Library, LibraryUnavailable

CPU_FACTS: Final = Path("/proc/cpuinfo")
CPU_QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")
TELLING_FLAGS: Final = (
    "avx2",
    "fma",
    "f16c",
    "avx_vnni",
    "avx512f",
    "avx512bw",
    "avx512_vnni",
    "avx512_bf16",
    "amx_bf16",
)


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """One processor; ``capabilities`` are those of its flags that decide which path is quick."""

    name: str
    capabilities: tuple[str, ...]
    threads: int


def device_facts(
    threads: int | None, cpu_facts: Path = CPU_FACTS, cpu_quota: Path = CPU_QUOTA
) -> DeviceFacts:
    """The processor of this process; ``threads`` None takes the physical cores it may use."""
    name, flags = _processor(cpu_facts)
    return DeviceFacts(
        name=name or platform.processor() or platform.machine(),
        capabilities=tuple(flag.replace("_", "-") for flag in TELLING_FLAGS if flag in flags),
        threads=threads or _usable_cores(cpu_quota),
    )


def products_path(compute: Compute) -> str:
    """What computes products on this processor, in words for people."""
    if compute is Compute.FLOAT32:
        return "products in float32, as asked"
    try:
        return f"products by the native library for {Library().best_isa().name}"
    except LibraryUnavailable as error:
        return f"products by torch in float32: {error}"


def _processor(file: Path) -> tuple[str, frozenset[str]]:
    """Name and flags as Linux gives them, empty elsewhere."""
    name, flags = "", frozenset[str]()
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return name, flags
    for line in lines:
        key, _, value = (part.strip() for part in line.partition(":"))
        if key == "model name":
            name = value
        elif key == "flags":
            flags = frozenset(value.split())
        elif not line:
            break
    return name, flags


def _usable_cores(cpu_quota: Path) -> int:
    """Physical cores, bounded by the process's affinity and its cgroup's quota."""
    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        cores = min(cores, len(os.sched_getaffinity(0)))
    try:
        quota, period = cpu_quota.read_text().split()
    except (OSError, ValueError):
        return cores
    if quota != "max":
        cores = min(cores, math.ceil(int(quota) / int(period)))
    return max(1, cores)
