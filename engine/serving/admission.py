"""Admission: may a request run, how long may its reply be, and from which kept state does it begin.

A stream's whole need of pages is promised, and its recurrent slot taken, before it begins, so none
is ever interrupted for want of memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.cache.lane import Lane, LaneMemory, LaneRefused, SlotsRefused
from engine.cache.pages import PagePool
from engine.cache.slots import SlotPool
from engine.errors import InvariantBroken, MemoryRefused, RequestInvalid
from engine.serving.reply import Clock
from engine.serving.request import Request, Stream
from engine.states.marks import choose_marks
from engine.states.records import Role
from engine.states.store import KeptState, StateStore

# Torch takes a second to import and must not delay the handshake.
if TYPE_CHECKING:
    from engine.runner import Runner


@dataclass(frozen=True, slots=True)
class Shortage:
    """Memory that a request waits for, in bytes."""

    needed_bytes: int
    free_bytes: int


@dataclass(frozen=True, slots=True)
class Served:
    """What serving needs of a loaded model, which owns it."""

    runner: Runner
    memory: LaneMemory
    states: StateStore
    context_tokens: int
    stream_limit: int

    @property
    def pools(self) -> tuple[PagePool, ...]:
        """The pages, by group."""
        return self.memory.pools

    @property
    def slots(self) -> SlotPool | None:
        """None for a model without recurrent layers."""
        return self.memory.slots


def reply_limit(request: Request, context_tokens: int) -> int:
    """Tokens that the reply may have; raises RequestInvalid where the prompt does not fit."""
    room = context_tokens - request.prompt_tokens
    if request.prompt_tokens == 0:
        raise RequestInvalid("The prompt is empty, and this model has no token to begin with.")
    if room <= 0:
        raise RequestInvalid(
            f"The prompt has {request.prompt_tokens:,} tokens; the context of {context_tokens:,} "
            f"leaves no room for a reply.",
            needed_tokens=request.prompt_tokens + 1,
            context_tokens=context_tokens,
        )
    return room if request.max_tokens is None else min(room, request.max_tokens)


def open_stream(stream: Stream, served: Served, clock: Clock, *, alone: bool) -> LaneRefused | None:
    """Open a stream's lane, at a kept state where one fits; evicts other states to make room.

    Args:
        alone: nothing else runs, so rather than be refused it begins afresh, whose pages fit where
            those beside a held state do not.
    """
    found = served.states.find(stream.request.ids)
    state, reason = found.state, found.reason
    lane = _open_lane(stream, served, state)
    if not isinstance(lane, Lane) and state is not None and alone:
        state, reason = None, "no-room"
        lane = _open_lane(stream, served, None)
    if not isinstance(lane, Lane):
        return lane
    stream.lane = lane
    stream.position = stream.course.resumed_tokens = lane.length
    rewritten = reason == "no-common-prefix" and stream.request.rewritten_from is not None
    stream.course.reason = "history-rewritten" if rewritten else reason
    stream.course.admitted_ns = clock()
    request = stream.request
    if request.keeps_states:
        stream.marks = marks_of(request, served.runner.grid_rows, lane.length)
    return None


def marks_of(request: Request, grid_rows: int, resumed_tokens: int) -> dict[int, Role]:
    """Where states of a request's prompt are kept, and what each is good for.

    Where two wishes come to lie on one grid point the first one names it; what nobody named, the
    last grid point inside the prompt, is the end of the conversation so far.
    """
    wanted = request.wanted_marks
    named = {mark.at // grid_rows * grid_rows: mark.role for mark in reversed(wanted)}
    places = choose_marks(
        request.prompt_tokens, [mark.at for mark in wanted], grid_rows, resumed_tokens
    )
    return {at: named.get(at, Role.END) for at in places}


def _open_lane(stream: Stream, served: Served, state: KeptState | None) -> Lane | LaneRefused:
    held = None if state is None else state.held
    rows = served.runner.chunk_rows
    with served.states.pinned(state):
        while True:
            lane = Lane.open(served.memory, stream.need_rows, rows, held)
            if isinstance(lane, Lane) or stream.request.is_side:
                return lane
            if not served.states.reclaim(lane):
                return lane


def open_lane(stream: Stream) -> Lane:
    """The lane of a stream that runs."""
    if stream.lane is None:
        raise InvariantBroken(f"Request {stream.request.number} runs without a lane.")
    return stream.lane


def can_never_fit(refused: LaneRefused, served: Served) -> bool:
    """Whether not even an engine with nothing in it has what was refused."""
    if isinstance(refused, SlotsRefused):
        return refused.slot_count == 0
    return refused.needed_pages > served.pools[refused.group].page_count


def shortage_of(refused: LaneRefused, served: Served) -> Shortage:
    """What was refused, in bytes."""
    device = served.memory.device
    if isinstance(refused, SlotsRefused):
        return Shortage(device.slot_bytes, 0)
    size = device.page_bytes(refused.group)
    return Shortage(refused.needed_pages * size, max(0, refused.available_pages) * size)


def never_fits(refused: LaneRefused, served: Served) -> MemoryRefused:
    """The error for a request that an idle engine has no room for."""
    short = shortage_of(refused, served)
    if isinstance(refused, SlotsRefused):
        return MemoryRefused(
            f"The request needs a recurrent slot; none of {refused.slot_count} is free although "
            f"nothing else runs.",
            slot_count=refused.slot_count,
            needed_bytes=short.needed_bytes,
            free_bytes=short.free_bytes,
        )
    return MemoryRefused(
        f"The request needs {refused.needed_pages} pages of context; "
        f"{refused.available_pages} are free and nothing else runs.",
        needed_pages=refused.needed_pages,
        available_pages=refused.available_pages,
        needed_bytes=short.needed_bytes,
        free_bytes=short.free_bytes,
    )
