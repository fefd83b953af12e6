"""However a prompt is cut on its grid, every row has the same bits: K, V, states and logits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.cache.formats import PAGE_ROWS, KvFormat
from engine.cache.lane import Lane
from engine.checkpoint.open import open_checkpoint
from engine.errors import InvariantBroken
from tests.helpers.checkpoints.saving import save_published
from tests.helpers.checkpoints.shapes import BLOCKS_OF_32
from tests.helpers.checkpoints.variants import VARIANTS, make
from tests.helpers.models import gemma_path, smol_path
from tests.helpers.native_model import NativeSide, steps

ROWS = 700
LENGTHS = (20, 259, 640, 653)
REAL = {"SmolLM2": smol_path, "Gemma 270M": gemma_path}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a prompt left behind: bytes of its rows and its recurrent state, and logits."""

    rows: tuple[bytes, ...]
    state: bytes
    logits: torch.Tensor


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every family as its makers publish it, and the real models."""
    found = {}
    for name in VARIANTS:
        found[name] = tmp_path_factory.mktemp(name.replace(" ", "-")) / "published"
        save_published(name, make(name, BLOCKS_OF_32), found[name])
    return found | {name: path() for name, path in REAL.items()}


def random_cuts(rng: np.random.Generator, length: int, grid: int, most: int) -> list[int]:
    """Where chunks begin: 0 and multiples of ``grid`` at most ``most`` apart."""
    cuts = [0]
    while length - cuts[-1] > most or (length - cuts[-1] > grid and rng.random() < 0.7):
        room = min(most, length - 1 - cuts[-1]) // grid
        cuts.append(cuts[-1] + grid * int(rng.integers(1, room + 1)))
    return cuts


def fill(side: NativeSide, lane: Lane, ids: Sequence[int], cuts: Sequence[int]) -> Outcome:
    """The prompt in these chunks, and two steps after it."""
    logits = torch.empty(0)
    for first, end in zip(cuts, [*cuts[1:], len(ids)], strict=True):
        lane.extend(end - first)
        logits = side.runner.prompt_chunk(lane, ids[first:end], first)
    state = b""
    if side.recurrent is not None and lane.recurrent_slot is not None:
        slot = lane.recurrent_slot
        state = side.recurrent.states[slot].numpy().tobytes()
        state += side.recurrent.tails[slot].numpy().tobytes()
    rows = tuple(_held(side, lane, group, len(ids)) for group in range(len(side.pools)))
    return Outcome(rows, state, torch.stack([logits, *steps(side, lane, [7, 8])]))


def _held(side: NativeSide, lane: Lane, group: int, length: int) -> bytes:
    """The bytes of every row of a group that the lane still holds."""
    table = lane.table(group)
    found = b""
    for index in range(-(-length // PAGE_ROWS)):
        if table[index] >= 0:
            rows = min(PAGE_ROWS, length - index * PAGE_ROWS)
            for plane in (side.kv.tensors, side.kv.scales):
                for held in plane[group : group + 1]:
                    page = held[:, int(table[index]), :, :, :rows]
                    found += page.contiguous().numpy().tobytes()
    return found


CASES = [(name, KvFormat.FP16) for name in (*VARIANTS, *REAL)]
CASES += [(name, KvFormat.FP8) for name in ("gemma4 per layer", "qwen3_5", *REAL)]


@pytest.mark.parametrize(("name", "kv_format"), CASES)
def test_every_partition_on_the_grid_gives_every_row_the_same_bits(
    name: str, kv_format: KvFormat, paths: dict[str, Path]
) -> None:
    rng = np.random.default_rng(len(name))
    with (
        open_checkpoint(paths[name]) as source,
        NativeSide(source, ROWS, threads=2, kv_format=kv_format) as side,
    ):
        grid, most = side.runner.grid_rows, side.runner.chunk_rows
        vocabulary = side.spec.vocabulary
        for length in LENGTHS:
            ids = rng.integers(0, vocabulary, length).tolist()
            with side.lane() as lane:
                whole = fill(side, lane, ids, list(range(0, length, most)))
            for _ in range(3):
                cuts = random_cuts(rng, length, grid, most)
                with side.lane() as spare, side.lane() as lane:
                    spare.extend(1)  # other pages
                    found = fill(side, lane, ids, cuts)
                assert found.rows == whole.rows, cuts
                assert found.state == whole.state, cuts
                assert torch.equal(found.logits, whole.logits), cuts
            with side.lane() as lane:
                changed = [*ids[:-1], (ids[-1] + 1) % vocabulary]
                other = fill(side, lane, changed, list(range(0, length, most)))
            assert other.rows != whole.rows, "the control"
            assert not torch.equal(other.logits, whole.logits), "the control"


def test_a_chunk_off_the_grid_is_refused(paths: dict[str, Path]) -> None:
    with (
        open_checkpoint(paths["SmolLM2"]) as source,
        NativeSide(source, ROWS) as side,
        side.lane() as lane,
    ):
        lane.extend(40)
        with pytest.raises(InvariantBroken, match="off the grid"):
            side.runner.prompt_chunk(lane, [1] * 32, side.runner.grid_rows // 2)
