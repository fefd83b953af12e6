"""Planning: an open checkpoint and a wish become a plan for the processor, or for a GPU.

Pure but for reading facts from an open source; no torch. Hearth computes on the processor today, so
a wish that names no GPU is planned for that, and one that does for the GPU and the machine's RAM.
"""

from __future__ import annotations

from typing import Final

from engine.cache.formats import PAGE_ROWS, KvFormat
from engine.checkpoint.source import CheckpointSource
from engine.errors import MemoryRefused, RequestInvalid
from engine.loading.footprint import footprint
from engine.loading.gpu_footprint import gpu_footprint
from engine.memory.placement import (
    Geometry,
    Machine,
    Need,
    Plan,
    Refused,
    Room,
    Wish,
    plan_placement,
)
from engine.memory.pools import GPU, PoolReading, capacity_bytes, headroom_bytes
from engine.models.native_limits import NATIVE_GRID_ROWS, unsupported_by_native
from engine.models.spec import ModelSpec
from engine.protocol import GpuFacts, Load, Planned, PoolFacts
from engine.protocol import Plan as PlanWish

GPU_CHUNK_ROWS: Final = 4096
GPU_GRID_ROWS: Final = 64
OTHERS: Final = "other programs"
HEADROOM: Final = "reserve for other programs"
NOT_YET: Final = (
    "Its weights would have to be copied to the GPU while it computes, which Hearth cannot do yet. "
)


def room(reading: PoolReading, capacity: int | None = None) -> Room:
    """A pool as the planner sees it, with what others hold and what is left to them.

    Args:
        capacity: what the ledger lets the engine hold; None takes what the reading allows.
    """
    free = capacity_bytes(reading) if capacity is None else capacity
    holders = [
        (OTHERS, reading.others_bytes),
        (HEADROOM, min(headroom_bytes(reading), reading.free_bytes - free)),
    ]
    return Room(
        name=reading.name,
        free_bytes=free,
        total_bytes=reading.total_bytes,
        holders=tuple((owner, size) for owner, size in holders if size > 0),
        label=reading.label,
    )


def machine_for(ram: Room, gpu: GpuFacts | None, processor: str) -> Machine:
    """What a plan is for; raises RequestInvalid for a GPU that cannot be."""
    if gpu is None:
        return Machine(ram, device=f"CPU, {processor}")
    if gpu.free_bytes > gpu.total_bytes:
        raise RequestInvalid(
            f"A GPU of {gpu.total_bytes:,} bytes cannot have {gpu.free_bytes:,} bytes free.",
            total_bytes=gpu.total_bytes,
            free_bytes=gpu.free_bytes,
        )
    others = gpu.total_bytes - gpu.free_bytes
    reading = PoolReading(f"{GPU}0", gpu.total_bytes, gpu.free_bytes, others, gpu.name)
    return Machine(ram, room(reading), f"GPU, {gpu.name}")


def place(
    source: CheckpointSource,
    spec: ModelSpec,
    wish: Load | PlanWish,
    machine: Machine,
    *,
    wide: bool,
) -> Plan | Refused:
    """Plan a model; ``wide`` computes in float32 on the processor.

    Raises:
        RequestInvalid: a context of no token.
    """
    if wish.context_tokens is not None and wish.context_tokens < 1:
        raise RequestInvalid(
            f"The context must be 1 token or more, not {wish.context_tokens}.",
            found=wish.context_tokens,
        )
    asked = Wish(wish.context_tokens, wish.streams, wish.kv)
    if machine.gpu is None:
        taken, geometry = footprint(source, spec, wide=wide), cpu_geometry(spec, wide=wide)
    else:
        taken, geometry = gpu_footprint(source, spec), gpu_geometry(spec)
    return plan_placement(machine, taken, geometry, asked)


def cpu_geometry(spec: ModelSpec, *, wide: bool) -> Geometry:
    """Chunks of a page; K and V in 16 bits, or 32 where all is. States as the runner keeps them."""
    decoded = wide or unsupported_by_native(spec) is not None
    return Geometry(
        groups=spec.groups,
        context_tokens=spec.context_tokens,
        chunk_rows=PAGE_ROWS,
        kv_format=KvFormat.FP32 if wide else KvFormat.FP16,
        recurrent=spec.recurrent,
        grid_rows=PAGE_ROWS if decoded else NATIVE_GRID_ROWS,
    )


def gpu_geometry(spec: ModelSpec) -> Geometry:
    """Chunks of any size on the grid, at which states are kept."""
    return Geometry(
        groups=spec.groups,
        context_tokens=spec.context_tokens,
        chunk_rows=GPU_CHUNK_ROWS,
        kv_format=KvFormat.BF16,
        recurrent=spec.recurrent,
        least_chunk_rows=GPU_GRID_ROWS,
        grid_rows=GPU_GRID_ROWS,
    )


def loadable(found: Plan | Refused) -> Plan:
    """The plan, where it can be loaded today.

    Raises:
        MemoryRefused: it does not fit, or only with weights streamed; numbers: pool, needed_bytes,
            free_bytes, fitting_context_tokens and chats, those that the refused plan had.
    """
    reason = _refusal(found)
    if isinstance(found, Plan) and reason is None:
        return found
    least = found if isinstance(found, Refused) else found.not_yet
    assert least is not None
    raise MemoryRefused(
        reason or least.sentence,
        pool=least.pool,
        needed_bytes=least.needed_bytes,
        free_bytes=least.free_bytes,
        fitting_context_tokens=least.fitting_context_tokens,
        context_tokens=least.context_tokens,
        chats=1,
    )


def planned(request: int, found: Plan | Refused, device: str) -> Planned:
    """The answer to a wish for a plan."""
    facts = tuple(map(_pool_facts, found.needs))
    refusal = _refusal(found)
    if isinstance(found, Refused):
        return Planned(
            request=request,
            context_tokens=found.context_tokens,
            lines=found.lines,
            refusal=refusal,
            device=device,
            fitting_context_tokens=found.fitting_context_tokens,
            pools=facts,
        )
    return Planned(
        request=request,
        context_tokens=found.context_tokens,
        lines=found.lines,
        refusal=refusal,
        device=device,
        streams=found.streams,
        states=found.states,
        host_state_bytes=found.host_state_bytes,
        kv_format=found.kv_format.value,
        chunk_rows=found.chunk_rows,
        placement=found.placement,
        fitting_context_tokens=(
            0 if found.not_yet is None else found.not_yet.fitting_context_tokens
        ),
        pools=facts,
    )


def _refusal(found: Plan | Refused) -> str | None:
    if isinstance(found, Refused):
        return found.sentence
    return None if found.not_yet is None else NOT_YET + found.not_yet.sentence


def _pool_facts(need: Need) -> PoolFacts:
    """A pool with what may be taken there; what the plan takes are the lines' sums."""
    return PoolFacts(
        name=need.pool,
        capacity_bytes=need.free_bytes,
        free_bytes=need.free_bytes,
        holders=need.holders,
        total_bytes=need.total_bytes,
        label=need.label,
    )
