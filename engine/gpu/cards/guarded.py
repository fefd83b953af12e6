"""A runner whose device's trouble is told in the engine's own errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from engine.cache.lane import Lane
from engine.errors import DeviceLost, MemoryRefused
from engine.runner import Runner
from engine.sampling.rows import Candidates, LogitRows

DEVICE_ERRORS: Final = ("CUDA error", "CUDA driver error", "Triton Error [CUDA]", "cuBLAS error")
"""How the messages of torch and Triton begin when the device failed; nothing on it works then."""


class GuardedRunner:
    """Implements ``Runner`` over another. Owns nothing."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    @property
    def grid_rows(self) -> int:
        """See ``Runner``."""
        return self._runner.grid_rows

    @property
    def chunk_rows(self) -> int:
        """See ``Runner``."""
        return self._runner.chunk_rows

    @property
    def shares_steps(self) -> bool:
        """See ``Runner``."""
        return self._runner.shares_steps

    def prompt_chunk(
        self, lane: Lane, ids: Sequence[int], position: int, *, wants_logits: bool = True
    ) -> torch.Tensor:
        """See ``Runner.prompt_chunk``; raises DeviceLost or MemoryRefused."""
        with device_trouble():
            return self._runner.prompt_chunk(lane, ids, position, wants_logits=wants_logits)

    def step(
        self, lanes: Sequence[Lane], ids: Sequence[int], positions: Sequence[int]
    ) -> torch.Tensor:
        """See ``Runner.step``; raises DeviceLost or MemoryRefused."""
        with device_trouble():
            return self._runner.step(lanes, ids, positions)

    def step_rows(
        self, lanes: Sequence[Lane], ids: Sequence[int], positions: Sequence[int]
    ) -> LogitRows:
        """See ``Runner.step_rows``; raises DeviceLost or MemoryRefused, and so do the rows."""
        with device_trouble():
            return GuardedRows(self._runner.step_rows(lanes, ids, positions))


class GuardedRows:
    """Implements ``LogitRows`` over others. Owns nothing."""

    def __init__(self, rows: LogitRows) -> None:
        self._rows = rows

    def candidates(self, row: int) -> Candidates | None:
        """See ``LogitRows``."""
        with device_trouble():
            return self._rows.candidates(row)

    def whole(self, row: int) -> NDArray[np.float32]:
        """See ``LogitRows``."""
        with device_trouble():
            return self._rows.whole(row)


@contextmanager
def device_trouble() -> Iterator[None]:
    """Tell what torch and Triton raise when the device is full or failed.

    Raises:
        MemoryRefused: another program took memory; what was there still works.
        DeviceLost: the device failed, and with it all that this process has on it.
    """
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise MemoryRefused(
            "The GPU has no memory left, as another program took some: close it, or load the model "
            "again."
        ) from error
    except RuntimeError as error:
        first_line = str(error).partition("\n")[0]
        if not first_line.startswith(DEVICE_ERRORS):
            raise
        raise DeviceLost(f"The GPU failed ({first_line}).") from error
