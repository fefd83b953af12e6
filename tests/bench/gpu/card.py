"""What the card can do at most, measured, and which one it is."""

from __future__ import annotations

import importlib.metadata
import subprocess
from typing import Any

import torch

from tests.bench.gpu.timing import timed

COPIED_BYTES = 1 << 30
SIDE = 8192


def measured() -> dict[str, Any]:
    """Name, driver and versions; bytes a second read, and copied; bf16 operations a second."""
    return facts() | {
        "copy_bytes_s": 2 * COPIED_BYTES / _seconds(_copy),
        "read_bytes_s": COPIED_BYTES / _seconds(_read),
        "bf16_flops_s": 2 * SIDE**3 / _seconds(_product),
    }


def facts() -> dict[str, Any]:
    """What a figure is worth nothing without."""
    properties = torch.cuda.get_device_properties(0)
    return {
        "card": properties.name,
        "capability": list(torch.cuda.get_device_capability(0)),
        "multiprocessors": properties.multi_processor_count,
        "memory_bytes": properties.total_memory,
        "driver": _driver(),
        "cuda": torch.version.cuda,
        "torch": torch.__version__,
        "triton": importlib.metadata.version("triton"),
    }


def _seconds(make: Any) -> float:
    return float(timed(make())["median_us"]) / 1e6


def _copy() -> Any:
    source = torch.randn(COPIED_BYTES // 4, device="cuda")
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def _read() -> Any:
    source = torch.randn(COPIED_BYTES // 4, device="cuda")
    found = torch.empty((), device="cuda")
    return lambda: torch.sum(source, dim=0, out=found)


def _product() -> Any:
    left, right = (torch.randn(SIDE, SIDE, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty_like(left)
    return lambda: torch.mm(left, right, out=out)


def _driver() -> str:
    ended = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return ended.stdout.strip().splitlines()[0] if ended.stdout.strip() else "unknown"
