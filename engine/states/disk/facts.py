"""What is kept, as it is shown to people: a row a conversation and model. Pure.

Called while holding the catalogue's lock.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from engine.protocol import ChatTier, StateFacts, Tier
from engine.states.disk.catalogue import Catalogue, Kept, Shelf, file_bytes
from engine.states.records import ExtentName


def chat_tiers(shelf: Shelf, host: Container[ExtentName]) -> tuple[ChatTier, ...]:
    """Of each conversation its longest state: how many tokens, and the slowest tier of it."""
    longest: dict[str, Kept] = {}
    for kept in _standing(shelf):
        for conversation in kept.conversations:
            best = longest.get(conversation)
            if best is None or kept.record.at > best.record.at:
                longest[conversation] = kept
    return tuple(
        ChatTier(conversation=each, tier=_tier(kept, host), tokens=kept.record.at)
        for each, kept in sorted(longest.items())
    )


def state_facts(catalogue: Catalogue, host: Container[ExtentName]) -> tuple[StateFacts, ...]:
    """What is kept of each conversation under each model, the last used first.

    Args:
        host: extents of the opened shelf that are in memory too.
    """
    groups: dict[tuple[str | None, str], list[tuple[Shelf, Kept]]] = {}
    for shelf in catalogue.shelves.values():
        for kept in _standing(shelf):
            for conversation in kept.conversations or (None,):
                groups.setdefault((conversation, shelf.model), []).append((shelf, kept))
    rows = [
        _row(conversation, model, found, host if catalogue.opened is not None else ())
        for (conversation, model), found in groups.items()
    ]
    return tuple(sorted(rows, key=lambda row: row.used_s, reverse=True))


def shared_bytes(catalogue: Catalogue) -> int:
    """Bytes on the disk in extents that several states name."""
    return sum(
        file_bytes(extent.size_bytes)
        for shelf in catalogue.shelves.values()
        for extent in shelf.extents.values()
        if extent.states > 1 and extent.written
    )


def _row(
    conversation: str | None,
    model: str,
    found: list[tuple[Shelf, Kept]],
    host: Container[ExtentName],
) -> StateFacts:
    shelf, longest = max(found, key=lambda each: each[1].record.at)
    is_open = shelf.forgotten is not None
    mine = [each for each in found if len(each[1].conversations) <= 1]
    return StateFacts(
        conversation=conversation,
        model=model,
        tokens=longest.record.at,
        bytes=_extent_bytes(found),
        own_bytes=_own_bytes(mine),
        tier=_tier(longest, host) if is_open else "disk",
        pinned=any(conversation in kept.pinned_by for _, kept in found),
        used_s=max(kept.used_s for _, kept in found),
    )


def _extent_bytes(found: list[tuple[Shelf, Kept]]) -> int:
    """Of every extent that these states name, each counted once."""
    names = {(id(shelf), name): shelf for shelf, kept in found for name in kept.record.extents}
    return sum(shelf.extents[name].size_bytes for (_, name), shelf in names.items())


def _own_bytes(found: list[tuple[Shelf, Kept]]) -> int:
    """What deleting these states would free on the disk."""
    return sum(
        shelf.freed_bytes([kept for each, kept in found if each is shelf])
        for shelf in {id(shelf): shelf for shelf, _ in found}.values()
    )


def _tier(kept: Kept, host: Container[ExtentName]) -> Tier:
    return "host" if all(name in host for name in kept.record.extents) else "disk"


def _standing(shelf: Shelf) -> Iterable[Kept]:
    return (kept for kept in shelf.states.values() if not kept.doomed)
