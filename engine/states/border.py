"""The border to the tiers below the device: host memory and, behind that, the disk.

A library is the folder of all kept states, of every model; it is there as long as the engine. An
archive is the part of it that belongs to the loaded model, with the bytes of extents in host memory
and the threads that read and write. Every method here is called on the engine thread and, but for
opening and closing, never waits for a file. ``engine.states.disk`` holds the real ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.protocol import ChatTier, StateFacts, Tier
from engine.states.records import ExtentName, StateRecord


@dataclass(frozen=True, slots=True)
class Piece:
    """One extent that was read and checked; its bytes stand until ``Fetch.done`` names it."""

    name: ExtentName
    content: memoryview
    tier: Tier


@dataclass(frozen=True, slots=True)
class Hit:
    """A state that a prompt begins with, or whose first ``at`` rows it does.

    Attributes:
        at: less than ``record.at`` only for a model whose states can be cut (``ModelIdentity``).
    """

    record: StateRecord
    at: int


@dataclass(frozen=True, slots=True)
class ArchiveCensus:
    """What the archive holds: bytes of extents and records, and what is on its way."""

    states: int
    host_bytes: int
    disk_bytes: int
    waiting_bytes: int
    dropped: int
    damaged: int


class Fetch(Protocol):
    """Reading one state's extents; closed by who opened it, which frees every staging slot."""

    @property
    def status(self) -> Literal["reading", "read", "damaged"]:
        """ "read" once every extent was given by ``ready``; "damaged" if one cannot be had."""

    @property
    def read_bytes(self) -> int:
        """Bytes that came from host or disk so far."""

    def ready(self) -> Sequence[Piece]:
        """Extents that have come since the last call, in the record's order."""

    def done(self, name: ExtentName) -> None:
        """The piece was copied; its staging slot may be used again."""

    def close(self) -> None:
        """Stop reading; waits for a read that is under way. May be repeated."""


class StateArchive(Protocol):
    """Host and disk tiers of one loaded model's states."""

    def find(self, prefixes: Sequence[tuple[int, bytes]], ids: NDArray[np.int32]) -> Hit | None:
        """The longest state that ``ids`` begin with; ids are compared whole, not by digest only.

        Args:
            prefixes: (rows, digest of so many ids) where a state may end, ascending.
        """

    def tier(self, record: StateRecord) -> Tier:
        """The slowest tier that reading the state would touch; "none" where it is not held."""

    @property
    def revision(self) -> int:
        """Another number whenever ``chats`` would answer otherwise than before."""

    def chats(self) -> tuple[ChatTier, ...]:
        """Of each conversation with a state here: how many tokens, and the slowest tier of it.

        Of several states the longest one counts.
        """

    def has(self, name: ExtentName) -> bool:
        """Whether an extent is in host memory, on disk or on its way there."""

    def buffer(self, size_bytes: int) -> memoryview | None:
        """Memory to copy an extent into; None while the queue of writes is full."""

    def put(self, name: ExtentName, buffer: memoryview) -> None:
        """Take over an extent, whose bytes are ``buffer`` as ``buffer()`` gave it."""

    def withdraw(self, buffer: memoryview) -> None:
        """Give back a buffer that was not filled."""

    def commit(self, record: StateRecord) -> None:
        """Keep a state whose every extent it has; an equal one only gains the conversation.

        Where an extent went meanwhile, nothing is kept.
        """

    def fetch(self, record: StateRecord, names: Sequence[ExtentName]) -> Fetch:
        """Begin to read extents of a state; it is held back from eviction until closed."""

    def drop(self, key: bytes) -> None:
        """Forget a state, as after it turned out damaged; extents that others need stay."""

    def touch(self, record: StateRecord, conversation: str | None) -> None:
        """The state was resumed: it goes last, and belongs to this conversation too."""

    def census(self) -> ArchiveCensus:
        """What is held."""

    def close(self) -> None:
        """Write what waits, for as long as the limit given at opening, then end the threads."""


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """Whose states may be resumed by whom: everything that their bytes depend on.

    Attributes:
        model: the checkpoint's name, for people.
        facts: (what, which) pairs, such as ("isa", "avx2"); all are hashed into the folder's name.
        extent_bytes: of a whole extent by part: every page group, and SLOT where there is one.
        can_cut: every group reaches all rows and nothing is recurrent, so that the pages of a state
            are also the state after each whole page.
    """

    model: str
    facts: tuple[tuple[str, str], ...]
    extent_bytes: Mapping[int, int]
    can_cut: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """The disk tier as a whole, in bytes; ``shared_bytes`` lie in extents of several states."""

    disk_bytes: int
    quota_bytes: int
    free_bytes: int
    shared_bytes: int


class StateLibrary(Protocol):
    """The folder of all kept states."""

    def open(self, identity: ModelIdentity, probe: bytes, host_bytes: int) -> StateArchive:
        """The archive of one model; at most one is open.

        Args:
            probe: hash of a fixed prompt's state; what was kept under another one is deleted.
            host_bytes: most bytes of extents in host memory, those waiting to be written included.
        """

    def set_open(self, conversations: Iterable[str]) -> None:
        """States of these go only where no other can."""

    def sweep(self, known: Iterable[str]) -> None:
        """Delete the states all of whose conversations are not among ``known``."""

    def pin(self, conversation: str, *, pinned: bool) -> None:
        """Hold a conversation's states back from eviction, over restarts too, or no more."""

    def clear(self, conversations: Iterable[str] | None) -> None:
        """Delete the states of conversations, None of all.

        One that is being read goes when it was read, one of a second conversation stays for that.
        """

    def facts(self) -> tuple[StateFacts, ...]:
        """What is kept, of other models too, the last used first."""

    def usage(self) -> Usage:
        """What the disk tier takes and may take."""
