"""Recurrent states without tensors: a chain over every token, in a slot that begins as poison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b

SLOT_BYTES = 8
POISON = b"poisoned"
START = b"at start"


class FakeSlots:
    """Implements ``engine.cache.slots.SlotContent``; a slot's bytes digest all tokens so far.

    ``copies`` counts copies; ``fault`` is raised by the next clear or copy; ``before`` is told of
    each one first.
    """

    def __init__(self, slot_count: int) -> None:
        self.chains = [POISON] * slot_count
        self.copies = 0
        self.fault: Exception | None = None
        self.before: Callable[[str], None] = lambda _call: None

    @property
    def slot_count(self) -> int:
        return len(self.chains)

    def clear(self, slot: int) -> None:
        self._raise("clear_slot")
        self.chains[slot] = START

    def copy(self, source: int, target: int) -> None:
        self._raise("copy_slot")
        self.copies += 1
        self.chains[target] = self.chains[source]

    def extend(self, slot: int, ids: Sequence[int]) -> None:
        """Go on by some tokens, one at a time as a recurrence does."""
        for token in ids:
            self.chains[slot] = _next(self.chains[slot], token)

    def _raise(self, call: str) -> None:
        self.before(call)
        fault, self.fault = self.fault, None
        if fault is not None:
            raise fault


def chain_of(ids: Sequence[int]) -> bytes:
    """What a slot holds after these tokens."""
    return chains_of(ids)[-1]


def chains_of(ids: Sequence[int]) -> list[bytes]:
    """What a slot holds after the first 0, 1, ... of these tokens."""
    chains = [START]
    for token in ids:
        chains.append(_next(chains[-1], token))
    return chains


def _next(chain: bytes, token: int) -> bytes:
    return blake2b(chain + int(token).to_bytes(4, "little"), digest_size=SLOT_BYTES).digest()
