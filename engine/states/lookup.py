"""What a prompt can resume, and in one word why it is little."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.cache.formats import PAGE_ROWS
from engine.cache.lane import LaneMemory, LaneState
from engine.protocol import Reason, StateFacts, Tier
from engine.states.border import Hit, StateArchive
from engine.states.device.held import HeldState, HeldStates
from engine.states.records import prefix_digests

REMEMBERED_LOSSES: Final = 1024


@dataclass(frozen=True, slots=True)
class LowerTiers:
    """What lies below the device for the loaded model; who opened the archive closes it.

    Attributes:
        model: the checkpoint's name, as in ``facts``.
        facts: what the library had of every model as this one was loaded.
    """

    archive: StateArchive
    model: str
    facts: tuple[StateFacts, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt that looks for a state.

    Attributes:
        ids: its tokens; at least one row is always left to be computed.
        conversation: the chat it continues; None for none.
        history_tokens: what of it an earlier turn may have left behind: up to the start of its last
            user message.
    """

    ids: NDArray[np.int32]
    conversation: str | None = None
    history_tokens: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The longest state of all tiers that a prompt can resume.

    Attributes:
        at: rows that need not be computed, 0 where nothing was found.
        tier: the slowest that has to be touched for it; "none" where nothing was found.
        reason: why that is little, else None.
        state: of the device, for all of the rows or for the first of them.
        held: what of it the lane takes as it opens.
        hit: of the lower tiers, where ``state`` is not all.
    """

    asked: Asked
    at: int = 0
    tier: Tier = "none"
    reason: Reason | None = None
    state: HeldState | None = None
    held: LaneState | None = None
    hit: Hit | None = None

    def afresh(self, reason: Reason) -> Found:
        """Nothing found after all, for a reason that the caller met."""
        return Found(self.asked, reason=reason)


class Losses:
    """The last states that were lost, and how; by digest of their tokens."""

    def __init__(self) -> None:
        self._reasons: OrderedDict[bytes, Reason] = OrderedDict()

    def add(self, key: bytes, reason: Reason) -> None:
        """A state went."""
        self._reasons[key] = reason
        self._reasons.move_to_end(key)
        if len(self._reasons) > REMEMBERED_LOSSES:
            self._reasons.popitem(last=False)

    def remove(self, key: bytes) -> None:
        """It is kept again."""
        self._reasons.pop(key, None)

    def reason(self, keys: Sequence[bytes]) -> Reason | None:
        """Why the last of ``keys`` that was lost is gone."""
        return next((self._reasons[key] for key in reversed(keys) if key in self._reasons), None)


@dataclass(frozen=True, slots=True)
class Kept:
    """What there is at all, for the reason word.

    Attributes:
        tokens: of the conversation's longest state under the loaded model.
        elsewhere: whether another model, or another version of this one, has states of it.
        anything: whether the loaded model has any state.
    """

    tokens: int
    elsewhere: bool
    anything: bool


def why_little(
    at: int,
    prefixes: Sequence[tuple[int, bytes]],
    asked: Asked,
    losses: Losses,
    kept: Callable[[], Kept],
) -> Reason | None:
    """Why no more than ``at`` rows were found; None where that is all that could be hoped for.

    Args:
        prefixes: (rows, digest) wherever a state could have helped, ascending.
    """
    hoped = [rows for rows, _ in prefixes if rows <= asked.history_tokens]
    if at and (not hoped or at >= hoped[-1]):
        return None
    if not prefixes:
        return "short-prompt"
    lost = losses.reason([digest for rows, digest in prefixes if rows > at])
    if lost is not None:
        return lost
    facts = kept()
    if facts.tokens > at:
        return "edited"
    if facts.elsewhere and not facts.tokens:
        return "model-changed"
    return "no-common-prefix" if facts.anything else "nothing-kept"


class Lookup:
    """Finds states for prompts.

    Attributes:
        losses: what was lost, for the reason word.
    """

    def __init__(
        self, memory: LaneMemory, grid_rows: int, held: HeldStates, lower: LowerTiers | None
    ) -> None:
        self._grid_rows = grid_rows
        self._held = held
        self._lower = lower
        self._can_cut = memory.slots is None and all(pool.window is None for pool in memory.pools)
        self.losses = Losses()

    def find(self, asked: Asked) -> Found:
        """The longest state of all tiers that a prompt can resume; the device's of equal ones."""
        ids = asked.ids
        prefixes = list(prefix_digests(ids[:-1], self._grid_rows))
        found = self._on_device(asked)
        hit = None if self._lower is None else self._lower.archive.find(prefixes, ids)
        if hit is not None and hit.at > found.at:
            found = self._below(asked, found, hit)
        kept = partial(self._kept, asked.conversation)
        return replace(found, reason=why_little(found.at, prefixes, asked, self.losses, kept))

    def _on_device(self, asked: Asked) -> Found:
        best = self._held.longest(asked.ids, can_cut=self._can_cut)
        if best is None:
            return Found(asked)
        state, at = best
        held = state.hold if at == state.at else state.hold.cut(at)
        return Found(asked, at, "device", state=state, held=held)

    def _below(self, asked: Asked, found: Found, hit: Hit) -> Found:
        """What the archive has, on top of the device's whole pages where a state can be cut."""
        assert self._lower is not None
        tier = self._lower.archive.tier(hit.record)
        rows = found.at // PAGE_ROWS * PAGE_ROWS
        if found.state is None or not self._can_cut or not rows:
            return Found(asked, hit.at, tier, hit=hit)
        return Found(
            asked, hit.at, tier, state=found.state, held=found.state.hold.cut(rows), hit=hit
        )

    def _kept(self, conversation: str | None) -> Kept:
        """What there is at all, and of a conversation."""
        mine = [state.at for state in self._held if conversation in state.conversations]
        if self._lower is None:
            return Kept(max(mine, default=0), elsewhere=False, anything=bool(len(self._held)))
        archive, facts = self._lower.archive, self._lower.facts
        mine += [chat.tokens for chat in archive.chats() if chat.conversation == conversation]
        return Kept(
            max(mine, default=0),
            elsewhere=any(one.conversation == conversation is not None for one in facts),
            anything=bool(len(self._held)) or archive.census().states > 0,
        )
