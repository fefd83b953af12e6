"""The record of a plan that ``hearth plan --json`` prints."""

from __future__ import annotations

from typing import Final

import msgspec

from app.cli.options import PlanOptions
from engine.protocol import GpuFacts, Placement, PlanLine, Planned

PINNED: Final = "pinned"
RAM: Final = "ram"


class PoolReport(msgspec.Struct, frozen=True, kw_only=True):
    """One pool; what is pinned counts as RAM too.

    Attributes:
        free_bytes: what could be taken, after what is left to other programs.
    """

    name: str
    needed_bytes: int
    free_bytes: int
    total_bytes: int
    label: str
    holders: tuple[tuple[str, int], ...]


class PlanReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``--json`` prints.

    Attributes:
        streams: chats at once that there is room for, of ``wanted_streams``.
        states: kept prompt states that there is room for where it computes.
        fitting_context_tokens: of a refused plan, the longest context that would fit; 0 for none.
    """

    model: str
    fits: bool
    refusal: str | None
    device: str
    placement: Placement | None
    context_tokens: int
    wanted_context_tokens: int | None
    streams: int
    wanted_streams: int
    states: int
    host_state_bytes: int
    kv_format: str
    wanted_kv: str
    chunk_rows: int
    fitting_context_tokens: int
    gpu: GpuFacts | None
    pools: tuple[PoolReport, ...]
    lines: tuple[PlanLine, ...]


def report_of(model: str, options: PlanOptions, answer: Planned) -> PlanReport:
    """The engine's answer beside what was asked."""
    needed: dict[str, int] = {}
    for line in answer.lines:
        needed[line.pool] = needed.get(line.pool, 0) + line.bytes
    needed[RAM] = needed.get(RAM, 0) + needed.get(PINNED, 0)
    return PlanReport(
        model=model,
        fits=answer.refusal is None,
        refusal=answer.refusal,
        device=answer.device,
        placement=answer.placement,
        context_tokens=answer.context_tokens,
        wanted_context_tokens=options.context,
        streams=answer.streams,
        wanted_streams=options.chats,
        states=answer.states,
        host_state_bytes=answer.host_state_bytes,
        kv_format=answer.kv_format,
        wanted_kv=options.kv,
        chunk_rows=answer.chunk_rows,
        fitting_context_tokens=answer.fitting_context_tokens,
        gpu=options.gpu,
        pools=tuple(
            PoolReport(
                name=pool.name,
                needed_bytes=needed.get(pool.name, 0),
                free_bytes=pool.free_bytes,
                total_bytes=pool.total_bytes,
                label=pool.label,
                holders=pool.holders,
            )
            for pool in answer.pools
        ),
        lines=answer.lines,
    )
