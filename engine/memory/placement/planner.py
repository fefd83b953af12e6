"""The planner: machine, checkpoint and wish to a plan, or a refusal with numbers. Pure.

It needs metadata only, so a plan can be shown before weights are read or even downloaded. The
ladder: everything resident, smaller prompt chunks, K and V in 8 bits where that is allowed, the
picture part in RAM, fewer kept states, fewer chats, streamed weights. The first that fits wins.

KV bytes are those of whole pages: a full group holds every row of a stream, a sliding one at most
window + chunk rows and what alignment adds (``engine.cache.pages.most_live_pages``). A recurrent
state takes the same bytes whatever the context, one slot a running stream and one a kept state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from engine.memory.placement.facts import Footprint, Geometry, Machine, Wish
from engine.memory.placement.layout import Candidate, candidates, thin_candidates
from engine.memory.placement.lines import (
    KEPT_IN_MEMORY,
    LOGITS,
    PICTURES,
    VOCABULARY,
    WEIGHTS,
    WORKSPACE,
    Question,
    host_line,
    resident_lines,
    staged_bytes,
)
from engine.memory.placement.needs import needs, peak_by_pool, short_pool
from engine.memory.placement.plan import Plan, Refused
from engine.memory.placement.refusal import refused
from engine.memory.placement.streamed import streamed_lines
from engine.memory.pools import PINNED
from engine.protocol import PlanLine

HOST_BYTES: Final = 256 << 20
HOST_SHARE: Final = 8
PINNED_BYTES: Final = 8 << 30
CROWDING_SHARE: Final = 2
FIXED: Final = frozenset((WEIGHTS, PICTURES, WORKSPACE, LOGITS, VOCABULARY))
"""What takes its bytes whatever is left to other programs."""


def plan_placement(
    machine: Machine, footprint: Footprint, geometry: Geometry, wish: Wish
) -> Plan | Refused:
    """Choose context, chats, kept states and where everything lies.

    An asked context may take all the room of RAM; a chosen one leaves half of what the weights
    leave to other programs, as long as there is a way.
    """
    asked = Question(machine, footprint, geometry, wish)
    # Beside a processor the picture part lies in RAM as it is.
    movable = None if machine.gpu is None else footprint.vision
    for candidate in candidates(geometry, wish, movable):
        lines = resident_lines(asked, candidate)
        if _fits(asked, candidate, lines):
            return _plan(asked, candidate, lines)
    least = refused(asked, candidate, lines)
    for thin in thin_candidates(candidate, geometry):
        found = streamed_lines(asked, thin)
        if found is not None:
            return replace(_plan(asked, thin, found), not_yet=least)
    return least


def _fits(asked: Question, candidate: Candidate, lines: Sequence[PlanLine]) -> bool:
    if short_pool(asked.machine, lines) is not None:
        return False
    if candidate.may_crowd or asked.machine.gpu is not None:
        return True
    taken = sum(line.bytes for line in lines)
    fixed = sum(line.bytes for line in lines if line.owner in FIXED)
    room = asked.machine.ram.free_bytes - fixed
    return taken - fixed <= room // CROWDING_SHARE


def _plan(asked: Question, candidate: Candidate, lines: tuple[PlanLine, ...]) -> Plan:
    geometry = asked.geometry
    rows = candidate.rows(geometry, asked.footprint.vision)
    host = _host_bytes(asked, candidate, lines)
    kept = [line for line in lines if line.owner != KEPT_IN_MEMORY]
    if host:
        kept.append(host_line(asked, candidate, host))
    return Plan(
        context_tokens=candidate.context,
        streams=candidate.streams,
        states=candidate.states,
        page_counts=tuple(sum(candidate.pages(group, geometry, rows)) for group in geometry.groups),
        lines=tuple(kept),
        slot_count=0 if geometry.recurrent is None else candidate.slots,
        placement=candidate.placement,
        kv_format=candidate.kv_format,
        chunk_rows=candidate.chunk_rows,
        host_state_bytes=host,
        needs=needs(asked.machine, kept),
    )


def _host_bytes(asked: Question, candidate: Candidate, lines: Sequence[PlanLine]) -> int:
    """The host tier: on the processor staging and a little, beside a GPU as much as is sensible."""
    staged = staged_bytes(asked, candidate)
    if not staged:
        return 0
    machine = asked.machine
    room = machine.ram.free_bytes - peak_by_pool(lines).get(machine.ram.name, 0)
    if machine.gpu is None:
        return staged + min(HOST_BYTES, room // HOST_SHARE)
    pinned = machine.pinned.free_bytes - peak_by_pool(lines).get(PINNED, 0)
    found = min(PINNED_BYTES, room, pinned)
    return found if found >= staged else 0
