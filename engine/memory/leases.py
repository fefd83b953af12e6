"""Leases: the credit of one owner, from the reservation to the refund after the physical free.

A lease goes reserve -> commit -> close. Where freeing fails, the bytes are still taken, so the
lease stays charged in quarantine until a later attempt frees them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, Protocol

from engine.errors import InvariantBroken
from engine.owner import Owner

QUARANTINED: Final = "quarantined "
"""Goes before the owner's name while freeing has failed."""

Bytes = Mapping[str, int]
"""Bytes by pool."""


class Holding(Protocol):
    """Something that the accounts count: a lease, or an envelope's unused rest."""

    @property
    def owner(self) -> str:
        """Who holds it."""

    @property
    def bytes_by_pool(self) -> Bytes:
        """What it holds in each pool."""

    @property
    def is_committed(self) -> bool:
        """Whether the bytes are allocated, not only reserved."""


class Credit(Protocol):
    """What memory is reserved from: the ledger, or an envelope that was reserved whole."""

    def reserve(self, owner: str, bytes_by_pool: Bytes) -> Lease:
        """Reserve bytes in every named pool, or in none; raises MemoryRefused."""


class Accounts(Protocol):
    """What a lease tells the ledger."""

    def charged(self, bytes_by_pool: Bytes) -> dict[str, int]:
        """The same with the pools that stand behind the named ones."""

    def forget(self, holding: Holding) -> None:
        """Take a closed lease or envelope off the accounts."""

    def quarantine(self, lease: Lease, free: Callable[[], None]) -> None:
        """Keep a lease whose bytes could not be freed, to try again."""


class _Stage(Enum):
    RESERVED = "reserved"
    COMMITTED = "committed"
    QUARANTINED = "quarantined"
    CLOSED = "closed"


class Lease(Owner):
    """Bytes of one owner in one or more pools.

    Owns the credit until ``close``, which comes after the physical free and may be repeated.
    Used from the engine thread.
    """

    def __init__(self, accounts: Accounts, owner: str, bytes_by_pool: Bytes) -> None:
        self._accounts = accounts
        self._owner = owner
        self._bytes = dict(bytes_by_pool)
        self._stage = _Stage.RESERVED

    @property
    def owner(self) -> str:
        """Who holds it; says so where freeing has failed."""
        return QUARANTINED + self._owner if self.is_quarantined else self._owner

    @property
    def bytes_by_pool(self) -> Bytes:
        """What the lease holds in each pool; empty once closed."""
        return self._bytes

    @property
    def is_committed(self) -> bool:
        """Whether the bytes are allocated, not only reserved."""
        return self._stage in (_Stage.COMMITTED, _Stage.QUARANTINED)

    @property
    def is_quarantined(self) -> bool:
        """Whether freeing the bytes has failed."""
        return self._stage is _Stage.QUARANTINED

    def commit(self, bytes_by_pool: Bytes | None = None) -> None:
        """State what was really allocated; None is all that was reserved, the rest is refunded.

        Raises:
            InvariantBroken: committed before, closed, or more than was reserved.
        """
        if self._stage is not _Stage.RESERVED:
            raise InvariantBroken(
                f"The lease of {self._owner} was committed twice or after its end."
            )
        if bytes_by_pool is not None:
            self._bytes = self._checked(self._accounts.charged(bytes_by_pool))
        self._stage = _Stage.COMMITTED

    def release(self, free: Callable[[], None]) -> None:
        """Free the bytes, then give back the credit; where ``free`` raises, so does this.

        The lease is then in quarantine: charged, and freed by ``Ledger.retry_quarantined``. A
        lease that is closed or in quarantine already is left alone.
        """
        if self._stage in (_Stage.QUARANTINED, _Stage.CLOSED):
            return
        try:
            free()
        except BaseException:
            self._stage = _Stage.QUARANTINED
            self._accounts.quarantine(self, free)
            raise
        self.close()

    def close(self) -> None:
        """Refund everything; the bytes must be free by now. Nothing happens in quarantine."""
        if self._stage in (_Stage.RESERVED, _Stage.COMMITTED):
            self._end()

    def freed(self) -> None:
        """Refund what was in quarantine; only the ledger calls this, after it freed the bytes."""
        self._end()

    def _end(self) -> None:
        self._stage = _Stage.CLOSED
        self._bytes = {}
        self._accounts.forget(self)

    def _checked(self, real: dict[str, int]) -> dict[str, int]:
        for pool, size in real.items():
            if not 0 <= size <= self._bytes.get(pool, 0):
                raise InvariantBroken(
                    f"{self._owner} allocated {size:,} bytes of {pool} "
                    f"but had reserved {self._bytes.get(pool, 0):,}."
                )
        return real
