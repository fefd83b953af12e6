"""Where the time of one step or one prompt chunk goes, kernel by kernel."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._C._autograd import DeviceType

REPEATS = 5


@dataclass(frozen=True, slots=True)
class KernelTime:
    """All launches of one kernel in one call."""

    name: str
    launches: float
    microseconds: float


def kernel_table(call: Callable[[], object]) -> dict[str, Any]:
    """Kernels by time, their sum, and the call's own time on the clock: microseconds of one call.

    A kernel that starts while the one before still runs, and waits for it, is charged only what
    passes after that one's end, so that the sum is the time in which the card was busy. ``idle_us``
    is what is left of the clock's time: gaps, and whatever the host does while the card waits.
    """
    call()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(REPEATS):
        call()
    torch.cuda.synchronize()
    wall = 1e6 * (time.perf_counter() - began) / REPEATS
    rows = own_times(profiled(call))
    busy = sum(row.microseconds for row in rows)
    return {
        "wall_us": wall,
        "kernels_us": busy,
        "idle_us": wall - busy,
        "launches": sum(row.launches for row in rows),
        "kernels": rows,
    }


def profiled(call: Callable[[], object]) -> list[tuple[str, float, float]]:
    """Name, begin and end in microseconds of everything that ran on the card."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities, acc_events=True) as profile:
        for _ in range(REPEATS):
            call()
        torch.cuda.synchronize()
    return [
        (each.name, each.time_range.start, each.time_range.end)
        for each in profile.events()
        if each.device_type == DeviceType.CUDA
    ]


def own_times(events: Sequence[tuple[str, float, float]]) -> list[KernelTime]:
    """Each kernel's launches and its own time, of one call; the longest first."""
    launches, last = Counter[str](), float("-inf")
    own: dict[str, float] = defaultdict(float)
    for name, begin, end in sorted(events, key=lambda event: event[2]):
        launches[name] += 1
        own[name] += max(0.0, end - max(begin, last))
        last = max(last, end)
    rows = [KernelTime(name, launches[name] / REPEATS, own[name] / REPEATS) for name in launches]
    return sorted(rows, key=lambda row: -row.microseconds)


def print_table(title: str, table: dict[str, Any], lines: int = 25) -> None:
    """For a person."""
    print(
        f"{title}: {table['wall_us']:.0f} us on the clock, {table['kernels_us']:.0f} us in "
        f"{table['launches']:.0f} kernels"
    )
    for row in table["kernels"][:lines]:
        share = 100 * row.microseconds / table["kernels_us"]
        print(f"  {row.microseconds:9.1f} us {share:5.1f} % {row.launches:6.0f} x {row.name[:90]}")
