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
from engine.cache.kv import KvArena
from engine.cache.lane import Lane
from engine.cache.pages import PagePool
from engine.cache.recurrent import RecurrentArena
from engine.cache.slots import SlotPool
from engine.checkpoint.source import CheckpointSource
from engine.config import Compute, EngineConfig
from engine.errors import InvariantBroken
from engine.memory.ledger import Ledger
from engine.memory.placement import Plan
from engine.memory.pools import RAM
from engine.models.spec import ModelSpec
from engine.protocol import Phase
from engine.runner import Runner, RunnerParts
from engine.serving.admission import Served
from engine.states.store import StateStore

WARM_ROWS: Final = 16

Report = Callable[[Phase, int, int], None]


class RunnerBuilder(Protocol):
    """Builds what computes a model; ``engine.backend.build_runner`` is the real one."""

    def __call__(self, parts: RunnerParts) -> Runner:
        """A runner whose resources ``parts.resources`` closes."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a model is assembled from."""

    source: CheckpointSource
    spec: ModelSpec
    plan: Plan
    streams: int


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
    arena, recurrent = _arenas(parts, config, ledger, stack)
    runner = build(
        RunnerParts(
            spec=parts.spec,
            source=parts.source,
            kv=arena,
            recurrent=recurrent,
            config=config,
            context_tokens=parts.plan.context_tokens,
            streams=parts.streams,
            ledger=ledger,
            progress=partial(report, "weights"),
            resources=stack,
        )
    )
    pools = tuple(
        PagePool(pages, group.window)
        for group, pages in zip(parts.spec.groups, parts.plan.page_counts, strict=True)
    )
    slots = None if recurrent is None else SlotPool(recurrent)
    report("warm-up", 0, 1)
    warm(runner, pools, slots)
    report("warm-up", 1, 1)
    return Served(
        runner=runner,
        pools=pools,
        states=StateStore(pools, runner.grid_rows, slots),
        context_tokens=parts.plan.context_tokens,
        stream_limit=parts.streams,
        slots=slots,
    )


def warm(runner: Runner, pools: tuple[PagePool, ...], slots: SlotPool | None = None) -> None:
    """Run a short prompt chunk and a step, so that the first request meets no first time."""
    lane = Lane.open(pools, WARM_ROWS + 1, runner.grid_rows, slots=slots)
    if not isinstance(lane, Lane):
        raise InvariantBroken(f"A fresh model has no room for {WARM_ROWS + 1} rows.")
    with lane:
        lane.extend(WARM_ROWS)
        runner.prompt_chunk(lane, [0] * WARM_ROWS, 0)
        lane.extend(1)
        runner.step([lane], [0], [WARM_ROWS])


def _arenas(
    parts: Parts, config: EngineConfig, ledger: Ledger, stack: ExitStack
) -> tuple[KvArena, RecurrentArena | None]:
    """The bytes of pages and recurrent slots that the plan counted."""
    kv_format = KvFormat.FP32 if config.compute is Compute.FLOAT32 else KvFormat.FP16
    spec, plan = parts.spec, parts.plan
    arena = stack.enter_context(KvArena(spec.groups, plan.page_counts, kv_format, ledger, RAM))
    if spec.recurrent is None:
        return arena, None
    slots = RecurrentArena(spec.recurrent, plan.slot_count, ledger, RAM)
    return arena, stack.enter_context(slots)
