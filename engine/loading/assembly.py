"""Assembly: an open checkpoint and a plan become a loaded model.

This is the first module that imports torch; ``engine.loading.loader`` imports it when a model is
really loaded. Whatever was made is unmade in reverse where a later step fails.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from engine.cache.formats import KvFormat
from engine.cache.host import HostDevice
from engine.cache.kv import KvArena
from engine.cache.lane import Lane, LaneMemory
from engine.cache.pages import PagePool
from engine.cache.recurrent import RecurrentArena
from engine.cache.slots import SlotPool
from engine.checkpoint.source import CheckpointSource
from engine.config import Compute, EngineConfig
from engine.errors import InvariantBroken
from engine.memory.envelope import load_demand
from engine.memory.ledger import Credit, Ledger
from engine.memory.placement import Plan
from engine.memory.pools import RAM
from engine.models.spec import ModelSpec
from engine.protocol import Phase
from engine.runner import Runner, RunnerParts
from engine.serving.admission import Served
from engine.states.border import StateLibrary
from engine.states.store import StateStore

WARM_ROWS: Final = 16
LOADING: Final = "loading"
"""Holds what a plan was granted until its owners have taken it."""

Report = Callable[[Phase, int, int], None]


class RunnerBuilder(Protocol):
    """Builds what computes a model; ``engine.backend.build_runner`` is the real one."""

    def __call__(self, parts: RunnerParts) -> Runner:
        """A runner whose resources ``parts.resources`` closes."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a model is assembled from.

    Attributes:
        library: all kept states; None where nothing is kept beyond the process.
    """

    source: CheckpointSource
    spec: ModelSpec
    plan: Plan
    streams: int
    library: StateLibrary | None = None


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
    with ledger.envelope(LOADING, load_demand(parts.plan.lines)) as room:
        arena, recurrent = _arenas(parts, config, room, stack)
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
            )
        )
    pools = tuple(
        PagePool(pages, group.window)
        for group, pages in zip(parts.spec.groups, parts.plan.page_counts, strict=True)
    )
    slots = None if recurrent is None else SlotPool(recurrent)
    memory = LaneMemory(pools, HostDevice(arena, recurrent), slots)
    report("warm-up", 0, 1)
    warm(runner, memory)
    report("warm-up", 1, 1)
    return Served(
        runner=runner,
        memory=memory,
        states=StateStore(memory, runner.grid_rows),
        context_tokens=parts.plan.context_tokens,
        stream_limit=parts.streams,
    )


def warm(runner: Runner, memory: LaneMemory) -> None:
    """Run a short prompt chunk and a step, so that the first request meets no first time."""
    lane = Lane.open(memory, WARM_ROWS + 1, runner.grid_rows)
    if not isinstance(lane, Lane):
        raise InvariantBroken(f"A fresh model has no room for {WARM_ROWS + 1} rows.")
    with lane:
        lane.extend(WARM_ROWS)
        runner.prompt_chunk(lane, [0] * WARM_ROWS, 0)
        lane.extend(1)
        runner.step([lane], [0], [WARM_ROWS])


def _arenas(
    parts: Parts, config: EngineConfig, ledger: Credit, stack: ExitStack
) -> tuple[KvArena, RecurrentArena | None]:
    """The bytes of pages and recurrent slots that the plan counted."""
    kv_format = KvFormat.FP32 if config.compute is Compute.FLOAT32 else KvFormat.FP16
    spec, plan = parts.spec, parts.plan
    arena = stack.enter_context(KvArena(spec.groups, plan.page_counts, kv_format, ledger, RAM))
    if spec.recurrent is None:
        return arena, None
    slots = RecurrentArena(spec.recurrent, plan.slot_count, ledger, RAM)
    return arena, stack.enter_context(slots)
