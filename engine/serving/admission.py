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
from engine.protocol import Reason
from engine.serving.reply import Clock
from engine.serving.request import Phase, Request, Stream
from engine.states.lookup import Found
from engine.states.marks import choose_marks
from engine.states.records import Role
from engine.states.resume import Resume, ResumeStatus
from engine.states.store import StateStore

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

    Afterwards it fills, or resumes where a part of its state lies below the device.

    Args:
        alone: nothing else runs, so rather than be refused it begins afresh, whose pages fit where
            those beside a held state do not.
    """
    request, states = stream.request, served.states
    # A template's own words before a message, and the grid, cost up to a grid more: not little.
    history_tokens = max(0, request.history_tokens - served.runner.grid_rows)
    found = states.find(request.ids, request.conversation, history_tokens)
    if request.is_side and found.hit is not None:
        found = found.afresh("no-room")
    lane = _open_lane(stream, served, found)
    if not isinstance(lane, Lane) and found.at and alone:
        found = found.afresh("no-room")
        lane = _open_lane(stream, served, found)
    if not isinstance(lane, Lane):
        return lane
    stream.lane = lane
    stream.course.reason = _reason(stream, found)
    stream.course.admitted_ns = clock()
    # Work beside a chat begins at a state without a trace in the store.
    untold = Resume(found.at, found.tier)
    stream.resume = untold if request.is_side else states.begin_resume(found, lane)
    if stream.resume.status is ResumeStatus.DONE:
        take_resumed(stream, served)
    else:
        stream.phase = Phase.RESUMING
    return None


def take_resumed(stream: Stream, served: Served) -> None:
    """A stream's state is in its lane: what comes after it is to be computed."""
    resume, course, request = stream.resume, stream.course, stream.request
    if resume is None:
        raise InvariantBroken(f"Request {request.number} resumed nothing.")
    stream.position = course.resumed_tokens = resume.at
    course.resumed_from = resume.tier
    course.resumed_bytes = resume.read_bytes
    course.resumed_ms = resume.ms
    stream.phase = Phase.FILLING
    if request.keeps_states:
        marks = marks_of(request, served.runner.grid_rows, resume.at)
        stream.marks = served.states.reserve(request.ids, marks)


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


def _reason(stream: Stream, found: Found) -> Reason | None:
    """Why little was resumed; the store knows nothing of templates and of what dropped out."""
    request = stream.request
    if stream.course.damaged:
        return "damaged"
    if found.reason in ("no-common-prefix", "edited"):
        if request.dropped_messages:
            return "context-full"
        if request.other_template:
            return "template"
        if request.rewritten_from is not None:
            return "history-rewritten"
    return found.reason


def _open_lane(stream: Stream, served: Served, found: Found) -> Lane | LaneRefused:
    rows, states = served.runner.chunk_rows, served.states
    with states.pinned(found):
        while True:
            lane = Lane.open(served.memory, stream.need_rows, rows, found.held)
            if isinstance(lane, Lane):
                return lane
            # Work beside a chat takes no state from any; one that lies below as well is no loss.
            if not states.reclaim(lane, only_spare=stream.request.is_side):
                return lane


def open_lane(stream: Stream) -> Lane:
    """The lane of a stream that runs."""
    if stream.lane is None:
        raise InvariantBroken(f"Request {stream.request.number} runs without a lane.")
    return stream.lane


def close_lane(stream: Stream) -> None:
    """Give a stream's memory back; may be repeated."""
    resume, stream.resume = stream.resume, None
    lane, stream.lane = stream.lane, None
    if resume is not None:
        resume.close()
    if lane is not None:
        lane.close()


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
