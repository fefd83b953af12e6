"""The arena of recurrent states: the bytes of every slot, beside the KV pages.

Owns the tensors and their ledger lease. Used from the engine thread only. Which slot is whose is
``engine.cache.slots``' business.
"""

from __future__ import annotations

from typing import Final

import torch

from engine.memory.allocation import allocating
from engine.memory.ledger import Credit
from engine.models.spec import RecurrentSpec
from engine.owner import Owner

OWNER: Final = "recurrent states"
CPU: Final = torch.device("cpu")


class RecurrentArena(Owner):
    """The bytes of every slot.

    Attributes:
        states: [slot, layer, value_head, key_dim, value_dim] float32.
        tails: [slot, layer, kernel - 1, channels] float32, the oldest input first.
    """

    def __init__(
        self,
        spec: RecurrentSpec,
        slots: int,
        ledger: Credit,
        pool: str,
        *,
        device: torch.device = CPU,
    ) -> None:
        """Reserve in the ledger, then allocate; raises MemoryRefused."""
        self.spec = spec
        self.slot_count = slots
        self._lease = ledger.reserve(OWNER, {pool: slots * spec.stream_bytes})
        with allocating(self._lease, device):
            self.states = torch.empty(slots, spec.layer_count, *spec.state_shape, device=device)
            self.tails = torch.empty(slots, spec.layer_count, *spec.tail_shape, device=device)

    def clear(self, slot: int) -> None:
        """The condition before the first token."""
        self.states[slot].zero_()
        self.tails[slot].zero_()

    def copy(self, source: int, target: int) -> None:
        """Make one slot's bytes those of another."""
        self.states[target].copy_(self.states[source])
        self.tails[target].copy_(self.tails[source])

    def close(self) -> None:
        """Free the tensors and refund their bytes; may be repeated."""
        self.states = self.tails = torch.empty(0)
        self._lease.close()
