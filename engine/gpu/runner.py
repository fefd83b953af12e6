"""``Runner`` on an NVIDIA GPU, over the kernels of ``kernels/<op>/``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

import torch

from engine.cache.lane import Lane
from engine.errors import InvariantBroken
from engine.gpu.chunk import ChunkOperations
from engine.gpu.drawing import DeviceLogits, find_candidates
from engine.gpu.graphs import StepGraphs
from engine.gpu.layers import ModelWeights
from engine.gpu.names import CANDIDATES, RESIDUAL
from engine.gpu.rows import DeviceRows
from engine.gpu.sizes import STEP_BUCKETS, bucket_of, candidate_room
from engine.gpu.step import Places, StepOperations
from engine.gpu.walk import Added
from engine.gpu.workspace import Workspace
from engine.owner import Owner
from engine.sampling.rows import LogitRows

WARM_ROWS: Final = (1, 16, 17, 33, 64, 65, 128, 129, 256, 300, 512, 1024, 2048, 3000, 4096, 8192)
"""Rows of chunks that are run at load: at least one for each way in which a kernel is launched."""
GRID_ROWS: Final = 64
"""The delta rule computes blocks of so many rows at absolute positions."""


@dataclass(frozen=True, slots=True)
class GpuParts:
    """What a runner is made of; the caller closes all of it after the runner.

    Attributes:
        step, chunk: scratch of both kinds of launches.
        pages: of the longest stream, a page group each.
    """

    model: ModelWeights
    places: Places
    step: Workspace
    chunk: Workspace
    pages: tuple[int, ...]
    chunk_rows: int
    streams: int
    device: torch.device


class GpuRunner(Owner):
    """Prompt chunks and shared steps on one GPU; used from the engine thread only.

    Owns the rows' facts, the recorded steps and the host's copy of logits.
    """

    def __init__(self, parts: GpuParts) -> None:
        self._parts = parts
        on_gpu, most = parts.device.type == "cuda", bucket_of(parts.streams)
        with ExitStack() as stack:
            self._step_rows = stack.enter_context(DeviceRows(most, most, parts.pages, parts.device))
            self._chunk_rows = stack.enter_context(
                DeviceRows(parts.chunk_rows, 1, parts.pages, parts.device)
            )
            self._graphs = stack.enter_context(StepGraphs(self._compute_step, parts.device))
            self._stack = stack.pop_all()
        shape = most, parts.model.spec.vocabulary
        self._logits = torch.empty(shape, pin_memory=on_gpu)
        self._drawn = torch.empty(candidate_room(most), dtype=torch.int32, pin_memory=on_gpu)

    @property
    def grid_rows(self) -> int:
        """See ``GRID_ROWS``; the prompt's kernels give a row the same bits in any company."""
        return GRID_ROWS

    @property
    def chunk_rows(self) -> int:
        """What the scratch is sized for."""
        return self._parts.chunk_rows

    @property
    def shares_steps(self) -> bool:
        """Yes: a row's bits do not depend on its neighbours."""
        return True

    @torch.inference_mode()
    def record(self, progress: Callable[[int, int], None]) -> None:
        """Compile and record every step, and compile what prompt chunks of any length launch.

        Chunks are run over pages and states that nobody holds yet; what they leave there is no
        number that is ever read.
        """
        most = bucket_of(self._parts.streams)
        self._step_rows.show([], [], [])
        self._graphs.record([each for each in STEP_BUCKETS if each <= most], progress)
        if self._parts.device.type == "cuda":
            for rows in (each for each in WARM_ROWS if each <= self.chunk_rows):
                self._chunk_rows.pretend(self._parts.places.kv.page_counts)
                self._last_logits(self._run_chunk(range(rows), 0), rows - 1, rows)
            torch.cuda.synchronize(self._parts.device)

    @torch.inference_mode()
    def prompt_chunk(
        self, lane: Lane, ids: Sequence[int], position: int, *, wants_logits: bool = True
    ) -> torch.Tensor:
        """See ``Runner.prompt_chunk``."""
        added = self._chunk(lane, ids, position)
        if not wants_logits:
            return torch.empty(0)
        return self._fetched(self._last_logits(added, len(ids) - 1, len(ids)))[0].clone()

    @torch.inference_mode()
    def all_logits(self, lane: Lane, ids: Sequence[int], position: int) -> torch.Tensor:
        """A prompt chunk whose every row's logits are returned: [len(ids), vocabulary] float32."""
        added = self._chunk(lane, ids, position)
        count = len(ids)
        ends = (self._last_logits(added, row, count) for row in range(count))
        return torch.cat([logits.to("cpu", copy=True) for logits in ends])

    @torch.inference_mode()
    def step(
        self, lanes: Sequence[Lane], ids: Sequence[int], positions: Sequence[int]
    ) -> torch.Tensor:
        """See ``Runner.step``; on the host, in memory that the next call writes again."""
        self._show(lanes, ids, positions)
        return self._fetched(self._graphs.step(bucket_of(len(lanes))))[: len(lanes)]

    @torch.inference_mode()
    def step_rows(
        self, lanes: Sequence[Lane], ids: Sequence[int], positions: Sequence[int]
    ) -> LogitRows:
        """See ``Runner.step_rows``: candidates are on the host, whole rows on the device."""
        self._show(lanes, ids, positions)
        rows = bucket_of(len(lanes))
        logits = self._graphs.step(rows)
        host = self._drawn[: candidate_room(rows)]
        found = self._parts.step.view(CANDIDATES, tuple(host.shape), torch.int32)
        host.copy_(found, non_blocking=True)
        self._wait()
        return DeviceLogits(logits, host, self._fetched)

    def close(self) -> None:
        """Free the graphs and what they read; may be repeated."""
        self._stack.close()

    def _show(self, lanes: Sequence[Lane], ids: Sequence[int], positions: Sequence[int]) -> None:
        if not 0 < len(lanes) <= self._parts.streams:
            raise InvariantBroken(f"A step of {len(lanes)} rows was asked for.")
        self._step_rows.show(lanes, ids, positions)

    def _compute_step(self, rows: int) -> torch.Tensor:
        """The launches of one step, the candidates of its logits among them."""
        parts = self._parts
        step = StepOperations(parts.model, parts.places, parts.step, self._step_rows, rows)
        logits = step.run()
        find_candidates(logits, parts.step)
        return logits

    def _chunk(self, lane: Lane, ids: Sequence[int], position: int) -> Added:
        count = len(ids)
        if position % GRID_ROWS or not 0 < count <= self.chunk_rows:
            raise InvariantBroken(f"A chunk of {count} rows begins at {position}, off the grid.")
        self._chunk_rows.show([lane], ids, [])
        return self._run_chunk(range(position, position + count), lane.recurrent_slot)

    def _run_chunk(self, rows: range, slot: int | None) -> Added:
        """A chunk whose ids and pages the device has been shown."""
        parts = self._parts
        return ChunkOperations(
            parts.model, parts.places, parts.chunk, self._chunk_rows, rows, slot=slot
        ).run()

    def _last_logits(self, added: Added, row: int, count: int) -> torch.Tensor:
        """Logits of one row of the chunk that was computed last: [1, vocabulary]."""
        parts, hidden = self._parts, self._parts.model.spec.hidden
        end = StepOperations(parts.model, parts.places, parts.step, self._step_rows, 1)
        end.residual.copy_(parts.chunk.view(RESIDUAL, (count, hidden))[row : row + 1])
        gained = added.rows
        return end.logits(
            Added(None if gained is None else gained[row : row + 1], added.norm, added.scale)
        )

    def _fetched(self, logits: torch.Tensor) -> torch.Tensor:
        """Logits on the host; waits for the device."""
        host = self._logits[: len(logits)]
        host.copy_(logits, non_blocking=True)
        self._wait()
        return host

    def _wait(self) -> None:
        if self._parts.device.type == "cuda":
            torch.cuda.current_stream(self._parts.device).synchronize()
