"""Request and Stream: the facts of one generation, and where it stands.

A request is frozen once its prompt is tokens. A stream is its run: waiting for memory, resuming (a
kept state is copied into its lane), filling (its prompt is being computed), decoding, ended. Used
from the engine thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.cache.lane import Lane
from engine.protocol import Reason, Region, Tier, ToolCall
from engine.sampling.keyed import DrawRule
from engine.sampling.penalties import Penalties, PenaltyRule
from engine.states.records import Role
from engine.states.resume import Resume

Piece = tuple[Region, str]
"""Whole characters of a reply, after the region they belong to."""


class ReplyText(Protocol):
    """Turns the ids of one reply into text; ``engine.text.stream`` is the real one."""

    @property
    def stopped(self) -> bool:
        """Whether a stop string was met; nothing after it is text."""

    @property
    def tool_calls(self) -> Sequence[ToolCall]:
        """The tool calls that were read."""

    def push(self, token: int, /) -> Sequence[Piece]:
        """What is certain to be text after one more token."""

    def finish(self) -> Sequence[Piece]:
        """What was held back."""


@dataclass(frozen=True, slots=True)
class WantedMark:
    """A place in a prompt where a kept state would be worth much, and what for."""

    at: int
    role: Role


@dataclass(frozen=True, slots=True)
class Request:
    """One generation, ready to run.

    Attributes:
        number: the request's number on the wire.
        ids: the prompt, at least one token.
        max_tokens: None runs to the context's end.
        end_ids: tokens that end the turn.
        wanted_marks: token counts at which a kept state would be worth most, the best one first.
        rewritten_from: the first message that the prompt shows otherwise than the turn before did.
        arrived_ns: when its frame was read, on the monotonic clock.
        conversation: the chat under whose name states are kept; None keeps none.
        is_side: work beside a chat: it waits for every chat, keeps no state and displaces none.
        dropped_messages: the oldest turns that were left out because the context is full.
        other_template: whether replies before it were written under another chat template.
        begun_tokens: how many of the last ids are the beginning of the reply, which goes on.
    """

    number: int
    ids: NDArray[np.int32]
    rule: DrawRule
    penalties: PenaltyRule
    max_tokens: int | None
    end_ids: frozenset[int]
    suppressed_ids: tuple[int, ...]
    wanted_marks: tuple[WantedMark, ...]
    template_hash: str | None
    notes: tuple[str, ...]
    arrived_ns: int
    rewritten_from: int | None = None
    conversation: str | None = None
    is_side: bool = False
    dropped_messages: int = 0
    other_template: bool = False
    begun_tokens: int = 0

    @property
    def begun_ids(self) -> Sequence[int]:
        """The beginning of the reply; empty for one that is new."""
        found: list[int] = self.ids[len(self.ids) - self.begun_tokens :].tolist()
        return found

    @property
    def keeps_states(self) -> bool:
        """Whether states of its prompt are kept."""
        return self.conversation is not None and not self.is_side

    @property
    def history_tokens(self) -> int:
        """What an earlier turn may have left behind: all before the last user message."""
        starts = (mark.at for mark in self.wanted_marks if mark.role is Role.REWIND)
        return next(starts, 0)

    @property
    def prompt_tokens(self) -> int:
        """Length of the prompt."""
        return len(self.ids)


class Phase(Enum):
    """Where a stream stands; it moves forward, or back to waiting to begin afresh."""

    WAITING = "waiting"
    RESUMING = "resuming"
    FILLING = "filling"
    DECODING = "decoding"
    ENDED = "ended"


@dataclass(slots=True, eq=False)
class Course:
    """Times of one stream on the monotonic clock, and what a kept state spared it.

    Attributes:
        resumed_from: the slowest tier from which a part of the state came.
        resumed_bytes: read from there.
        damaged: whether a kept state turned out to be none.
    """

    admitted_ns: int | None = None
    filled_ns: int | None = None
    last_token_ns: int | None = None
    resumed_tokens: int = 0
    resumed_from: Tier = "none"
    resumed_bytes: int = 0
    resumed_ms: float = 0.0
    reason: Reason | None = None
    damaged: bool = False


@dataclass(slots=True, eq=False)
class Stream:
    """A request and its run.

    Attributes:
        limit: tokens that the reply may have.
        position: prompt rows computed so far; only meaningful while filling.
        marks: where to keep the prompt's state, and what for.
        resume: brings a kept state into the lane; None before and where there is none.
        drawn: tokens drawn since the prompt was computed; fewer than were said where the stream
            began afresh.
        overtaken: chunks of other prompts since its own last one, or since it was admitted.
    """

    request: Request
    limit: int
    penalties: Penalties
    phase: Phase = Phase.WAITING
    lane: Lane | None = None
    resume: Resume | None = None
    position: int = 0
    marks: dict[int, Role] = field(default_factory=dict)
    drawn: int = 0
    overtaken: int = 0
    cancelled: bool = False
    course: Course = field(default_factory=Course)

    @property
    def need_rows(self) -> int:
        """Rows whose K and V the stream writes at most: the last token's are never needed."""
        return self.request.prompt_tokens + self.limit - 1


def penalties_of(request: Request) -> Penalties:
    """What edits the logits of a stream that has drawn nothing yet."""
    penalties = Penalties(request.penalties, request.ids.tolist(), request.suppressed_ids)
    for token in request.begun_ids:
        penalties.count(token)
    return penalties
