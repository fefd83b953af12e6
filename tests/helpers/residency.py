"""Work on a device, things to be moved and things that can be given up, all played by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from engine.errors import DeviceLost
from engine.memory.leases import Lease
from engine.memory.ledger import Ledger
from engine.memory.trim import TrimStep


@dataclass
class Fence:
    """Work that ends when a test says so."""

    done: bool = False
    lost: bool = False

    def is_done(self) -> bool:
        if self.lost:
            raise DeviceLost("The device is gone.")
        return self.done


@dataclass
class Memory:
    """A lease's bytes, which can be freed once."""

    lease: Lease
    freed: int = 0

    def free(self) -> None:
        self.freed += 1

    @classmethod
    def of(cls, ledger: Ledger, owner: str, size: int, pool: str = "ram") -> Memory:
        lease = ledger.reserve(owner, {pool: size})
        lease.commit()
        return cls(lease)


@dataclass
class Crate:
    """Some bytes on their way; every copy ends when its fence is told to, at once by default."""

    content: bytes
    name: str = "crate"
    at_once: bool = True
    short_at: int | None = None
    read_error: Exception | None = None
    copy_error: Exception | None = None
    arrived: bytearray = field(default_factory=bytearray)
    fences: list[Fence] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)

    @property
    def size_bytes(self) -> int:
        return len(self.content)

    def read(self, offset: int, into: memoryview) -> int:
        if self.read_error is not None:
            raise self.read_error
        size = len(into) - (offset == self.short_at)
        into[:size] = self.content[offset : offset + size]
        return size

    def copy(self, offset: int, block: memoryview) -> Fence:
        if self.copy_error is not None:
            raise self.copy_error
        assert offset == len(self.arrived)
        self.arrived += block
        self.fences.append(Fence(done=self.at_once))
        return self.fences[-1]

    def publish(self) -> None:
        self.ends.append("published")

    def drop(self) -> None:
        self.ends.append("dropped")


@dataclass
class Spare:
    """Leases of one size that can be given up, the last first; ``smaller`` shrinks the wish."""

    step: TrimStep
    leases: list[Lease]
    last_used: int = 0
    smaller: int = 0
    asked: Callable[[str, int], None] = lambda _pool, _size: None

    def trim(self, pool: str, size_bytes: int) -> int:
        self.asked(pool, size_bytes)
        freed = 0
        while freed < size_bytes and self.leases:
            lease = self.leases.pop()
            freed += lease.bytes_by_pool.get(pool, 0)
            lease.close()
        return min(size_bytes, self.smaller)
