"""Pools of the native library for the kernel tests: every instruction set that is here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from kernels.cpu.library import Library, Pool
from kernels.cpu.records import Isa

ISAS = [isa for isa in Isa if Isa.NONE < isa <= Library().best_isa()]


@pytest.fixture(scope="session", params=ISAS, ids=lambda isa: isa.name.lower())
def pools(request: pytest.FixtureRequest) -> Iterator[dict[int, Pool]]:
    """Pools of 1, 2 and 3 threads for one instruction set, by threads."""
    library = Library()
    with (
        Pool(library, 1, request.param) as one,
        Pool(library, 2, request.param) as two,
        Pool(library, 3, request.param) as three,
    ):
        yield {1: one, 2: two, 3: three}


@pytest.fixture(autouse=True)
def one_torch_thread() -> Iterator[None]:
    """torch's threads would only spin: everything here is small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def pool(pools: dict[int, Pool]) -> Pool:
    """A pool of one thread: nothing to wait for where the machine is busy."""
    return pools[1]
