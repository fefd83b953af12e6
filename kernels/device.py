"""What a launch must know of the GPU it runs on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final

import torch

LEAST_CAPABILITY: Final = (8, 0)
"""Of a GPU that runs these kernels; older ones multiply with torch."""

KIB: Final = 1024
SHARED_BYTES: Final = MappingProxyType(
    {
        (8, 0): 163 * KIB,
        (8, 6): 99 * KIB,
        (8, 9): 99 * KIB,
        (9, 0): 227 * KIB,
        (10, 0): 227 * KIB,
        (12, 0): 99 * KIB,
    }
)
"""Capability -> the most shared memory of one program, of those that every kernel compiles for."""


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """One GPU.

    Attributes:
        name: as the driver says it.
        capability: such as (9, 0).
        shared_bytes: the most shared memory that one program can have.
        multiprocessors: how many run programs side by side.
    """

    name: str
    capability: tuple[int, int]
    shared_bytes: int
    multiprocessors: int


@cache
def gpu_facts(index: int) -> GpuFacts:
    """Facts of one device of this process, asked of the driver once."""
    found = torch.cuda.get_device_properties(index)
    return GpuFacts(
        name=found.name,
        capability=(found.major, found.minor),
        shared_bytes=found.shared_memory_per_block_optin,  # type: ignore[attr-defined]
        multiprocessors=found.multi_processor_count,
    )
