"""Working sets: everything that one piece of work uses, held together or not at all.

Nobody holds one thing while waiting for another: where one cannot be had, what was taken is given
back, and the work comes again later. So two pieces of work never wait for each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

from engine.memory.residency.residents import Access, Busy, Completion, Hold, ResidentKey, Residents
from engine.owner import Owner


class WorkingSet(Owner):
    """Holds on several residents. Owns them until ``close``."""

    def __init__(self, holds: tuple[Hold, ...]) -> None:
        self.holds = holds

    def close_after(self, completion: Completion) -> None:
        """End every hold when the work has ended."""
        for hold in self.holds:
            hold.close_after(completion)

    def close(self) -> None:
        """End every hold that was not handed to a completion; may be repeated."""
        for hold in self.holds:
            hold.close()


def hold_all(residents: Residents, wishes: Mapping[ResidentKey, Access]) -> WorkingSet | Busy:
    """Hold everything, or nothing and say what was in use."""
    with ExitStack() as taken:
        holds = []
        for key, access in wishes.items():
            found = residents.hold(key, access)
            if isinstance(found, Busy):
                return found
            taken.callback(found.withdraw)
            holds.append(found)
        taken.pop_all()
    return WorkingSet(tuple(holds))
