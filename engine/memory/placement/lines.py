"""The lines of a plan: what takes how many bytes of which pool, and why, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from engine.cache.formats import PAGE_ROWS, KvFormat, page_bytes
from engine.memory.placement.facts import Footprint, Geometry, Machine, Wish
from engine.memory.placement.layout import STAGED_EXTENTS, Candidate, extent_bytes, wanted_states
from engine.memory.pools import PINNED
from engine.models.spec import RecurrentSpec
from engine.protocol import PlanLine

WEIGHTS: Final = "weights"
PICTURES: Final = "picture part"
WORKSPACE: Final = "workspace"
LOGITS: Final = "logits"
VOCABULARY: Final = "vocabulary"
KV_PAGES: Final = "KV pages"
KEPT_STATES: Final = "kept states"
RECURRENT: Final = "recurrent states"
KEPT_IN_MEMORY: Final = "kept states in memory"
DRIVER: Final = "driver and graphs"
DRIVER_BYTES: Final = 832 << 20
"""What a process takes of a GPU beside its tensors. Measured on an H200: the driver's context 619
MiB, with cuBLAS and 60 kernels 685, with 12 graphs of 700 nodes each 783."""

PICTURE_SHARE: Final = 8
"""A picture part in RAM is copied in so many pieces, through a place for one of them."""


@dataclass(frozen=True, slots=True)
class Question:
    """Everything that a plan answers to."""

    machine: Machine
    footprint: Footprint
    geometry: Geometry
    wish: Wish


def resident_lines(asked: Question, candidate: Candidate) -> tuple[PlanLine, ...]:
    """What a candidate takes with all weights resident, all that it cannot do without."""
    pool, taken = asked.machine.computing.name, asked.footprint
    weights = PlanLine(pool=pool, owner=WEIGHTS, bytes=taken.weight_bytes, reason=taken.weights)
    return (weights, *other_lines(asked, candidate))


def other_lines(asked: Question, candidate: Candidate) -> tuple[PlanLine, ...]:
    """All of it but the weights."""
    found = [*_picture_lines(asked, candidate), *_work_lines(asked, candidate)]
    found += _page_lines(asked, candidate)
    recurrent = asked.geometry.recurrent
    if recurrent is not None:
        found.append(_recurrent_line(asked.machine.computing.name, recurrent, candidate))
    if asked.machine.gpu is None:
        staged = staged_bytes(asked, candidate)
        if staged:
            found.append(host_line(asked, candidate, staged))
    else:
        reason = "the driver's context, loaded kernels, recorded steps: measured on one card"
        gpu = asked.machine.gpu.name
        found.append(PlanLine(pool=gpu, owner=DRIVER, bytes=DRIVER_BYTES, reason=reason))
    return tuple(found)


def host_line(asked: Question, candidate: Candidate, size: int) -> PlanLine:
    """The host tier of kept states, with what is being written and read."""
    pool = asked.machine.ram.name if asked.machine.gpu is None else PINNED
    staged = staged_bytes(asked, candidate)
    if size <= staged:
        reason = "what is being written to the disk or read from it"
    else:
        reason = "states that left the device, and what is being written to the disk or read"
    return PlanLine(pool=pool, owner=KEPT_IN_MEMORY, bytes=size, reason=reason)


def staged_bytes(asked: Question, candidate: Candidate) -> int:
    """The least of the host tier: what is being written and read; 0 where no state is kept."""
    if not candidate.states:
        return 0
    return STAGED_EXTENTS * extent_bytes(asked.geometry, candidate.kv_format)


def _picture_lines(asked: Question, candidate: Candidate) -> list[PlanLine]:
    vision = asked.footprint.vision
    if vision is None:
        return []
    pool, reason = asked.machine.computing.name, "what reads pictures, beside the weights"
    if candidate.pictures_apart:
        pool = PINNED
        reason = "what reads pictures, copied to the GPU for each one, as memory is short there"
    return [PlanLine(pool=pool, owner=PICTURES, bytes=vision.weight_bytes, reason=reason)]


def _work_lines(asked: Question, candidate: Candidate) -> list[PlanLine]:
    taken, geometry, pool = asked.footprint, asked.geometry, asked.machine.computing.name
    rows = candidate.rows(geometry, taken.vision)
    size = taken.workspace(candidate.context, candidate.streams, rows)
    reason = f"prompts are computed {candidate.chunk_rows:,} rows at a time"
    if candidate.chunk_rows < geometry.chunk_rows:
        reason += f" instead of {geometry.chunk_rows:,}, as memory is short"
    if rows > candidate.chunk_rows:
        reason += f", up to {rows:,} where a picture ends a chunk"
    if taken.vision is not None:
        beside = 0
        if candidate.pictures_apart:
            beside = taken.vision.weight_bytes // PICTURE_SHARE
        size += taken.vision.workspace_bytes + beside
        reason += "; one picture at a time"
    chats = "one chat" if candidate.streams == 1 else f"{candidate.streams} chats at once"
    rows_of = f"of a step of {chats}, and of one prompt"
    lines = [
        PlanLine(pool=pool, owner=WORKSPACE, bytes=size, reason=reason),
        PlanLine(pool=pool, owner=LOGITS, bytes=taken.logits(candidate.streams), reason=rows_of),
    ]
    if taken.vocabulary_bytes:
        ram, words = asked.machine.ram.name, "the tokenizer's words and what it does with them"
        lines.append(
            PlanLine(pool=ram, owner=VOCABULARY, bytes=taken.vocabulary_bytes, reason=words)
        )
    return lines


def _page_lines(asked: Question, candidate: Candidate) -> list[PlanLine]:
    geometry, pool, wish = asked.geometry, asked.machine.computing.name, asked.wish
    rows = candidate.rows(geometry, asked.footprint.vision)
    running = kept = 0
    for group in geometry.groups:
        size = page_bytes(group, candidate.kv_format)
        for_streams, for_states = candidate.pages(group, geometry, rows)
        running += for_streams * size
        kept += for_states * size
    reason = (
        f"context {candidate.context:,} tokens ({candidate.reason}), {candidate.streams} of "
        f"{wish.streams} chats at once, {_kv_words(geometry, candidate, wish)}, "
        f"pages of {PAGE_ROWS} rows"
    )
    return [
        PlanLine(pool=pool, owner=KV_PAGES, bytes=running, reason=reason),
        PlanLine(pool=pool, owner=KEPT_STATES, bytes=kept, reason=_states_words(candidate, wish)),
    ]


def _kv_words(geometry: Geometry, candidate: Candidate, wish: Wish) -> str:
    if candidate.kv_format is not KvFormat.FP8:
        return f"K and V as {candidate.kv_format.value}"
    if wish.kv == "fp8":
        return "K and V in 8 bits as asked"
    return f"K and V in 8 bits, as {geometry.kv_format.value} does not fit"


def _states_words(candidate: Candidate, wish: Wish) -> str:
    if not candidate.states:
        return "no room beyond one running chat: every turn reads its conversation again"
    states = f"room for about {candidate.states} kept prompt states"
    wanted = wanted_states(wish.streams)
    if candidate.states < wanted:
        states += (
            f", fewer than the {wanted} that {wish.streams} chats at once should have: going back "
            f"and forth between chats may read some of them again"
        )
    return states


def _recurrent_line(pool: str, recurrent: RecurrentSpec, candidate: Candidate) -> PlanLine:
    reason = (
        f"{candidate.slots} of {recurrent.stream_bytes:,} bytes, whatever the context: "
        f"{candidate.streams} for running chats, {candidate.states} for kept prompt states"
    )
    size = candidate.slots * recurrent.stream_bytes
    return PlanLine(pool=pool, owner=RECURRENT, bytes=size, reason=reason)
