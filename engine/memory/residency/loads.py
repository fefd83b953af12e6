"""Loads: of one thing one load is under way at a time, and whoever asks meanwhile shares it.

A wish may trim for room; a prefetch never does, and begins only where a staging slot is free now,
so that it neither evicts nor waits.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.errors import MemoryRefused
from engine.memory.residency.transfers import Cargo, Transfer, TransferSlots
from engine.owner import Owner


class Loads(Owner):
    """The loads under way, by name. Owns their transfers."""

    def __init__(self, slots: TransferSlots) -> None:
        self._slots = slots
        self._under_way: dict[str, Transfer] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """What is on its way."""
        return tuple(self._under_way)

    def load(self, name: str, make: Callable[[], Cargo]) -> Transfer:
        """The load of a thing, begun where none is under way.

        Args:
            make: reserves and allocates the target; what it raises is raised here.
        """
        if name not in self._under_way:
            self._under_way[name] = Transfer(self._slots, make())
        return self._under_way[name]

    def prefetch(self, name: str, make: Callable[[], Cargo]) -> Transfer | None:
        """The same for a thing that may be wanted soon; None where there is no room for it now."""
        if name not in self._under_way and not self._slots.free_count:
            return None
        try:
            return self.load(name, make)
        except MemoryRefused:
            return None

    def step(self) -> None:
        """Move everything on; what is over is shared no more."""
        for name, transfer in list(self._under_way.items()):
            transfer.step()
            if transfer.is_over:
                del self._under_way[name]

    def reset(self) -> None:
        """The device was reset: everything under way has failed."""
        for transfer in self._under_way.values():
            transfer.reset()
        self._under_way = {}

    def close(self) -> None:
        """Cancel what is under way; raises InvariantBroken while copies of it still run."""
        for transfer in self._under_way.values():
            transfer.cancel()
        self.step()
        for transfer in self._under_way.values():
            transfer.close()
