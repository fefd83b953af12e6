"""What the planner answers: a plan, or a refusal with numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.cache.formats import KvFormat
from engine.memory.placement.needs import Need, peak_by_pool
from engine.protocol import Placement, PlanLine


@dataclass(frozen=True, slots=True)
class Refused:
    """The least that would serve the wish does not fit; ``lines`` say what that least is.

    Attributes:
        pool: the one that falls short; ``needed_bytes`` and ``free_bytes`` are of it.
        fitting_context_tokens: the longest context that would fit, 0 where none does.
    """

    pool: str
    needed_bytes: int
    free_bytes: int
    context_tokens: int
    lines: tuple[PlanLine, ...]
    sentence: str
    fitting_context_tokens: int = 0
    needs: tuple[Need, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be allocated; ``page_counts`` has one entry a group.

    Attributes:
        streams: chats at once that there is room for, at most those asked for.
        states: kept prompt states that there is room for on the device.
        slot_count: of recurrent states; 0 for a model without recurrent layers.
        placement: the rung of the ladder.
        chunk_rows: prompt rows computed at a time.
        host_state_bytes: extents of kept states in host memory, those on their way included.
        not_yet: for a placement that cannot be loaded yet, why everything resident is refused.
    """

    context_tokens: int
    streams: int
    states: int
    page_counts: tuple[int, ...]
    lines: tuple[PlanLine, ...]
    slot_count: int
    placement: Placement
    kv_format: KvFormat
    chunk_rows: int
    host_state_bytes: int
    needs: tuple[Need, ...] = ()
    not_yet: Refused | None = None

    @property
    def peak_by_pool(self) -> Mapping[str, int]:
        """The most that is taken of each pool at one time; pinned bytes count as RAM too."""
        return peak_by_pool(self.lines)
