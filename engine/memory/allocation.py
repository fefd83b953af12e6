"""Allocation under a lease: what the device refuses becomes a sentence, and the lease is refunded.

The plan counts every byte, so a device that has none left was filled by another program since it
was measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from engine.errors import MemoryRefused
from engine.memory.leases import Lease
from engine.memory.sizes import gib, pool_words


@contextmanager
def allocating(lease: Lease, device: torch.device) -> Iterator[None]:
    """Allocate what a lease reserved, then commit it; where that fails it is closed.

    Raises:
        MemoryRefused: the device has no such memory; numbers: pool, needed_bytes, free_bytes.
    """
    needed = dict(lease.bytes_by_pool)
    try:
        yield
    except torch.OutOfMemoryError as error:
        lease.close()
        pool = next(iter(needed))
        raise taken_meanwhile(lease.owner, pool, needed[pool], _free_bytes(device)) from error
    except BaseException:
        lease.close()
        raise
    lease.commit()


def taken_meanwhile(owner: str, pool: str, needed_bytes: int, free_bytes: int) -> MemoryRefused:
    """The error for memory that was free when it was planned, and is not any more."""
    needs = "need" if owner.endswith("s") else "needs"
    return MemoryRefused(
        f"{owner} {needs} {gib(needed_bytes, up=True)} GiB of {pool_words(pool)}; "
        f"{gib(free_bytes)} GiB are free, as another program took some meanwhile.",
        pool=pool,
        needed_bytes=needed_bytes,
        free_bytes=free_bytes,
    )


def _free_bytes(device: torch.device) -> int:
    if device.type != "cuda":
        return 0
    return int(torch.cuda.mem_get_info(device)[0])
