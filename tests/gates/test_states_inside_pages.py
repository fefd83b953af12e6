"""A lane that resumes on, past, amid or below a page computes what a fresh one does, bit for bit.

From pages and slots that a state holds, and from their bytes, read out and written into a lane's
own pages after everything else was poisoned.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from engine.cache.device import PageDevice
from engine.cache.formats import KvFormat
from engine.cache.lane import Lane, LaneState
from engine.checkpoint.open import open_checkpoint
from tests.helpers.checkpoints.saving import save_published
from tests.helpers.checkpoints.shapes import BLOCKS_OF_32
from tests.helpers.checkpoints.variants import VARIANTS, make, random_ids
from tests.helpers.native_model import NativeSide, steps

ROWS = 700
LENGTH = 653
CUTS = (16, 80, 256, 272, 640)
NEXT = [7, 8, 9]
CASES = [(name, KvFormat.FP16) for name in VARIANTS]
CASES += [(name, KvFormat.FP8) for name in ("gemma4 per layer", "qwen3_5")]
Extents = tuple[list[tuple[int, int, bytes]], bytes]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def compute(side: NativeSide, lane: Lane, ids: list[int]) -> torch.Tensor:
    """The rest of the prompt, its last logits and those of some steps."""
    logits = torch.empty(0)
    while lane.length < len(ids):
        first = lane.length
        part = ids[first : first + side.runner.chunk_rows - first % side.runner.chunk_rows]
        lane.extend(len(part))
        logits = side.runner.prompt_chunk(lane, part, first)
    return torch.stack([logits, *steps(side, lane, NEXT)])


def kept(side: NativeSide, ids: list[int], at: int) -> LaneState:
    """The state after ``at`` rows, of a lane that went on writing before it ended."""
    with side.lane() as lane:
        while lane.length < at:
            first = lane.length
            part = ids[first : min(at, first + side.runner.chunk_rows)]
            lane.extend(len(part))
            side.runner.prompt_chunk(lane, part, first, wants_logits=False)
        state = lane.share(at)
        assert state is not None
        compute(side, lane, [*ids[:at], *(5 for _ in ids[at:])])
    return state


def read_out(device: PageDevice, state: LaneState) -> Extents:
    pages = []
    for group, run in enumerate(state.runs):
        for index, page in enumerate(run.ids, run.first):
            out = bytearray(device.page_bytes(group))
            device.read_page(group, page, memoryview(out))
            pages.append((group, index, bytes(out)))
    slot = bytearray(device.slot_bytes)
    if state.slot is not None:
        device.read_slot(state.slot, memoryview(slot))
    return pages, bytes(slot)


def poison(side: NativeSide) -> None:
    for tensor in side.kv.scales or side.kv.tensors:
        tensor.fill_(float("nan"))
    if side.recurrent is not None:
        side.recurrent.states.fill_(float("nan"))
        side.recurrent.tails.fill_(float("nan"))


def written(side: NativeSide, extents: Extents, at: int) -> Lane:
    """A lane of ``at`` rows from bytes alone; the caller closes it."""
    device, lane = side.memory.device, side.lane()
    runs = lane.adopt(at)
    pages, slot = extents
    for group, index, content in pages:
        page = runs[group].ids[index - runs[group].first]
        device.write_page(group, page, memoryview(content))
    assert len(pages) == sum(len(run.ids) for run in runs)
    if lane.recurrent_slot is not None:
        device.write_slot(lane.recurrent_slot, memoryview(slot))
    return lane


@pytest.mark.parametrize(("name", "kv_format"), CASES)
def test_rows_after_a_resume_have_the_bits_of_a_fresh_pass(
    name: str, kv_format: KvFormat, tmp_path: Path
) -> None:
    save_published(name, make(name, BLOCKS_OF_32), tmp_path / "published")
    ids = random_ids(LENGTH)
    with (
        open_checkpoint(tmp_path / "published") as source,
        NativeSide(source, ROWS, threads=2, kv_format=kv_format) as side,
    ):
        with side.lane() as lane:
            wanted = compute(side, lane, ids)
        for at in CUTS:
            state = kept(side, ids, at)
            resumed = Lane.open(side.memory, ROWS, side.runner.chunk_rows, state)
            assert isinstance(resumed, Lane)
            with resumed:
                assert torch.equal(compute(side, resumed, ids), wanted), at
            extents = read_out(side.memory.device, state)
            state.release(side.pools, side.slots)
            poison(side)
            with written(side, extents, at) as lane:
                assert torch.equal(compute(side, lane, ids), wanted), at
        pages, slot = extents
        with written(side, ([(g, i, bytes(len(c))) for g, i, c in pages], slot), at) as lane:
            assert not torch.equal(compute(side, lane, ids), wanted), "the control"
        assert all(pool.census().free_pages == pool.page_count for pool in side.pools)
