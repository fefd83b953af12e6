"""The planner: facts about machine, checkpoint and wish to a plan, or a refusal with numbers.

Pure. It needs metadata only, so a plan can be shown before weights are read or even downloaded.
Today one rung stands: everything resident in RAM.

KV bytes are those of whole pages: a full group holds every row of a stream, a sliding one at most
window + chunk rows and what alignment adds (``engine.cache.lane.most_live_pages``). A recurrent
state takes the same bytes whatever the context, one slot a running stream and one a kept state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from engine.cache.formats import PAGE_ROWS, KvFormat, page_bytes
from engine.cache.lane import most_live_pages
from engine.cache.pages import pages_for
from engine.memory.ledger import PoolCensus
from engine.models.spec import PageGroupSpec, RecurrentSpec
from engine.protocol import PlanLine

DEFAULT_CONTEXT: Final = 8192
LEAST_CONTEXT: Final = 1024
STATES_A_STREAM: Final = 4
LEAST_STATES: Final = 8


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a model takes besides its pages, in bytes of the pool that computes.

    Attributes:
        workspace_page_bytes: workspace on top for each page of the longest context.
        weights: how they lie in memory, for the plan.
    """

    weight_bytes: int
    workspace_bytes: int
    workspace_page_bytes: int = 0
    weights: str = "laid out in memory for this processor"

    def workspace(self, context_tokens: int) -> int:
        """Bytes of workspace for streams of so many tokens."""
        return self.workspace_bytes + self.workspace_page_bytes * pages_for(context_tokens)


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user asked for.

    Attributes:
        context_tokens: None lets the planner choose.
        streams: chats that may run at once.
    """

    context_tokens: int | None
    streams: int


@dataclass(frozen=True, slots=True)
class Geometry:
    """The facts of a checkpoint and a backend that the page sizes follow from.

    Attributes:
        chunk_rows: prompt rows computed at a time.
        kv_format: how K and V are stored.
        recurrent: None for a model without recurrent layers.
    """

    groups: Sequence[PageGroupSpec]
    context_tokens: int
    chunk_rows: int
    kv_format: KvFormat
    recurrent: RecurrentSpec | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be allocated; ``page_counts`` has one entry a group.

    Attributes:
        slot_count: of recurrent states; 0 for a model without recurrent layers.
    """

    context_tokens: int
    page_counts: tuple[int, ...]
    lines: tuple[PlanLine, ...]
    slot_count: int = 0


@dataclass(frozen=True, slots=True)
class Refused:
    """The least that would serve the wish does not fit; ``lines`` say what that least is."""

    pool: str
    needed_bytes: int
    free_bytes: int
    context_tokens: int
    lines: tuple[PlanLine, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One way to lay out the pages: chats at full length and kept states beyond them."""

    context: int
    streams: int
    states: int
    reason: str

    def pages(self, group: PageGroupSpec, chunk_rows: int) -> tuple[int, int]:
        """Pages of one group for the running chats, and for the kept states."""
        live = most_live_pages(group.window, self.context, chunk_rows)
        if group.window is None:
            return self.streams * live, (pages_for(self.context) if self.states else 0)
        a_state = min(live, pages_for(group.window - 1) + 1)
        return self.streams * live, self.states * a_state

    @property
    def slots(self) -> int:
        """Recurrent slots, where the model needs them."""
        return self.streams + self.states


def plan_placement(
    pool: PoolCensus, footprint: Footprint, geometry: Geometry, wish: Wish
) -> Plan | Refused:
    """Choose context and page counts for one pool.

    An asked context may take all the room; a chosen one leaves half of it to other programs.
    """
    candidate = None
    for candidate in _candidates(geometry, wish):
        lines = _lines(pool.name, footprint, geometry, candidate, wish)
        fixed = footprint.weight_bytes + footprint.workspace(candidate.context)
        room = pool.free_bytes - fixed
        budget = room if wish.context_tokens is not None else room // 2
        if _stream_bytes(geometry, candidate) <= budget:
            counts = tuple(
                sum(candidate.pages(group, geometry.chunk_rows)) for group in geometry.groups
            )
            slots = 0 if geometry.recurrent is None else candidate.slots
            return Plan(candidate.context, counts, lines, slots)
    assert candidate is not None
    return _refused(pool, candidate, lines)


def _candidates(geometry: Geometry, wish: Wish) -> Iterator[_Candidate]:
    """Layouts from the best to the least that serves the wish."""
    longest = geometry.context_tokens
    if wish.context_tokens is not None:
        context = min(longest, wish.context_tokens)
        reason = "as asked" if context == wish.context_tokens else "all the model was made for"
        yield from _fewer_streams(geometry, context, wish.streams, reason)
        return
    context = min(longest, DEFAULT_CONTEXT)
    reason = "all the model was made for" if context == longest else "the usual length"
    while True:
        yield from _fewer_streams(geometry, context, wish.streams, reason)
        if context <= LEAST_CONTEXT:
            return
        context = max(LEAST_CONTEXT, context // 2)
        reason = "shortened so that other programs keep half of the free memory"


def _fewer_streams(
    geometry: Geometry, context: int, streams: int, reason: str
) -> Iterator[_Candidate]:
    """Fewer chats at once and, where each kept state takes a slot, fewer of those before that."""
    most = max(LEAST_STATES, STATES_A_STREAM * streams)
    while True:
        states = most
        while states > streams and geometry.recurrent is not None:
            yield _Candidate(context, streams, states, reason)
            states = max(streams, states // 2)
        yield _Candidate(context, streams, states, reason)
        if streams == 1:
            break
        streams //= 2
    yield _Candidate(context, 1, 0, reason)


def _stream_bytes(geometry: Geometry, candidate: _Candidate) -> int:
    """Bytes of pages and slots."""
    pages = sum(
        sum(candidate.pages(group, geometry.chunk_rows)) * page_bytes(group, geometry.kv_format)
        for group in geometry.groups
    )
    recurrent = geometry.recurrent
    return pages + (0 if recurrent is None else candidate.slots * recurrent.stream_bytes)


def _lines(
    pool: str, footprint: Footprint, geometry: Geometry, candidate: _Candidate, wish: Wish
) -> tuple[PlanLine, ...]:
    running = kept = 0
    for group in geometry.groups:
        size = page_bytes(group, geometry.kv_format)
        for_streams, for_states = candidate.pages(group, geometry.chunk_rows)
        running += for_streams * size
        kept += for_states * size
    rows = f"prompts are computed {geometry.chunk_rows} rows at a time"
    chats = f"{candidate.streams} of {wish.streams} chats at once"
    context = f"context {candidate.context:,} tokens ({candidate.reason})"
    states = f"room for about {candidate.states} kept prompt states"
    found: list[tuple[str, int, str]] = [
        ("weights", footprint.weight_bytes, footprint.weights),
        ("workspace", footprint.workspace(candidate.context), rows),
        ("KV pages", running, f"{context}, {chats}, pages of {PAGE_ROWS} rows"),
        ("kept states", kept, states if candidate.states else "no room beyond one running chat"),
    ]
    if geometry.recurrent is not None:
        found.append(_recurrent_line(geometry.recurrent, candidate))
    return tuple(
        PlanLine(pool=pool, owner=owner, bytes=size, reason=reason) for owner, size, reason in found
    )


def _recurrent_line(recurrent: RecurrentSpec, candidate: _Candidate) -> tuple[str, int, str]:
    reason = (
        f"{candidate.slots} of {recurrent.stream_bytes:,} bytes, whatever the context: "
        f"{candidate.streams} for running chats, {candidate.states} for kept prompt states"
    )
    return "recurrent states", candidate.slots * recurrent.stream_bytes, reason


def _refused(pool: PoolCensus, least: _Candidate, lines: tuple[PlanLine, ...]) -> Refused:
    needed = sum(line.bytes for line in lines)
    holders = ", ".join(f"{owner} {size:,}" for owner, size in pool.holders) or "nobody"
    return Refused(
        pool=pool.name,
        needed_bytes=needed,
        free_bytes=pool.free_bytes,
        context_tokens=least.context,
        lines=lines,
        sentence=(
            f"The model needs at least {needed:,} bytes of {pool.name} for a context of "
            f"{least.context:,} tokens; {pool.free_bytes:,} of {pool.capacity_bytes:,} are free "
            f"(held: {holders})."
        ),
    )
