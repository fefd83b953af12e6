"""States for tests of the disk tier: small extents of odd sizes, whose bytes their names decide."""

from __future__ import annotations

import time
from collections.abc import Sequence
from hashlib import shake_128
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.cache.formats import PAGE_ROWS
from engine.states.border import Fetch, ModelIdentity, StateArchive
from engine.states.records import (
    SLOT,
    ExtentName,
    Role,
    StateRecord,
    extent_names,
    prefix_digest,
    prefix_digests,
)

DATA: Final = Path("/data")
PROBE: Final = b"probe"
GRID: Final = 64
PAGE: Final = 701
WINDOW_PAGE: Final = 1_013
SLOT_BYTES: Final = 3_307
LIMIT_S: Final = 10.0

CUTTABLE: Final = ModelIdentity("plain", (("kv", "fp16"),), {0: PAGE}, can_cut=True)
HYBRID: Final = ModelIdentity(
    "hybrid", (("kv", "fp8"),), {0: PAGE, 1: WINDOW_PAGE, SLOT: SLOT_BYTES}
)
WINDOW: Final = 300


def tokens(count: int, seed: int = 0, branch_at: int | None = None) -> NDArray[np.int32]:
    """Ids that begin like all others of the seed, up to ``branch_at``."""
    ids = np.random.default_rng([seed]).integers(0, 1 << 20, count, dtype=np.int32)
    if branch_at is not None:
        ids[branch_at:] += 1 << 21
    return ids


def record(
    ids: NDArray[np.int32],
    conversation: str | None = "chat",
    role: Role = Role.END,
    identity: ModelIdentity = CUTTABLE,
) -> StateRecord:
    """The state after ``ids`` under one of the two identities."""
    recurrent = SLOT in identity.extent_bytes
    windows: list[int | None] = [None, WINDOW] if recurrent else [None]
    names = extent_names(ids, windows, recurrent=recurrent)
    return StateRecord(ids, prefix_digest(ids), names, role, conversation)


def content(name: ExtentName, identity: ModelIdentity = CUTTABLE) -> bytes:
    """The bytes that an extent of that name has."""
    seed = name.digest + name.part.to_bytes(4, "little", signed=True)
    return shake_128(seed).digest(identity.extent_bytes[name.part])


def keep(archive: StateArchive, state: StateRecord, identity: ModelIdentity = CUTTABLE) -> bool:
    """Put what the archive lacks and commit; False where a buffer was not to be had in time."""
    for name in state.extents:
        if archive.has(name):
            continue
        buffer = wait_for_buffer(archive, identity.extent_bytes[name.part])
        if buffer is None:
            return False
        buffer[:] = content(name, identity)
        archive.put(name, buffer)
    archive.commit(state)
    return True


def wait_for_buffer(archive: StateArchive, size: int) -> memoryview | None:
    """A buffer as soon as there is one; None where none comes although nothing is written."""
    until = time.monotonic() + LIMIT_S
    while (buffer := archive.buffer(size)) is None and time.monotonic() < until:
        if archive.census().waiting_bytes == 0:
            return archive.buffer(size)
        time.sleep(0.0005)
    return buffer


def find(archive: StateArchive, ids: NDArray[np.int32]) -> StateRecord | None:
    """The longest state that all of ``ids`` begin with."""
    hit = archive.find(list(prefix_digests(ids, GRID)), ids)
    return None if hit is None else hit.record


def read(
    archive: StateArchive, state: StateRecord, names: Sequence[ExtentName] | None = None
) -> dict[ExtentName, bytes] | None:
    """A state's bytes, None where it turned out damaged."""
    fetch = archive.fetch(state, state.extents if names is None else names)
    try:
        return drain(fetch)
    finally:
        fetch.close()


def drain(fetch: Fetch) -> dict[ExtentName, bytes] | None:
    """Take every piece until the fetch is read or damaged."""
    found: dict[ExtentName, bytes] = {}
    until = time.monotonic() + LIMIT_S
    while fetch.status == "reading":
        for piece in fetch.ready():
            found[piece.name] = bytes(piece.content)
            fetch.done(piece.name)
        assert time.monotonic() < until, "the fetch stands still"
        time.sleep(0)
    return found if fetch.status == "read" else None


def expected(state: StateRecord, identity: ModelIdentity = CUTTABLE) -> dict[ExtentName, bytes]:
    """What reading a state must give."""
    return {name: content(name, identity) for name in state.extents}


assert PAGE_ROWS % GRID == 0
