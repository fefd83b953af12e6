"""Which states go first, and how much the disk tier may take. Pure.

Deleted first are states that a longer one of the same conversation has overtaken, then the least
recently used, then what several conversations begin with, and last those of open conversations.
Pinned ones and those being read stay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import numpy as np

from engine.states.disk.catalogue import Catalogue, Kept, Shelf
from engine.states.records import Role

DEFAULT_QUOTA_BYTES: Final = 20_000_000_000
FREE_SHARE: Final = 10
SPARED_BYTES: Final = 1024**3
"""Of the disk's free space, left alone even where a person set the quota."""
KEPT_OVERTAKEN: Final = 3
"""Overtaken states that stay with a conversation where a state cannot be cut."""
KEPT_BEFORE_LAST: Final = 1
"""The same where it can: the last one serves another reply to the last message without a page to be
read again, and costs no more than its own last page."""


def quota_bytes(wished: int | None, free_bytes: int, held_bytes: int) -> int:
    """What the disk tier may take; it shrinks as the disk fills.

    Args:
        wished: what a person set, None for the default: 20 GB, at most a tenth of what is free and
            held.
    """
    room = free_bytes + held_bytes
    if wished is None:
        return min(DEFAULT_QUOTA_BYTES, room // FREE_SHARE)
    return min(wished, max(0, room - SPARED_BYTES))


def victims(catalogue: Catalogue) -> list[tuple[Shelf, Kept]]:
    """Every state that may be evicted, the first to go first."""
    overtaken = {id(kept) for shelf in catalogue.shelves.values() for kept in all_overtaken(shelf)}

    def place(found: tuple[Shelf, Kept]) -> tuple[bool, int, float]:
        shelf, kept = found
        is_open = shelf is catalogue.opened and bool(
            kept.conversations & catalogue.open_conversations
        )
        rank = 2 if kept.record.role is Role.SHARED else 0 if id(kept) in overtaken else 1
        return is_open, rank, kept.used_s

    free = (each for each in catalogue.all() if not each[1].pinned_by and not each[1].readers)
    return sorted(free, key=place)


def surplus(shelf: Shelf, conversations: Iterable[str]) -> list[Kept]:
    """Overtaken states of conversations beyond those worth keeping, and not being read.

    One that was kept for another conversation as well stays.
    """
    spare = KEPT_BEFORE_LAST if shelf.can_cut else KEPT_OVERTAKEN
    found = []
    for conversation in conversations:
        mine = [k for k in overtaken(_states_of(shelf, conversation)) if not k.readers]
        mine.sort(key=lambda kept: kept.used_s, reverse=True)
        found += [k for k in mine[spare:] if k.conversations == {conversation}]
    return found


def all_overtaken(shelf: Shelf) -> list[Kept]:
    """Those of a shelf's states that are overtaken in each of their conversations."""
    by_conversation: dict[str, list[Kept]] = {}
    for kept in shelf.states.values():
        for conversation in kept.conversations:
            by_conversation.setdefault(conversation, []).append(kept)
    times: dict[int, int] = {}
    for states in by_conversation.values():
        for kept in overtaken(states):
            times[id(kept)] = times.get(id(kept), 0) + 1
    return [k for k in shelf.states.values() if times.get(id(k), -1) == len(k.conversations)]


def overtaken(states: Collection[Kept]) -> list[Kept]:
    """States that a longer one of the same role begins with; of REWIND the last one stays.

    Only by one whose file is written: until then a kill would leave neither.
    """
    found = []
    for role in (Role.END, Role.REWIND):
        mine = [kept for kept in states if kept.record.role is role]
        mine.sort(key=lambda kept: kept.record.at)
        found += [
            kept
            for place, kept in enumerate(mine)
            if any(_begins(longer, kept) for longer in mine[place + 1 :])
        ]
    return found


def _begins(longer: Kept, shorter: Kept) -> bool:
    at = shorter.record.at
    is_on_disk = longer.manifest_bytes > 0 and not longer.doomed
    return (
        is_on_disk
        and longer.record.at > at
        and bool(np.array_equal(longer.record.ids[:at], shorter.record.ids))
    )


def _states_of(shelf: Shelf, conversation: str) -> list[Kept]:
    return [kept for kept in shelf.states.values() if conversation in kept.conversations]
