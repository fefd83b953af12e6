"""Facts about this machine for ``hearth doctor``: asked gently, each with a time limit.

Nothing here imports torch or Qt; a keyring or a driver is asked in a child process, because both
can hang.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Final

import msgspec
import psutil

CHILD_LIMIT_S: Final = 5.0
PACKAGES: Final = (
    *("torch", "triton", "numpy", "PySide6_Essentials", "tokenizers", "msgspec", "jinja2"),
    *("keyring", "platformdirs"),
)
SHOWN_FLAGS: Final = (
    *("avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512_vnni"),
    *("avx512_bf16", "avx_vnni", "amx_tile", "amx_int8", "amx_bf16"),
)
GPU_QUERY: Final = "name,driver_version,memory.total,memory.free,compute_cap"
KEYRING_PROGRAM: Final = (
    "import keyring; b = keyring.get_keyring(); print(type(b).__module__ + '.' + type(b).__name__)"
)
NO_GPU: Final = "No NVIDIA GPU was found, so the CPU computes; other GPUs are not used for now."


class Disk(msgspec.Struct, frozen=True, kw_only=True):
    """A folder's disk; null where it cannot be asked."""

    folder: str
    free_bytes: int | None
    total_bytes: int | None
    writable: bool


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What was found without the engine."""

    system: str
    python: str
    packages: dict[str, str | None]
    cpu: str
    cpu_flags: tuple[str, ...] | None
    logical_cores: int | None
    physical_cores: int | None
    ram_bytes: int
    ram_free_bytes: int
    gpus: tuple[str, ...]
    gpu_note: str
    keyring: str
    display: str
    disks: tuple[Disk, ...]


def machine(folders: tuple[Path, ...]) -> Machine:
    """Ask the machine; ``folders`` are those whose disks matter."""
    memory = psutil.virtual_memory()
    gpus, note = graphics()
    name, flags = processor()
    return Machine(
        system=platform.platform(),
        python=f"{platform.python_version()} ({sys.executable})",
        packages={package: _version(package) for package in PACKAGES},
        cpu=name,
        cpu_flags=flags,
        logical_cores=psutil.cpu_count(),
        physical_cores=psutil.cpu_count(logical=False),
        ram_bytes=memory.total,
        ram_free_bytes=memory.available,
        gpus=gpus,
        gpu_note=note,
        keyring=keyring_backend(),
        display=display(os.environ, sys.platform),
        disks=tuple(map(disk, folders)),
    )


def graphics() -> tuple[tuple[str, ...], str]:
    """The NVIDIA GPUs with driver and memory, and a sentence that sums it up."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return (), NO_GPU
    done, text = _child((program, f"--query-gpu={GPU_QUERY}", "--format=csv,noheader"))
    lines = tuple(line.strip() for line in text.splitlines() if line.strip())
    if not done:
        return (), f"nvidia-smi is there but failed: {lines[0] if lines else 'no answer'}."
    if not lines:
        return (), NO_GPU
    return lines, f"{len(lines)} NVIDIA GPU{'s' if len(lines) > 1 else ''} found."


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> tuple[str, tuple[str, ...] | None]:
    """The CPU's name and which of the flags that matter it has; None where that is not told."""
    try:
        lines = cpuinfo.read_text("utf-8", "replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine(), None
    pairs = (line.partition(":") for line in lines)
    fields = {key.strip(): value.strip() for key, _, value in pairs}
    flags = set(fields.get("flags", fields.get("Features", "")).split())
    name = fields.get("model name") or platform.processor() or platform.machine()
    return name, tuple(flag for flag in SHOWN_FLAGS if flag in flags)


def keyring_backend() -> str:
    """The class of the keyring that a token would be kept in, or why there is none."""
    done, text = _child((sys.executable, "-c", KEYRING_PROGRAM))
    name = text.strip().splitlines()[-1] if text.strip() else "no answer"
    if not done:
        return f"not usable ({name})"
    if ".fail." in name or ".null." in name:
        return f"none ({name})"
    return name


def display(variables: Mapping[str, str], system: str) -> str:
    """Where a window would open."""
    if system in ("win32", "darwin"):
        return "the system's own"
    if variables.get("WAYLAND_DISPLAY"):
        return f"Wayland ({variables['WAYLAND_DISPLAY']})"
    if variables.get("DISPLAY"):
        return f"X11 ({variables['DISPLAY']})"
    return "none; hearth ask works without one"


def disk(folder: Path) -> Disk:
    """The disk on which ``folder`` is or would be."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    try:
        usage = shutil.disk_usage(there)
    except OSError:
        return Disk(folder=str(folder), free_bytes=None, total_bytes=None, writable=False)
    return Disk(
        folder=str(folder),
        free_bytes=usage.free,
        total_bytes=usage.total,
        writable=os.access(there, os.W_OK),
    )


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _child(command: tuple[str, ...]) -> tuple[bool, str]:
    try:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=CHILD_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, str(error)
    return ended.returncode == 0, ended.stdout.decode("utf-8", "replace")
