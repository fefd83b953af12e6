"""What the store tells of itself: counts, the tier of each chat, and facts for the person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from engine.protocol import ChatTier, Reason, StateFacts, Tier
from engine.states.device.held import HeldState

QUICKNESS: tuple[Tier, ...] = ("none", "disk", "host", "device")


@dataclass(slots=True, eq=False)
class Counts:
    """What the store has done since it opened.

    Attributes:
        hits: resumes by tier; misses: prompts of which little was resumed, by reason.
        kept, evicted: states on the device.
        refused: states for which there was no room.
        failed: states that the device failed to keep or to bring back.
        damaged: states that could not be read back.
    """

    hits: Counter[Tier] = field(default_factory=Counter)
    misses: Counter[Reason] = field(default_factory=Counter)
    kept: int = 0
    evicted: int = 0
    refused: int = 0
    failed: int = 0
    damaged: int = 0


@dataclass(frozen=True, slots=True)
class StoreCensus:
    """What the store holds and has done since it opened; pages are counted once each.

    Attributes:
        device_bytes, host_bytes, disk_bytes: what states take of each tier.
        waiting_bytes: what of the device is still to be copied down, and of the host to be written.
        hits, misses: (tier, resumes) and (reason, prompts); for the rest see ``Counts``.
    """

    states: int
    pages: int
    slots: int
    pinned: int
    device_bytes: int
    host_bytes: int
    disk_bytes: int
    waiting_bytes: int
    kept: int
    evicted: int
    refused: int
    failed: int
    damaged: int
    hits: tuple[tuple[Tier, int], ...]
    misses: tuple[tuple[Reason, int], ...]

    def line(self) -> str:
        """All of it as one part of a log line."""
        words = [f"hits_{tier}={count}" for tier, count in self.hits]
        words += [f"missed_{reason}={count}" for reason, count in self.misses]
        return (
            f"states={self.states} state_pages={self.pages} state_slots={self.slots} "
            f"device_bytes={self.device_bytes} host_bytes={self.host_bytes} "
            f"disk_bytes={self.disk_bytes} waiting_bytes={self.waiting_bytes} kept={self.kept} "
            f"evicted={self.evicted} refused={self.refused} failed={self.failed} "
            f"damaged={self.damaged} {' '.join(words)}"
        ).rstrip()


def chat_tiers(states: Iterable[HeldState], below: Iterable[ChatTier]) -> tuple[ChatTier, ...]:
    """From where each conversation resumes: its longest state, the quickest tier that has it."""
    found = {chat.conversation: chat for chat in below}
    for state in states:
        for conversation in state.conversations:
            before = found.get(conversation)
            if before is None or state.at >= before.tokens:
                found[conversation] = ChatTier(
                    conversation=conversation, tier="device", tokens=state.at
                )
    return tuple(sorted(found.values(), key=lambda chat: chat.conversation))


def state_facts(
    states: Sequence[HeldState],
    sizes: Sequence[int],
    below: Iterable[StateFacts],
    model: str,
    pinned: frozenset[str],
) -> tuple[StateFacts, ...]:
    """What is kept of every conversation in all tiers, the last used first.

    Args:
        sizes: bytes of each of ``states``.
        below: what the library has, of other models too.
    """
    found = {(facts.conversation, facts.model): facts for facts in below}
    for state, size in zip(states, sizes, strict=True):
        for conversation in state.conversations or (None,):
            key = conversation, model
            mine = StateFacts(
                conversation=conversation,
                model=model,
                tokens=state.at,
                bytes=size,
                own_bytes=0,
                tier="device",
                pinned=conversation in pinned,
                used_s=state.used_s,
            )
            found[key] = _longer(found[key], mine) if key in found else mine
    return tuple(sorted(found.values(), key=lambda facts: -facts.used_s))


def _longer(one: StateFacts, other: StateFacts) -> StateFacts:
    """Both as one: the longer state, the quicker tier where they are equally long."""
    longer = max((one, other), key=lambda facts: (facts.tokens, QUICKNESS.index(facts.tier)))
    return msgspec.structs.replace(
        longer,
        bytes=max(one.bytes, other.bytes),
        own_bytes=max(one.own_bytes, other.own_bytes),
        pinned=one.pinned or other.pinned,
        used_s=max(one.used_s, other.used_s),
    )
