"""The torch executor: chunks, steps and what it leaves out agree; it reads what it may."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from engine.cache.formats import KvFormat
from engine.cache.lane import Lane
from engine.cache.pages import PagePool
from engine.errors import InvariantBroken
from engine.forward import DequantizedProducts, TorchForward, TorchRunner, Wanted, Weights
from engine.models import model_spec
from tests.helpers.fake_device import FakeDevice
from tests.helpers.lone_model import poisoned_pages, relative_l2
from tests.helpers.memory_source import VOCABULARY, tiny_source

FAMILIES = ["llama", "gemma3"]
IDS = torch.randint(0, VOCABULARY, (700,), generator=torch.Generator().manual_seed(5)).tolist()


class Loaded:
    """A tiny model with pages full of NaN and one lane of 900 rows."""

    def __init__(self, family: str, kv_format: KvFormat = KvFormat.FP32) -> None:
        source = tiny_source(family)
        self.spec = model_spec(source)
        self.pools = [PagePool(5, group.window) for group in self.spec.groups]
        self.kv = poisoned_pages(self.spec, [5] * len(self.pools), kv_format)
        self.arenas = self.kv.tensors
        self.memory = FakeDevice(self.pools).memory
        weights = Weights(source)
        products = DequantizedProducts(self.spec, weights)
        self.forward = TorchForward(self.spec, weights, products, self.kv)
        self.runner = TorchRunner(self.spec, weights, products, self.kv)

    @contextmanager
    def lane(self) -> Iterator[Lane]:
        opened = Lane.open(self.memory, 900, 256)
        assert isinstance(opened, Lane)
        with opened:
            yield opened

    def run(self, lane: Lane, ids: list[int], wanted: Wanted) -> torch.Tensor:
        """Every row of ``ids`` from position 0, in chunks; logits of the last chunk."""
        found = torch.empty(0)
        for first in range(0, len(ids), 256):
            part = ids[first : first + 256]
            lane.extend(len(part))
            found = self.forward.rows(lane, part, first, wanted)
        return found


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rows", [1, 17, 256, 257, 700])
def test_the_last_row_alone_is_the_last_of_all_rows(family: str, rows: int) -> None:
    model = Loaded(family)
    with model.lane() as lane:
        every = model.run(lane, IDS[:rows], Wanted.ALL)
    with model.lane() as lane:
        last = model.run(lane, IDS[:rows], Wanted.LAST)
    assert every.shape == ((rows - 1) % 256 + 1, VOCABULARY)
    assert last.shape == (1, VOCABULARY)
    assert every.isfinite().all()
    assert relative_l2(last[0], every[-1]) < 2e-6


@pytest.mark.parametrize("family", FAMILIES)
def test_a_chunk_without_logits_writes_the_same_rows(family: str) -> None:
    model, other = Loaded(family), Loaded(family)
    with model.lane() as lane:
        model.run(lane, IDS, Wanted.ALL)
    with other.lane() as lane:
        assert other.run(lane, IDS, Wanted.NOTHING).shape == (0, VOCABULARY)
    for wanted, found in zip(model.arenas, other.arenas, strict=True):
        assert torch.equal(wanted.nan_to_num(7.0), found.nan_to_num(7.0))


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_stepped_one_by_one_are_the_prompt_s_rows(family: str) -> None:
    """Across a page border; close, not equal: another product computes a single row."""
    model = Loaded(family)
    with model.lane() as lane:
        model.run(lane, IDS[:250], Wanted.NOTHING)
        for position in range(250, 262):
            lane.extend(1)
            stepped = model.runner.step([lane], [IDS[position]], [position])
    with model.lane() as lane:
        wanted = model.run(lane, IDS[:262], Wanted.LAST)
    assert relative_l2(stepped, wanted) < 5e-6


def test_several_lanes_step_as_each_does_alone() -> None:
    model = Loaded("gemma3")
    with model.lane() as first:
        model.run(first, IDS[:31], Wanted.NOTHING)
        first.extend(1)
        alone = model.runner.step([first], [3], [31])[0].clone()
        second = Lane.open(model.memory, 200, 256)
        assert isinstance(second, Lane)
        with second:
            model.run(second, IDS[:77], Wanted.NOTHING)
            second.extend(1)
            both = model.runner.step([second, first], [9, 3], [77, 31])
    assert torch.equal(both[1], alone)
    assert not torch.equal(both[0], alone)


@pytest.mark.parametrize("family", FAMILIES)
def test_pages_that_the_lane_does_not_hold_are_never_read(family: str) -> None:
    """Whatever a sliding group drops is poisoned at once; not one bit changes."""
    kept, poisoned = Loaded(family), Loaded(family)
    with kept.lane() as lane:
        wanted = kept.run(lane, IDS, Wanted.ALL)
    with poisoned.lane() as lane:
        for first in range(0, len(IDS), 256):
            part = IDS[first : first + 256]
            lane.extend(len(part))
            for group, arena in enumerate(poisoned.arenas):
                held = set(lane.table(group).tolist())
                dropped = [page for page in range(arena.shape[1]) if page not in held]
                arena[:, dropped] = float("nan")
            found = poisoned.forward.rows(lane, part, first, Wanted.ALL)
        dropped_pages = sum(int((lane.table(g) == -1).sum()) for g in range(len(poisoned.arenas)))
    assert torch.equal(found, wanted)
    # Each group has one page of its four still to take; a sliding group has dropped one besides.
    assert dropped_pages == (3 if family == "gemma3" else 1)


@pytest.mark.parametrize("family", FAMILIES)
def test_bf16_pages_cost_accuracy_and_nothing_else(family: str) -> None:
    exact, rounded = Loaded(family), Loaded(family, KvFormat.BF16)
    with exact.lane() as lane:
        wanted = exact.run(lane, IDS[:300], Wanted.ALL)
    with rounded.lane() as lane:
        found = rounded.run(lane, IDS[:300], Wanted.ALL)
    assert 1e-5 < relative_l2(found, wanted) < 2e-2


def test_rows_over_a_page_border_are_refused() -> None:
    model = Loaded("llama")
    with model.lane() as lane:
        lane.extend(256)
        with pytest.raises(InvariantBroken, match="one page"):
            model.forward.rows(lane, [1, 2], 255, Wanted.LAST)
        with pytest.raises(InvariantBroken, match="off the grid"):
            model.runner.prompt_chunk(lane, [1], 255)


def test_a_prompt_chunk_gives_one_row_or_none() -> None:
    model = Loaded("llama")
    with model.lane() as lane:
        lane.extend(40)
        assert model.runner.prompt_chunk(lane, IDS[:40], 0).shape == (VOCABULARY,)
        assert model.runner.prompt_chunk(lane, IDS[:40], 0, wants_logits=False).shape == (0,)


def test_biases_are_added() -> None:
    """A bias on one projection changes the logits; the control leaves it at zero."""
    results = []
    for value in (None, 0.0, 0.5):
        bias = {} if value is None else {"blk.1.attn_v.bias": torch.full((10,), value).numpy()}
        source = tiny_source(arrays=bias)
        spec, weights = model_spec(source), Weights(source)
        kv = poisoned_pages(spec, [1], KvFormat.FP32)
        forward = TorchForward(spec, weights, DequantizedProducts(spec, weights), kv)
        lane = Lane.open(FakeDevice([PagePool(1)]).memory, 8, 256)
        assert isinstance(lane, Lane)
        with lane:
            lane.extend(8)
            results.append(forward.rows(lane, IDS[:8], 0, Wanted.ALL))
    without, zero, half = results
    assert torch.equal(without, zero)
    assert relative_l2(half, without) > 1e-2
