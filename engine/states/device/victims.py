"""What goes first where memory is needed: a pure choice among the states on the device.

States of conversations that are open or running go only where no other can, those that a person
pinned after them and only for a request, never for another state. Within each of these: first what
a longer state of the same conversation supersedes, the oldest first; then whatever was used least
recently, what several conversations share like the rest.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from engine.states.device.held import HeldState, common_rows
from engine.states.records import Role, StateRecord

NOBODY: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Standing:
    """Whose states are worth more than others.

    Attributes:
        open: conversations that a window shows.
        running: conversations of which a request runs.
        pinned: conversations that a person pinned.
    """

    open: frozenset[str] = NOBODY
    running: frozenset[str] = NOBODY
    pinned: frozenset[str] = NOBODY


class _Worth(IntEnum):
    OTHERS = 0
    OPEN = 1
    PINNED = 2


def victims(
    states: Collection[HeldState],
    standing: Standing,
    coming: StateRecord | None = None,
    *,
    for_request: bool,
) -> list[HeldState]:
    """The states that may go, in the order in which they should.

    Args:
        coming: what is to be kept in their place; supersedes as if it were kept.
        for_request: whether a request needs the memory, not a state.
    """
    kept = _rewinds_in_use(states, standing.running)
    ranks = {
        state: (_worth(state, standing), *_age(state, states, coming))
        for state in states
        if not state.pins and state not in kept
    }
    if not for_request:
        ranks = {state: rank for state, rank in ranks.items() if rank[0] is not _Worth.PINNED}
    return sorted(ranks, key=ranks.__getitem__)


def superseded(
    state: HeldState, states: Collection[HeldState], coming: StateRecord | None = None
) -> bool:
    """Whether a longer state of the same conversation begins with this one."""
    if state.record.role is Role.SHARED:
        return False
    longer = [
        other.record.ids
        for other in states
        if other.at > state.at and other.conversations & state.conversations
    ]
    if coming is not None and coming.at > state.at and coming.conversation in state.conversations:
        longer.append(coming.ids)
    return any(common_rows(state.record.ids, ids) == state.at for ids in longer)


def _age(
    state: HeldState, states: Collection[HeldState], coming: StateRecord | None
) -> tuple[bool, int]:
    """Superseded ones first, by their birth; the others by their last use."""
    if superseded(state, states, coming):
        return False, state.born
    return True, state.used


def _worth(state: HeldState, standing: Standing) -> _Worth:
    if state.conversations & standing.pinned:
        return _Worth.PINNED
    if state.conversations & (standing.open | standing.running):
        return _Worth.OPEN
    return _Worth.OTHERS


def _rewinds_in_use(states: Collection[HeldState], running: frozenset[str]) -> frozenset[HeldState]:
    """Of each running conversation the latest start of a user message: a retry would need it."""
    latest: dict[str, HeldState] = {}
    for state in states:
        if state.record.role is Role.REWIND:
            for conversation in state.conversations & running:
                before = latest.get(conversation)
                if before is None or state.born > before.born:
                    latest[conversation] = state
    return frozenset(latest.values())
