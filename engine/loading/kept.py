"""What decides whether states fit a loaded model: their layout, and the probe of its warm-up.

The probe is the state after a fixed prompt, hashed: two engines that compute it alike may share
states on disk, whatever their versions say.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from engine.cache.lane import Lane, LaneMemory
from engine.errors import InvariantBroken
from engine.states.identity import StateLayout
from engine.states.records import DIGEST_BYTES, SLOT

if TYPE_CHECKING:
    from engine.cache.formats import KvFormat
    from engine.runner import Runner

PROBE_ROWS: Final = 64
PROBE_STRIDE: Final = 7919
"""Between the ids of the probe's prompt, so that it meets many of the vocabulary."""


def warm(runner: Runner, memory: LaneMemory, vocabulary: int) -> bytes:
    """Run a prompt chunk and a step, so that the first request meets no first time.

    Returns:
        The probe: a hash of what the chunk left in its pages and its recurrent state.
    """
    lane = Lane.open(memory, PROBE_ROWS + 1, runner.chunk_rows)
    if not isinstance(lane, Lane):
        raise InvariantBroken(f"A fresh model has no room for {PROBE_ROWS + 1} rows.")
    with lane:
        lane.extend(PROBE_ROWS)
        pages = [int(lane.table(group)[0]) for group in range(len(memory.pools))]
        # Rows that are not written may hold anything, and must not be hashed as found.
        for group, page in enumerate(pages):
            blank = bytes(memory.device.page_bytes(group))
            memory.device.write_page(group, page, memoryview(blank))
        ids = [row * PROBE_STRIDE % vocabulary for row in range(PROBE_ROWS)]
        runner.prompt_chunk(lane, ids, 0)
        probe = _hash(memory, pages, lane.recurrent_slot)
        lane.extend(1)
        runner.step([lane], [0], [PROBE_ROWS])
    return probe


def layout_of(memory: LaneMemory, runner: Runner, kv_format: KvFormat) -> StateLayout:
    """How a loaded model's states are computed and laid out."""
    device = memory.device
    extents = {group: device.page_bytes(group) for group in range(len(memory.pools))}
    if memory.slots is not None:
        extents[SLOT] = device.slot_bytes
    return StateLayout(kv_format, runner.grid_rows, runner.chunk_rows, extents)


def _hash(memory: LaneMemory, pages: Sequence[int], slot: int | None) -> bytes:
    """A digest of one page of each group and a recurrent slot."""
    device, digest = memory.device, blake2b(digest_size=DIGEST_BYTES)
    for group, page in enumerate(pages):
        content = bytearray(device.page_bytes(group))
        device.read_page(group, page, memoryview(content))
        digest.update(content)
    if slot is not None:
        content = bytearray(device.slot_bytes)
        device.read_slot(slot, memoryview(content))
        digest.update(content)
    return digest.digest()
