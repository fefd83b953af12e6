"""One checkpoint on this GPU, called as the engine's loop calls a runner, and what it could do."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import torch

from engine.cache.formats import KvFormat, page_bytes
from engine.cache.host import HostDevice
from engine.cache.kv import KvArena
from engine.cache.lane import Lane, LaneMemory
from engine.cache.pages import PagePool, pages_for
from engine.cache.recurrent import RecurrentArena
from engine.cache.slots import SlotPool
from engine.checkpoint.source import CheckpointSource, TensorFacts
from engine.config import EngineConfig
from engine.gpu.build import build_gpu_runner
from engine.memory.ledger import Ledger
from engine.models import model_spec
from engine.models.spec import ExpertsSpec, ModelSpec
from engine.owner import Owner
from engine.runner import RunnerParts
from engine.sampling.rows import LogitRows

GPU = "gpu0"
KV_FORMAT = KvFormat.BF16
SPARE = 6
"""Slots beside the streams'."""
DEEPEN_ROWS = 4096
COMPANY = 4
"""Streams at least: as many as are compared with one alone."""


class GpuModel(Owner):
    """A runner with pages and states full of small random numbers; a context manager.

    Attributes:
        load_s: seconds until it was ready.
        load_bytes: of the file.
    """

    def __init__(
        self, source: CheckpointSource, rows: int, *, streams: int = 8, chunk_rows: int = 4096
    ) -> None:
        self.spec = model_spec(source)
        self.rows = rows
        self._chunk_rows = chunk_rows
        device, streams = torch.device("cuda", 0), max(streams, COMPANY)
        began = time.perf_counter()
        with ExitStack() as stack:
            free, _ = torch.cuda.mem_get_info(device)
            ledger = Ledger({GPU: free, "ram": 1 << 36, "pinned": 1 << 36})
            self._memory = self._lanes(stack, ledger, device, streams)
            parts = RunnerParts(
                spec=self.spec,
                source=source,
                kv=self._kv,
                recurrent=self._recurrent,
                config=EngineConfig(Path.cwd()),
                context_tokens=rows,
                streams=streams,
                ledger=ledger,
                progress=lambda _done, _total: None,
                resources=stack,
            )
            self.runner = build_gpu_runner(parts, device, GPU, chunk_rows)
            self._stack = stack.pop_all()
        torch.cuda.synchronize()
        self.load_s = time.perf_counter() - began
        self.load_bytes = sum(each.stored_bytes for each in source.tensors.values())
        self.fill()

    def _lanes(
        self, stack: ExitStack, ledger: Ledger, device: torch.device, streams: int
    ) -> LaneMemory:
        """Pages for one lane of ``rows``, and short ones for the other streams."""
        pages = pages_for(self.rows) + streams * pages_for(DEEPEN_ROWS) + 1
        groups = self.spec.groups
        counts = [pages] * len(groups)
        self._kv = KvArena(groups, counts, KV_FORMAT, ledger, GPU, device=device)
        stack.callback(self._kv.close)
        self._recurrent = None
        if self.spec.recurrent is not None:
            arena = RecurrentArena(self.spec.recurrent, streams + SPARE, ledger, GPU, device=device)
            stack.callback(arena.close)
            self._recurrent = arena
        slots = None if self._recurrent is None else SlotPool(self._recurrent)
        pools = tuple(PagePool(pages, group.window) for group in groups)
        return LaneMemory(pools, HostDevice(self._kv, self._recurrent), slots)

    def fill(self) -> None:
        """Random numbers in every page and state, as if all had been computed."""
        arena = self._recurrent
        for tensor in self._kv.tensors:
            tensor.copy_(torch.randn(tensor.shape[2:], device=tensor.device).expand_as(tensor))
        if arena is not None:
            arena.states.normal_(std=0.01)
            arena.tails.normal_(std=0.1)

    def lane(self, rows: int, depth: int = 0) -> Lane:
        """A lane for ``rows`` rows of which ``depth`` seem to be computed; the caller closes it."""
        opened = Lane.open(self._memory, rows, max(self._chunk_rows, DEEPEN_ROWS))
        assert isinstance(opened, Lane), opened
        while opened.length < depth:
            opened.extend(min(DEEPEN_ROWS, depth - opened.length))
        return opened

    def prefill(self, ids: Sequence[int]) -> float:
        """Seconds for a whole prompt until its last row's logits are on the host."""
        with self.lane(len(ids)) as lane:
            torch.cuda.synchronize()
            began = time.perf_counter()
            self.read(lane, ids)
            return time.perf_counter() - began

    def read(self, lane: Lane, ids: Sequence[int]) -> torch.Tensor:
        """The prompt in chunks; the last row's logits."""
        size, found = self._chunk_rows, torch.empty(0)
        for first in range(0, len(ids), size):
            part = ids[first : first + size]
            lane.extend(len(part))
            last = first + size >= len(ids)
            found = self.runner.prompt_chunk(lane, part, first, wants_logits=last)
        return found

    def decode(self, ids: Sequence[int], depth: int, streams: int = 1) -> float:
        """Seconds for one step an id after ``depth`` rows, as the engine's loop asks for them.

        What a token is drawn from is on the host after each: candidates, not all logits.
        """
        with ExitStack() as stack:
            lanes = [
                stack.enter_context(self.lane(depth + len(ids), depth)) for _ in range(streams)
            ]
            torch.cuda.synchronize()
            began = time.perf_counter()
            for token in ids:
                self.draw_from(lanes, token)
            return time.perf_counter() - began

    def step(self, lanes: Sequence[Lane], token: int) -> torch.Tensor:
        """One row for each lane."""
        for lane in lanes:
            lane.extend(1)
        positions = [lane.length - 1 for lane in lanes]
        return self.runner.step(lanes, [token] * len(lanes), positions)

    def draw_from(self, lanes: Sequence[Lane], token: int) -> LogitRows:
        """One row for each lane, with what the next token is drawn from."""
        for lane in lanes:
            lane.extend(1)
        positions = [lane.length - 1 for lane in lanes]
        return self.runner.step_rows(lanes, [token] * len(lanes), positions)

    def close(self) -> None:
        """Free everything."""
        self._stack.close()


def token_bytes(source: CheckpointSource, spec: ModelSpec, depth: int) -> int:
    """What one generated token must read and write once: weights, state, keys and values."""
    used = expert_share(spec)
    tied = spec.embedding == spec.head
    weights = sum(
        round(tensor.stored_bytes * (used if is_stack(tensor) else 1.0))
        for name, tensor in source.tensors.items()
        if name != spec.embedding or tied
    )
    state = 0 if spec.recurrent is None else 2 * spec.recurrent.stream_bytes
    row = sum(page_bytes(group, KV_FORMAT) for group in spec.groups) / 256
    return weights + state + round(depth * row)


def prompt_flops(source: CheckpointSource, spec: ModelSpec) -> float:
    """Of the products for one row of a prompt, the head's left out."""
    used = expert_share(spec)
    found = 0.0
    for name, tensor in source.tensors.items():
        if len(tensor.shape) < 2 or name in (spec.embedding, spec.head):
            continue
        elements = 1
        for size in tensor.shape:
            elements *= size
        found += 2.0 * elements * (used if is_stack(tensor) else 1.0)
    return found


def is_stack(tensor: TensorFacts) -> bool:
    """Whether it holds a matrix for each expert."""
    return len(tensor.shape) == 3


def expert_share(spec: ModelSpec) -> float:
    """Experts that a row uses, of those there are."""
    for layer in spec.layers:
        for branch in layer.branches:
            if isinstance(branch.body, ExpertsSpec):
                return branch.body.active_count / len(branch.body.experts)
    return 1.0
