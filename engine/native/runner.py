"""``Runner`` on the native CPU library."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.cache.kv import KvArena
from engine.cache.lane import Lane
from engine.cache.recurrent import RecurrentArena
from engine.errors import InvariantBroken
from engine.models.native_limits import NATIVE_GRID_ROWS
from engine.models.spec import ModelSpec
from engine.native.buffers import NativeBuffers, NativeSizes
from engine.native.operations import NativeParts
from engine.native.program import NativePrograms, RowArrays
from engine.native.weights import StoredWeights
from engine.sampling.rows import LogitRows, WholeRows
from kernels.cpu.library import Pool


class NativeRunner:
    """Prompt chunks and shared steps on the CPU; used from the engine thread only.

    Owns the scratch and the programs; the pool, the weights and the pages are its maker's.
    """

    def __init__(
        self,
        spec: ModelSpec,
        weights: StoredWeights,
        kv: KvArena,
        pool: Pool,
        sizes: NativeSizes,
        *,
        recurrent: RecurrentArena | None = None,
    ) -> None:
        self._groups = len(spec.groups)
        self._buffers = NativeBuffers(sizes)
        parts = NativeParts(spec, weights, kv, recurrent, self._buffers)
        self._programs = NativePrograms(parts, pool)

    @property
    def grid_rows(self) -> int:
        """Small: the bits of prompt rows are the same in any chunk."""
        return NATIVE_GRID_ROWS

    @property
    def chunk_rows(self) -> int:
        """What the scratch is sized for."""
        return self._buffers.sizes.rows

    @property
    def shares_steps(self) -> bool:
        """Yes: each row of a step runs the same instructions however many there are."""
        return True

    def prompt_chunk(
        self, lane: Lane, ids: Sequence[int], position: int, *, wants_logits: bool = True
    ) -> torch.Tensor:
        """See ``Runner.prompt_chunk``."""
        arrays = self._body(lane, ids, position)
        if not wants_logits:
            return torch.empty(0)
        return self._logits(arrays, len(ids) - 1)

    def all_logits(self, lane: Lane, ids: Sequence[int], position: int) -> torch.Tensor:
        """A prompt chunk whose every row's logits are returned: [len(ids), vocabulary] float32."""
        arrays = self._body(lane, ids, position)
        return torch.stack([self._logits(arrays, row) for row in range(len(ids))])

    def step(
        self, lanes: Sequence[Lane], ids: Sequence[int], positions: Sequence[int]
    ) -> torch.Tensor:
        """See ``Runner.step``."""
        if not 0 < len(lanes) <= self._buffers.sizes.step_rows:
            raise InvariantBroken(f"A step of {len(lanes)} rows was asked for.")
        arrays = RowArrays(lanes, ids, positions, self._groups)
        self._programs.step.run(arrays.rows(0, len(lanes)))
        return self._buffers.logits[: len(lanes)]

    def step_rows(
        self, lanes: Sequence[Lane], ids: Sequence[int], positions: Sequence[int]
    ) -> LogitRows:
        """See ``Runner.step_rows``: they lie on the host."""
        return WholeRows(self.step(lanes, ids, positions).numpy())

    def _body(self, lane: Lane, ids: Sequence[int], position: int) -> RowArrays:
        count = len(ids)
        if position % NATIVE_GRID_ROWS or not 0 < count <= self.chunk_rows:
            raise InvariantBroken(f"A chunk of {count} rows begins at {position}, off the grid.")
        positions = range(position, position + count)
        arrays = RowArrays([lane] * count, ids, positions, self._groups)
        self._programs.body.run(arrays.rows(0, count))
        return arrays

    def _logits(self, arrays: RowArrays, row: int) -> torch.Tensor:
        """The logits of one row of the chunk whose body ran; rows are asked for in order."""
        buffers = self._buffers
        self._programs.tail.run(arrays.rows(row, 1))
        buffers.residual[0].copy_(buffers.residual[row])
        buffers.outputs[0].copy_(buffers.outputs[row])
        buffers.branches.sums[0].copy_(buffers.branches.sums[row])
        self._programs.end.run(arrays.rows(0, 1))
        return buffers.logits[0].clone()
