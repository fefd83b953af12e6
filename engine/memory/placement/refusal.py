"""Refusals: which pool falls short, by how much, who holds the rest, and what would fit instead."""

from __future__ import annotations

from dataclasses import replace

from engine.cache.formats import PAGE_ROWS
from engine.memory.placement.facts import Machine, Room
from engine.memory.placement.layout import Candidate
from engine.memory.placement.lines import Question, resident_lines
from engine.memory.placement.needs import needs, short_pool
from engine.memory.placement.plan import Refused
from engine.memory.sizes import gib, pool_words
from engine.protocol import PlanLine


def refused(asked: Question, least: Candidate, lines: tuple[PlanLine, ...]) -> Refused:
    """The refusal of the least candidate, whose lines do not fit."""
    short = short_pool(asked.machine, lines)
    assert short is not None
    fitting = _fitting_context(asked, least)
    room = _room(asked.machine, short.pool)
    held = ", ".join(f"{owner} {gib(size, up=True)}" for owner, size in room.holders)
    total = f" of {gib(room.total_bytes)}" if room.total_bytes else ""
    needed, what = gib(short.needed_bytes, up=True), pool_words(short.pool)
    sentence = (
        f"The model needs at least {needed} GiB of {what} for a context of {least.context:,} "
        f"tokens; {gib(short.free_bytes)}{total} GiB are free"
        f"{f' ({held})' if held else ''}. {_instead(fitting)}"
    )
    return Refused(
        pool=short.pool,
        needed_bytes=short.needed_bytes,
        free_bytes=short.free_bytes,
        context_tokens=least.context,
        lines=lines,
        sentence=sentence,
        fitting_context_tokens=fitting,
        needs=needs(asked.machine, lines),
    )


def _instead(fitting: int) -> str:
    if fitting:
        return f"A context of {fitting:,} tokens would fit."
    return "No context of any length would fit."


def _room(machine: Machine, pool: str) -> Room:
    return machine.computing if pool == machine.computing.name else machine.ram


def _fitting_context(asked: Question, least: Candidate) -> int:
    """The longest context, in whole pages, that fits in place of the least candidate's."""
    most = least.context // PAGE_ROWS
    fits = 0
    while fits < most:
        middle = (fits + most + 1) // 2
        shorter = replace(least, context=middle * PAGE_ROWS)
        if short_pool(asked.machine, resident_lines(asked, shorter)) is None:
            fits = middle
        else:
            most = middle - 1
    return fits * PAGE_ROWS
