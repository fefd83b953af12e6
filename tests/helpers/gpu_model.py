"""One model on the GPU's kernels, with pages and states full of NaN.

On a processor the kernels run in Triton's interpreter, which whoever imports this has asked for.
"""

from __future__ import annotations

from contextlib import ExitStack

import torch

from engine.cache.formats import KvFormat
from engine.cache.lane import Lane
from engine.checkpoint.source import CheckpointSource
from engine.config import EngineConfig
from engine.gpu.build import build_gpu_runner
from engine.models.spec import ModelSpec
from engine.runner import RunnerParts
from tests.helpers.native_model import RAM, Side

CHUNK_ROWS = 256


class GpuSide(Side):
    """A runner over Triton's kernels; a context manager that frees what it took."""

    def __init__(
        self,
        source: CheckpointSource,
        rows: int,
        *,
        kv_format: KvFormat = KvFormat.BF16,
        streams: int = 4,
        spec: ModelSpec | None = None,
        device: str = "cpu",
        chunk_rows: int = CHUNK_ROWS,
        lanes: int = 2,
    ) -> None:
        super().__init__(source, rows, kv_format, spec, lanes=lanes, device=device)
        self.stack = ExitStack()
        parts = RunnerParts(
            spec=self.spec,
            source=source,
            kv=self.kv,
            recurrent=self.recurrent,
            config=EngineConfig(source.files[0].parent),
            context_tokens=rows,
            streams=streams,
            ledger=self.ledger,
            progress=lambda _done, _total: None,
            resources=self.stack,
        )
        self.runner = build_gpu_runner(parts, torch.device(device), RAM, chunk_rows)

    def close(self) -> None:
        """Free everything; may be repeated."""
        self.stack.close()
        super().close()


def chunked(side: GpuSide, lane: Lane, ids: list[int], ends: list[int]) -> torch.Tensor:
    """[row, vocabulary] of every row of a prompt cut at ``ends``, the last one its length."""
    parts, first = [], lane.length
    for end in ends:
        lane.extend(end - first)
        parts.append(side.runner.all_logits(lane, ids[first:end], first))
        first = end
    return torch.cat(parts)
