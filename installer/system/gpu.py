"""Is there an NVIDIA GPU that torch's CUDA 13 build can use? Asked without torch, once.

AMD and Intel GPUs run as CPU for now.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from installer.system.children import run

KERNEL_MODULE = Path("/proc/driver/nvidia/version")
OLDEST_DRIVER = 580
OLDEST_CAPABILITY = 7.5


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as the driver names it; the capability is None where only the module was seen."""

    name: str
    driver: int
    capability: float | None


@dataclass(frozen=True, slots=True)
class Choice:
    """Which build of torch to install, and why in one sentence for the person."""

    backend: str
    reason: str


def find_gpu() -> Gpu | None:
    """The first NVIDIA GPU, from nvidia-smi or else from the loaded kernel module."""
    answer = run(
        ["nvidia-smi", "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader"]
    )
    if answer.code == 0:
        return parse_smi(answer.output)
    try:
        return parse_module(KERNEL_MODULE.read_text("utf-8", "replace"))
    except OSError:
        return None


def parse_smi(output: str) -> Gpu | None:
    """Read nvidia-smi's first line, "name, 580.65.06, 8.9"; None when it is not such a line."""
    found = re.match(r"(.+), (\d+)\.[\d.]+, (\d+\.\d+)\s*$", output.split("\n", 1)[0])
    return Gpu(found[1], int(found[2]), float(found[3])) if found else None


def parse_module(text: str) -> Gpu | None:
    """Read /proc/driver/nvidia/version, which names the driver but no GPU."""
    found = re.search(r"Kernel Module.*?\s(\d{3,})\.\d+", text)
    return Gpu("NVIDIA GPU", int(found[1]), None) if found else None


def choose(gpu: Gpu | None, *, cuda_locked: bool) -> Choice:
    """The build for this machine; CUDA only where the GPU, its driver and the lock allow it."""
    if gpu is None:
        return Choice("cpu", "No NVIDIA GPU was found: torch's CPU build is taken.")
    if gpu.driver < OLDEST_DRIVER:
        return Choice(
            "cpu",
            f"{gpu.name}: driver {gpu.driver} found, {OLDEST_DRIVER} or newer needed: "
            "torch's CPU build is taken.",
        )
    if gpu.capability is not None and gpu.capability < OLDEST_CAPABILITY:
        return Choice(
            "cpu",
            f"{gpu.name}: compute capability {gpu.capability} found, {OLDEST_CAPABILITY} or newer "
            "needed: torch's CPU build is taken.",
        )
    if not cuda_locked:
        return Choice(
            "cpu",
            f"{gpu.name} found, but the lock has no CUDA build of torch for this system and "
            "Python: torch's CPU build is taken.",
        )
    return Choice("cuda", f"{gpu.name} found: torch's CUDA build is taken (about 3 GB).")
