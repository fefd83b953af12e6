"""One model on the native library, and the same in torch, with pages and states full of NaN."""

from __future__ import annotations

from typing import Protocol

import torch

from engine.cache.formats import PAGE_ROWS, KvFormat
from engine.cache.host import HostDevice
from engine.cache.kv import KvArena
from engine.cache.lane import Lane, LaneMemory
from engine.cache.pages import PagePool, pages_for
from engine.cache.recurrent import RecurrentArena
from engine.cache.slots import SlotPool
from engine.checkpoint.source import CheckpointSource
from engine.forward import DequantizedProducts, Products, TorchRunner, Weights
from engine.forward.products import linears
from engine.memory.ledger import Ledger
from engine.models import model_spec
from engine.models.spec import ModelSpec
from engine.native import NativeRunner, StoredWeights, native_sizes
from engine.owner import Owner
from engine.runner import Runner
from kernels.cpu.library import Library, Pool
from kernels.cpu.records import Isa

RAM = "ram"


class Side(Owner):
    """A runner with pages of its own: room for ``lanes`` of ``rows`` rows and a page more."""

    def __init__(
        self,
        source: CheckpointSource,
        rows: int,
        kv_format: KvFormat,
        spec: ModelSpec | None = None,
        *,
        lanes: int = 2,
        device: str = "cpu",
    ) -> None:
        self.spec = model_spec(source) if spec is None else spec
        self.rows = rows
        self.ledger = Ledger({RAM: 1 << 32})
        pages = lanes * pages_for(rows) + 1
        place = torch.device(device)
        self.pools = [PagePool(pages, group.window) for group in self.spec.groups]
        counts = [pages] * len(self.pools)
        self.kv = KvArena(self.spec.groups, counts, kv_format, self.ledger, RAM, device=place)
        for tensor in self.kv.scales or self.kv.tensors:
            tensor.fill_(float("nan"))
        self.recurrent: RecurrentArena | None = None
        if self.spec.recurrent is not None:
            self.recurrent = RecurrentArena(
                self.spec.recurrent, lanes + 1, self.ledger, RAM, device=place
            )
            self.recurrent.states.fill_(float("nan"))
            self.recurrent.tails.fill_(float("nan"))
        self.slots = None if self.recurrent is None else SlotPool(self.recurrent)
        bytes_of = HostDevice(self.kv, self.recurrent)
        self.memory = LaneMemory(tuple(self.pools), bytes_of, self.slots)

    def fill_pages(self) -> None:
        """Random numbers in place of NaN, as if every page had been computed."""
        generator = torch.Generator().manual_seed(2)
        for tensor in self.kv.tensors:
            page = torch.randn(tensor.shape[2:], generator=generator)
            tensor.copy_(page.to(tensor.dtype).expand_as(tensor))

    def close(self) -> None:
        """Free the pages and states; may be repeated."""
        self.kv.close()
        if self.recurrent is not None:
            self.recurrent.close()

    def lane(self) -> Lane:
        """A lane for ``rows`` rows; the caller closes it."""
        opened = Lane.open(self.memory, self.rows, PAGE_ROWS)
        assert isinstance(opened, Lane)
        return opened


class TorchSide(Side):
    """The float32 reference; ``kv_format`` is that of its pages, ``products`` replaces its own."""

    def __init__(
        self,
        source: CheckpointSource,
        rows: int,
        kv_format: KvFormat = KvFormat.FP32,
        products: Products | None = None,
        spec: ModelSpec | None = None,
    ) -> None:
        super().__init__(source, rows, kv_format, spec)
        weights = Weights(source)
        multiplied = DequantizedProducts(self.spec, weights) if products is None else products
        self.runner = TorchRunner(self.spec, weights, multiplied, self.kv, self.recurrent)


class NativeSide(Side):
    """The native library; a context manager that ends its threads."""

    def __init__(
        self,
        source: CheckpointSource,
        rows: int,
        *,
        threads: int = 1,
        streams: int = 4,
        isa: Isa | None = None,
        spec: ModelSpec | None = None,
        kv_format: KvFormat = KvFormat.FP16,
    ) -> None:
        super().__init__(source, rows, kv_format, spec)
        library = Library()
        self.pool = Pool(library, threads, isa)
        self.weights = StoredWeights(source, library, self.pool)
        for _ in self.weights.lay_out(linears(self.spec)):
            pass
        self.sizes = native_sizes(self.spec, rows, streams, self.pool)
        self.runner = NativeRunner(
            self.spec, self.weights, self.kv, self.pool, self.sizes, recurrent=self.recurrent
        )

    def step_bytes(self) -> int:
        """Weight bytes that one step reads: every product's, once."""
        return self.weights.stored_bytes(linears(self.spec))

    def close(self) -> None:
        """Free everything; may be repeated."""
        self.weights.close()
        self.pool.close()
        super().close()


Both = TorchSide | NativeSide


class Stepping(Protocol):
    """Whatever has a runner."""

    @property
    def runner(self) -> Runner: ...


def prompt(side: Both, lane: Lane, ids: list[int]) -> torch.Tensor:
    """[row, vocabulary] of every row of a prompt from position 0, chunk by chunk."""
    parts = []
    for first in range(0, len(ids), PAGE_ROWS):
        part = ids[first : first + PAGE_ROWS]
        lane.extend(len(part))
        parts.append(side.runner.all_logits(lane, part, first))
    return torch.cat(parts)


def last_row(side: Both, lane: Lane, ids: list[int]) -> torch.Tensor:
    """[vocabulary] of the prompt's last row, by the path that the engine takes."""
    found = torch.empty(0)
    for first in range(0, len(ids), PAGE_ROWS):
        part = ids[first : first + PAGE_ROWS]
        lane.extend(len(part))
        wanted = first + len(part) == len(ids)
        found = side.runner.prompt_chunk(lane, part, first, wants_logits=wanted)
    return found


def steps(side: Stepping, lane: Lane, ids: list[int]) -> torch.Tensor:
    """[row, vocabulary] of generated rows after what the lane holds."""
    parts = []
    for token in ids:
        lane.extend(1)
        parts.append(side.runner.step([lane], [token], [lane.length - 1]).clone())
    return torch.cat(parts)
