"""Candidates: one way to lay out pages, states and chunks each, from the best to the least.

The list is a chain: from one candidate to the next no context grows, no chat comes back and no rung
gets better. Each needs a fixed number of bytes, so the first that fits can only get better where
there is more memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from engine.cache.formats import KvFormat, page_bytes
from engine.cache.pages import most_live_pages, most_state_pages, pages_for, tail_pages
from engine.memory.placement.facts import Geometry, VisionPart, Wish
from engine.models.spec import PageGroupSpec
from engine.protocol import Placement

USUAL_CONTEXT: Final = 16_384
"""A chosen context gets no shorter for the sake of chunks, kept states or chats at once."""
LEAST_CONTEXT: Final = 4096
STATES_A_STREAM: Final = 4
LEAST_STATES: Final = 8
STREAMED_STATES: Final = 2
"""The end of one chat's history, and the start of its last question."""
WIDE_CHUNK_ROWS: Final = 512
"""Smaller chunks make prompts clearly slower: before them, less of what was chosen is kept."""
WHOLE: Final = "all the model was made for"
STAGED_EXTENTS: Final = 4
"""Of the largest size: two being written to the disk and two being read ahead."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One layout.

    Attributes:
        states: kept prompt states on the device.
        may_crowd: whether it may take what a chosen context leaves to other programs.
        reason: why the context is what it is.
    """

    context: int
    streams: int
    states: int
    chunk_rows: int
    kv_format: KvFormat
    placement: Placement = "resident"
    pictures_apart: bool = False
    may_crowd: bool = True
    reason: str = ""

    def rows(self, geometry: Geometry, vision: VisionPart | None) -> int:
        """The most rows of one chunk, which a picture's rows may make longer."""
        if vision is None or not vision.longest_block_rows:
            return self.chunk_rows
        return self.chunk_rows + vision.longest_block_rows + 2 * geometry.grid_rows

    def pages(self, group: PageGroupSpec, geometry: Geometry, rows: int) -> tuple[int, int]:
        """Pages of one group for the running chats, and for the kept states.

        Kept states share full pages: together they have as many as one chat. Where states are kept
        inside pages each has a last page of its own. To each sliding page that a state holds
        belongs a full one of the same rows, so all together are never more than the full ones.
        """
        live = self.streams * most_live_pages(group.window, self.context, rows)
        shared = pages_for(self.context) if self.states else 0
        full = shared + self.states * tail_pages(geometry.grid_rows)
        if group.window is None:
            return live, full
        kept = self.states * most_state_pages(group.window, self.context, geometry.grid_rows)
        if any(other.window is None for other in geometry.groups):
            kept = min(kept, self.streams * pages_for(self.context) + full - live)
        return live, kept

    @property
    def slots(self) -> int:
        """Recurrent slots, where the model needs them."""
        return self.streams + self.states


def extent_bytes(geometry: Geometry, kv_format: KvFormat) -> int:
    """The largest piece in which states are written and read: a page or a recurrent state."""
    pages = [page_bytes(group, kv_format) for group in geometry.groups]
    return max([*pages, 0 if geometry.recurrent is None else geometry.recurrent.stream_bytes])


def wanted_states(streams: int) -> int:
    """Kept states that so many chats should have room for."""
    return max(LEAST_STATES, STATES_A_STREAM * streams)


def candidates(geometry: Geometry, wish: Wish, vision: VisionPart | None) -> list[Candidate]:
    """Resident layouts from the best to the least that serves the wish; one at least.

    Args:
        vision: what reads pictures, where it can be moved to RAM.
    """
    contexts = list(_contexts(geometry, wish))
    usual = [pair for pair in contexts if pair[0] >= USUAL_CONTEXT] or contexts[:1]
    best = Candidate(
        *(0, wish.streams, wanted_states(wish.streams), geometry.chunk_rows),
        kv_format=KvFormat.FP8 if wish.kv == "fp8" else geometry.kv_format,
        may_crowd=wish.context_tokens is not None,
    )
    chain = [replace(best, context=context, reason=reason) for context, reason in usual]
    chain += _ladder(chain[-1], geometry, wish, vision)
    chain += _fewer(chain[-1])
    last = chain[-1]
    chain += [replace(last, context=tokens, reason=why) for tokens, why in contexts[len(usual) :]]
    chain += _smaller(chain[-1], geometry.least_chunk_rows)
    if not last.may_crowd:
        chain.append(replace(chain[-1], may_crowd=True))
    return [*chain, replace(chain[-1], states=0)]


def thin_candidates(least: Candidate, geometry: Geometry) -> Iterator[Candidate]:
    """What is left to the least candidate where its weights lie elsewhere.

    The largest chunk comes first, as each copies all weights, then the states of one chat.
    """
    for rows in (geometry.chunk_rows, *_halves(geometry.chunk_rows, geometry.least_chunk_rows)):
        for states in (STREAMED_STATES, 1, 0):
            yield replace(least, chunk_rows=rows, states=states, placement="streamed")


def _contexts(geometry: Geometry, wish: Wish) -> Iterator[tuple[int, str]]:
    """(tokens, why), falling."""
    longest = geometry.context_tokens
    if wish.context_tokens is not None:
        context = min(longest, wish.context_tokens)
        yield (
            context,
            "as asked" if context == wish.context_tokens else "all the model was made for",
        )
        return
    yield longest, "all the model was made for"
    context = 1 << max(0, (longest - 1).bit_length() - 1)
    while context >= LEAST_CONTEXT:
        yield context, f"of {longest:,} that the model was made for, as long as memory allows"
        context //= 2


def _ladder(
    candidate: Candidate, geometry: Geometry, wish: Wish, vision: VisionPart | None
) -> Iterator[Candidate]:
    """The rungs that cost speed or exactness before anything that was asked for is cut."""
    for smaller in _smaller(candidate, max(WIDE_CHUNK_ROWS, geometry.least_chunk_rows)):
        candidate = smaller
        yield candidate
    if wish.kv == "full-or-fp8":
        candidate = replace(candidate, kv_format=KvFormat.FP8, placement="fp8-kv")
        yield candidate
    if vision is not None:
        yield replace(candidate, pictures_apart=True, placement="pictures-apart")


def _fewer(candidate: Candidate) -> Iterator[Candidate]:
    """Fewer kept states, down to one a chat, then fewer chats."""
    for states in _halves(candidate.states, candidate.streams):
        candidate = replace(candidate, states=states)
        yield candidate
    for streams in _halves(candidate.streams, 1):
        candidate = replace(candidate, streams=streams)
        yield candidate
        for states in _halves(candidate.states, streams):
            candidate = replace(candidate, states=states)
            yield candidate


def _smaller(candidate: Candidate, least_rows: int) -> Iterator[Candidate]:
    """Smaller chunks, down to ``least_rows``."""
    further = candidate.placement if candidate.placement != "resident" else "smaller-chunks"
    for rows in _halves(candidate.chunk_rows, least_rows):
        yield replace(candidate, chunk_rows=rows, placement=further)


def _halves(number: int, least: int) -> Iterator[int]:
    """What halving gives, down to ``least``."""
    while number > least:
        number = max(least, number // 2)
        yield number
