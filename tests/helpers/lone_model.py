"""One model in the torch executor with pages of its own, for tests that compare numbers.

Every byte of KV memory begins as NaN, and so does every recurrent state but the lane's own, so a
row that reads what it should not shows at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import torch

from engine.cache.formats import PAGE_ROWS, KvFormat, page_bytes
from engine.cache.host import HostDevice
from engine.cache.kv import KvArena
from engine.cache.lane import Lane, LaneMemory
from engine.cache.pages import PagePool, pages_for
from engine.cache.recurrent import RecurrentArena
from engine.cache.slots import SlotPool
from engine.checkpoint.open import open_checkpoint
from engine.checkpoint.source import CheckpointSource
from engine.forward import DequantizedProducts, TorchRunner, Weights
from engine.memory.ledger import Ledger
from engine.memory.pools import RAM
from engine.models import model_spec
from engine.models.spec import ModelSpec

STATE_SLOTS = 3
FP8_NAN = 0x7F


class LoneModel:
    """A loaded model and one lane; a context manager that checks its page census at the end."""

    def __init__(
        self,
        checkpoint: Path | CheckpointSource,
        rows: int,
        *,
        spec: ModelSpec | None = None,
        kv_format: KvFormat = KvFormat.FP32,
    ) -> None:
        """Load a checkpoint; ``rows`` are promised to the lane, ``spec`` replaces its own."""
        self._source = open_checkpoint(checkpoint) if isinstance(checkpoint, Path) else checkpoint
        self.spec = model_spec(self._source) if spec is None else spec
        weights = Weights(self._source)
        self.pools = [PagePool(pages_for(rows) + 2, group.window) for group in self.spec.groups]
        self.kv = poisoned_pages(self.spec, [pool.page_count for pool in self.pools], kv_format)
        products = DequantizedProducts(self.spec, weights)
        self.recurrent = _poisoned_states(self.spec)
        self.runner = TorchRunner(self.spec, weights, products, self.kv, self.recurrent)
        self.slots = None if self.recurrent is None else SlotPool(self.recurrent)
        device = HostDevice(self.kv, self.recurrent)
        self.memory = LaneMemory(tuple(self.pools), device, self.slots)
        opened = Lane.open(self.memory, rows, PAGE_ROWS)
        assert isinstance(opened, Lane)
        self.lane = opened

    def all_logits(self, ids: list[int]) -> torch.Tensor:
        """[len(ids), vocabulary] of prompt rows from position 0, chunk after chunk."""
        parts = []
        for first in range(0, len(ids), PAGE_ROWS):
            part = ids[first : first + PAGE_ROWS]
            self.lane.extend(len(part))
            parts.append(self.runner.all_logits(self.lane, part, first))
        return torch.cat(parts)

    def prompt(self, ids: list[int]) -> torch.Tensor:
        """[vocabulary] of the last prompt row, by the path that the engine takes."""
        logits = torch.empty(0)
        for first in range(0, len(ids), PAGE_ROWS):
            part = ids[first : first + PAGE_ROWS]
            last = first + len(part) == len(ids)
            self.lane.extend(len(part))
            logits = self.runner.prompt_chunk(self.lane, part, first, wants_logits=last)
        return logits

    def step(self, token: int) -> torch.Tensor:
        """[vocabulary] of one generated row after what the lane holds."""
        self.lane.extend(1)
        return self.runner.step([self.lane], [token], [self.lane.length - 1])[0]

    def greedy(self, ids: list[int], count: int) -> list[int]:
        """``count`` ids after the prompt, each the likeliest."""
        chosen = [int(self.prompt(ids).argmax())]
        while len(chosen) < count:
            chosen.append(int(self.step(chosen[-1]).argmax()))
        return chosen

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.lane.close()
        self.runner.close()
        self.kv.close()
        if self.recurrent is not None:
            self.recurrent.close()
        self._source.close()
        assert all(pool.census().held_pages == 0 for pool in self.pools)
        assert self.slots is None or self.slots.census().free_slots == STATE_SLOTS


def poisoned_pages(spec: ModelSpec, page_counts: Sequence[int], kv_format: KvFormat) -> KvArena:
    """KV memory full of NaN; the caller closes it."""
    pairs = zip(spec.groups, page_counts, strict=True)
    size = sum(count * page_bytes(group, kv_format) for group, count in pairs)
    arena = KvArena(spec.groups, page_counts, kv_format, Ledger({RAM: size}), RAM)
    for tensor in (*arena.tensors, *arena.scales):
        tensor.fill_(FP8_NAN if tensor.dtype is torch.uint8 else float("nan"))
    return arena


def _poisoned_states(spec: ModelSpec) -> RecurrentArena | None:
    if spec.recurrent is None:
        return None
    size = STATE_SLOTS * spec.recurrent.stream_bytes
    arena = RecurrentArena(spec.recurrent, STATE_SLOTS, Ledger({RAM: size}), RAM)
    arena.states.fill_(float("nan"))
    arena.tails.fill_(float("nan"))
    return arena


def relative_l2(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """Distance over size, in float64, over all elements."""
    found, wanted = found.double(), wanted.double()
    return float((found - wanted).norm() / wanted.norm())
