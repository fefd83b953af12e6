"""Names and records of kept prompt states, the same in every tier.

A state is the condition after ``len(ids)`` tokens. It is made of extents: one for each page that
later rows can still reach, of each group, and one for the recurrent state. An extent is named by
what it follows from: the digest of the token prefix up to its last row, and the part of the model.
So states that begin alike name the same extents, which are held once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.cache.formats import PAGE_ROWS
from engine.cache.pages import first_reached_page, pages_for

DIGEST_BYTES: Final = 16
SLOT: Final = -1
"""The part of an extent that is a recurrent state; other parts are the numbers of page groups."""


class Role(Enum):
    """What a state is good for; decides what goes first.

    END is the end of a conversation's history, for its next turn; REWIND the start of its latest
    user message, for an edit or another reply; SHARED what several conversations begin with.
    """

    END = "end"
    REWIND = "rewind"
    SHARED = "shared"


@dataclass(frozen=True, slots=True)
class ExtentName:
    """What an extent holds: ``part`` after the tokens that ``digest`` stands for."""

    digest: bytes
    part: int


@dataclass(frozen=True, slots=True, eq=False)
class StateRecord:
    """One kept state, wherever its bytes lie.

    Attributes:
        ids: the exact tokens, [at] int32.
        key: digest of all of them.
        extents: every one that a resume needs, in the order in which it takes them.
        conversation: the chat it is kept for; None for a shared beginning.
    """

    ids: NDArray[np.int32]
    key: bytes
    extents: tuple[ExtentName, ...]
    role: Role
    conversation: str | None = None

    @property
    def at(self) -> int:
        """Tokens that a stream which resumes here need not compute."""
        return len(self.ids)


def prefix_digests(ids: NDArray[np.int32], step_rows: int) -> Iterator[tuple[int, bytes]]:
    """(rows, digest of the first so many ids) at each multiple of ``step_rows`` inside ``ids``."""
    digest = blake2b(digest_size=DIGEST_BYTES)
    for at in range(step_rows, len(ids) + 1, step_rows):
        digest.update(ids[at - step_rows : at].astype("<i4").tobytes())
        yield at, digest.digest()


def prefix_digest(ids: NDArray[np.int32]) -> bytes:
    """The digest of all of ``ids``; the same function as ``prefix_digests``."""
    return blake2b(ids.astype("<i4").tobytes(), digest_size=DIGEST_BYTES).digest()


def extent_names(
    ids: NDArray[np.int32], windows: Sequence[int | None], *, recurrent: bool
) -> tuple[ExtentName, ...]:
    """The extents of the state after ``ids``: pages group by group, then the recurrent state.

    Args:
        windows: of each page group, None where every row reaches all before it.
    """
    at = len(ids)
    ends = dict(prefix_digests(ids, PAGE_ROWS))
    ends[at] = prefix_digest(ids)
    names = [
        ExtentName(ends[min((page + 1) * PAGE_ROWS, at)], group)
        for group, window in enumerate(windows)
        for page in range(first_reached_page(window, at), pages_for(at))
    ]
    return (*names, ExtentName(ends[at], SLOT)) if recurrent else tuple(names)
