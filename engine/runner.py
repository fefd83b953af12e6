"""What the loop needs of a loaded model, whatever computes it.

A ``Runner`` turns token ids into logits and writes the K and V of each row into the pages that
the row's lane holds. It knows no text, no sampling and no queue. Used from the engine thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol

import torch

from engine.cache.kv import KvArena
from engine.cache.lane import Lane
from engine.cache.recurrent import RecurrentArena
from engine.checkpoint.source import CheckpointSource
from engine.config import EngineConfig
from engine.memory.ledger import Credit
from engine.models.spec import ModelSpec
from engine.sampling.rows import LogitRows


@dataclass(frozen=True, slots=True)
class GpuPlace:
    """The GPU that a model lies on.

    Attributes:
        pool: the ledger's name of its memory.
        chunk_rows: the most rows of one prompt chunk, as planned.
    """

    device: torch.device
    pool: str
    chunk_rows: int


@dataclass(frozen=True, slots=True)
class RunnerParts:
    """What a runner is built from.

    Attributes:
        recurrent: None for a model without recurrent layers.
        context_tokens: the longest stream; scratch is sized for it.
        streams: the most rows of one step.
        ledger: what memory is reserved from; while a model is loaded, that load's envelope.
        progress: called with bytes done and in all while weights are prepared.
        resources: takes over what the runner needs to have closed, in reverse order.
        gpu: None where the processor computes.
    """

    spec: ModelSpec
    source: CheckpointSource
    kv: KvArena
    recurrent: RecurrentArena | None
    config: EngineConfig
    context_tokens: int
    streams: int
    ledger: Credit
    progress: Callable[[int, int], None]
    resources: ExitStack
    gpu: GpuPlace | None = None


class Runner(Protocol):
    """A loaded model on one device."""

    @property
    def grid_rows(self) -> int:
        """Rows at whose multiples a prompt chunk begins and a state may be kept.

        Every partition of a prompt into chunks that begin there gives every row the same bits.
        """

    @property
    def chunk_rows(self) -> int:
        """The most rows of one prompt chunk, a multiple of ``grid_rows``."""

    @property
    def shares_steps(self) -> bool:
        """Whether rows of several streams may share one step without changing a bit."""

    def prompt_chunk(
        self, lane: Lane, ids: Sequence[int], position: int, *, wants_logits: bool = True
    ) -> torch.Tensor:
        """Compute prompt rows ``position .. position + len(ids)`` of one lane.

        ``position`` is a multiple of ``grid_rows``; so is ``len(ids)``, save in the prompt's last
        chunk, and it is at most ``chunk_rows``. The lane already holds pages for every row.

        Args:
            wants_logits: False for a chunk that more prompt follows; it then costs less.

        Returns:
            [vocabulary] float32: the logits of the last row; [0] where they are not wanted.
        """

    def step(
        self, lanes: Sequence[Lane], ids: Sequence[int], positions: Sequence[int]
    ) -> torch.Tensor:
        """Compute one generated row for each lane.

        Returns:
            [len(lanes), vocabulary] float32, valid until the next call.
        """

    def step_rows(
        self, lanes: Sequence[Lane], ids: Sequence[int], positions: Sequence[int]
    ) -> LogitRows:
        """The same as ``step``, logits left where they are until they are asked for.

        A row is one of ``lanes``; valid until the next call.
        """
