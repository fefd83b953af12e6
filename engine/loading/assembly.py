"""Assembly: an open checkpoint and a plan become a loaded model.

This is the first module that imports torch; ``engine.loading.loader`` imports it when a model is
really loaded. Whatever was made is unmade in reverse where a later step fails.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

import torch

from engine.cache.cuda import CudaDevice
from engine.cache.device import PageDevice
from engine.cache.host import HostDevice
from engine.cache.kv import KvArena
from engine.cache.lane import LaneMemory
from engine.cache.pages import PagePool
from engine.cache.recurrent import RecurrentArena
from engine.cache.slots import SlotPool
from engine.checkpoint.source import CheckpointSource
from engine.config import EngineConfig
from engine.loading.kept import layout_of, warm
from engine.memory.envelope import load_demand
from engine.memory.gpus import GpuCard
from engine.memory.ledger import Credit, Ledger
from engine.memory.placement import Plan
from engine.memory.placement.layout import wanted_states
from engine.memory.placement.lines import DRIVER, KEPT_IN_MEMORY, VOCABULARY
from engine.memory.pools import RAM
from engine.models.spec import ModelSpec
from engine.protocol import Phase
from engine.runner import GpuPlace, Runner, RunnerParts
from engine.serving.admission import Served
from engine.states.border import StateLibrary
from engine.states.identity import StateLayout, identity_of
from engine.states.lookup import LowerTiers
from engine.states.store import StateStore

LOADING: Final = "loading"
"""Holds what a plan was granted until its owners have taken it."""

CPU: Final = torch.device("cpu")

_LOG = logging.getLogger(__name__)
Report = Callable[[Phase, int, int], None]


class RunnerBuilder(Protocol):
    """Builds what computes a model; ``engine.backend.build_runner`` is the real one."""

    def __call__(self, parts: RunnerParts) -> Runner:
        """A runner whose resources ``parts.resources`` closes."""


@dataclass(frozen=True, slots=True)
class GpuUse:
    """The card that a model is planned for, and which device that is."""

    card: GpuCard
    device: torch.device


@dataclass(frozen=True, slots=True)
class Parts:
    """What a model is assembled from.

    Attributes:
        library: all kept states; None where nothing is kept beyond the process.
        gpu: None where the processor computes.
    """

    source: CheckpointSource
    spec: ModelSpec
    plan: Plan
    streams: int
    library: StateLibrary | None = None
    gpu: GpuUse | None = None

    @property
    def place(self) -> GpuPlace | None:
        """Where on a GPU the model lies."""
        if self.gpu is None:
            return None
        return GpuPlace(self.gpu.device, self.gpu.card.pool.name, self.plan.chunk_rows)


def assemble(
    parts: Parts,
    build: RunnerBuilder,
    config: EngineConfig,
    *,
    ledger: Ledger,
    report: Report,
    stack: ExitStack,
) -> Served:
    """Allocate the pages, build the runner and warm it; ``stack`` owns them afterwards.

    Raises:
        MemoryRefused: what the plan promised is not there any more.
    """
    if parts.gpu is not None:
        # What torch keeps of freed memory would be missing when the next model is planned.
        stack.callback(torch.cuda.empty_cache)
    with ledger.envelope(LOADING, load_demand(parts.plan.lines)) as room:
        _hold_others(parts, room, stack)
        arena, recurrent = _arenas(parts, room, stack)
        runner = build(
            RunnerParts(
                spec=parts.spec,
                source=parts.source,
                kv=arena,
                recurrent=recurrent,
                config=config,
                context_tokens=parts.plan.context_tokens,
                streams=parts.streams,
                ledger=room,
                progress=partial(report, "weights"),
                resources=stack,
                gpu=parts.place,
            )
        )
    memory = _lane_memory(parts, arena, recurrent, stack)
    report("warm-up", 0, 1)
    probe = warm(runner, memory, parts.spec.vocabulary)
    report("warm-up", 1, 1)
    layout = layout_of(memory, runner, parts.plan.kv_format)
    lower = _lower_tiers(parts, layout, probe, config, stack)
    return _served(parts, runner, memory, lower)


def _served(parts: Parts, runner: Runner, memory: LaneMemory, lower: LowerTiers | None) -> Served:
    """All of it, and a line in the log where chats will displace each other's states."""
    wanted = wanted_states(parts.streams)
    if parts.plan.states < wanted:
        _LOG.info("few states fit states=%d wanted=%d", parts.plan.states, wanted)
    return Served(
        runner=runner,
        memory=memory,
        states=StateStore(memory, runner.grid_rows, lower),
        context_tokens=parts.plan.context_tokens,
        stream_limit=parts.streams,
    )


def _hold_others(parts: Parts, ledger: Credit, stack: ExitStack) -> None:
    """Account for what others allocate: vocabulary, driver, and the host tier of kept states."""
    for line in parts.plan.lines:
        if line.owner in (VOCABULARY, DRIVER) or (line.owner == KEPT_IN_MEMORY and parts.library):
            stack.enter_context(ledger.reserve(line.owner, {line.pool: line.bytes})).commit()


def _lane_memory(
    parts: Parts, arena: KvArena, recurrent: RecurrentArena | None, stack: ExitStack
) -> LaneMemory:
    pools = tuple(
        PagePool(pages, group.window)
        for group, pages in zip(parts.spec.groups, parts.plan.page_counts, strict=True)
    )
    slots = None if recurrent is None else SlotPool(recurrent)
    device: PageDevice = HostDevice(arena, recurrent)
    if parts.gpu is not None:
        device = stack.enter_context(CudaDevice(arena, recurrent, parts.gpu.device))
    return LaneMemory(pools, device, slots)


def _lower_tiers(
    parts: Parts, layout: StateLayout, probe: bytes, config: EngineConfig, stack: ExitStack
) -> LowerTiers | None:
    """What lies below the device; None where there is no library, or no room for staging."""
    host_bytes = parts.plan.host_state_bytes
    if parts.library is None or not host_bytes:
        return None
    card = None if parts.gpu is None else parts.gpu.card
    identity = identity_of(parts.source, parts.spec, layout, config, card)
    archive = parts.library.open(identity, probe, host_bytes)
    stack.callback(archive.close)
    return LowerTiers(archive, identity.model, parts.library.facts())


def _arenas(
    parts: Parts, ledger: Credit, stack: ExitStack
) -> tuple[KvArena, RecurrentArena | None]:
    """The bytes of pages and recurrent slots that the plan counted, where it computes."""
    spec, plan, place = parts.spec, parts.plan, parts.place
    pool = RAM if place is None else place.pool
    device = CPU if place is None else place.device
    arena = stack.enter_context(
        KvArena(spec.groups, plan.page_counts, plan.kv_format, ledger, pool, device=device)
    )
    if spec.recurrent is None:
        return arena, None
    slots = RecurrentArena(spec.recurrent, plan.slot_count, ledger, pool, device=device)
    return arena, stack.enter_context(slots)
