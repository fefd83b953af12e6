"""Where the time of one step or one prompt chunk goes, kernel by kernel."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

REPEATS = 5


@dataclass(frozen=True, slots=True)
class KernelTime:
    """All launches of one kernel in one call."""

    name: str
    launches: float
    microseconds: float


def kernel_table(call: Callable[[], object]) -> dict[str, Any]:
    """Kernels by time, their sum, and the call's own time on the clock: microseconds of one call.

    ``host_us`` is what is left of the clock's time: starting work, gaps between kernels, waiting.
    """
    call()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(REPEATS):
        call()
    torch.cuda.synchronize()
    wall = 1e6 * (time.perf_counter() - began) / REPEATS
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiled:
        for _ in range(REPEATS):
            call()
        torch.cuda.synchronize()
    rows = [
        KernelTime(each.key, each.count / REPEATS, each.self_device_time_total / REPEATS)
        for each in profiled.key_averages()
        if each.self_device_time_total > 0
    ]
    rows.sort(key=lambda row: -row.microseconds)
    busy = sum(row.microseconds for row in rows)
    return {
        "wall_us": wall,
        "kernels_us": busy,
        "host_us": wall - busy,
        "launches": sum(row.launches for row in rows),
        "kernels": rows,
    }


def print_table(title: str, table: dict[str, Any], lines: int = 25) -> None:
    """For a person."""
    print(
        f"{title}: {table['wall_us']:.0f} us on the clock, {table['kernels_us']:.0f} us in "
        f"{table['launches']:.0f} kernels"
    )
    for row in table["kernels"][:lines]:
        share = 100 * row.microseconds / table["kernels_us"]
        print(f"  {row.microseconds:9.1f} us {share:5.1f} % {row.launches:6.0f} x {row.name[:90]}")
