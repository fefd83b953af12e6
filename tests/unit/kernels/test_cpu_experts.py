"""Mixtures of experts: the choice, and the products of each row with its own experts' weights."""

from __future__ import annotations

import ctypes

import pytest
import torch

from kernels.cpu import cases, records, reference
from kernels.cpu.library import Pool
from kernels.cpu.records import Kind, Weight
from tests.helpers.cpu_library import (
    PAD,
    Inputs,
    Matrix,
    plain_rows,
    poisoned,
    run,
    same_bits,
    untouched,
)

EXPERTS, ACTIVE = 7, 3


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


class Choice:
    """The route of some rows, in padded buffers."""

    def __init__(
        self,
        logits: torch.Tensor,
        *,
        chunk: bool,
        active: int = ACTIVE,
        scale: float = 1.0,
        scales: torch.Tensor | None = None,
    ) -> None:
        rows, experts = logits.shape
        self.logits = poisoned(rows, experts + PAD)
        self.logits[:, :experts] = logits
        self.chosen = torch.full((rows, active), -7, dtype=torch.int32)
        self.places = torch.full((rows, active), -7, dtype=torch.int32)
        self.starts = torch.full((experts + 1,), -7, dtype=torch.int32)
        self.weights = poisoned(rows, active)
        self.scales = scales
        self.record = records.Route(
            logits=self.logits.data_ptr(),
            scales=None if scales is None else scales.data_ptr(),
            chosen=self.chosen.data_ptr(),
            weights=self.weights.data_ptr(),
            places=self.places.data_ptr() if chunk else None,
            starts=self.starts.data_ptr() if chunk else None,
            stride=self.logits.stride(0),
            experts=experts,
            active=active,
            scale=scale,
            reserved=0,
        )


@pytest.mark.parametrize("active", [1, 3, 7])
@pytest.mark.parametrize("chunk", [False, True])
def test_the_likeliest_experts_are_chosen(pools: dict[int, Pool], active: int, chunk: bool) -> None:
    logits, scales = 3 * normal(9, EXPERTS), 1 + 0.3 * normal(EXPERTS, seed=1)
    chosen, weights = reference.routed(logits, active, 0.7, scales)
    for pool in pools.values():
        choice = Choice(logits, chunk=chunk, active=active, scale=0.7, scales=scales)
        run(pool, plain_rows(9).record(2, 5), (Kind.ROUTE, choice.record))
        assert torch.equal(choice.chosen[2:7].long(), chosen[2:7])
        assert (choice.weights[2:7] - weights[2:7]).abs().max() < 1e-6
        assert untouched(choice.weights[:2]) and (choice.chosen[7:] == -7).all()


def test_equals_are_taken_from_the_lowest_index_on(pool: Pool) -> None:
    logits = torch.tensor([[0.0, 2.0, 1.0, 2.0, 1.0, 1.0, 2.0], [5.0] * 7, [-1e30] * 7])
    choice = Choice(logits, chunk=False, active=4)
    run(pool, plain_rows(3).record(), (Kind.ROUTE, choice.record))
    assert choice.chosen.tolist() == [[1, 2, 3, 6], [0, 1, 2, 3], [0, 1, 2, 3]]
    assert (choice.weights[1:] == 0.25).all()


@pytest.mark.parametrize("wrong", [float("nan"), -float("inf")])
def test_logits_that_are_no_numbers_reach_the_weights(pool: Pool, wrong: float) -> None:
    """Where no choice is possible every weight is NaN, and no index is out of bounds."""
    logits = normal(2, EXPERTS)
    logits[0] = wrong
    choice = Choice(logits, chunk=True)
    run(pool, plain_rows(2).record(), (Kind.ROUTE, choice.record))
    assert choice.weights[0].isnan().all()
    assert ((choice.chosen >= 0) & (choice.chosen < EXPERTS)).all()
    assert choice.weights[1].isfinite().all(), "the control"


def test_pairs_are_placed_in_order_of_experts(pools: dict[int, Pool]) -> None:
    logits = normal(40, EXPERTS)
    logits[:, 2] = -100.0
    for pool in pools.values():
        choice = Choice(logits, chunk=True)
        run(pool, plain_rows(40).record(10, 25), (Kind.ROUTE, choice.record))
        chosen, places = choice.chosen[10:35].flatten(), choice.places[10:35].flatten()
        assert sorted(places.tolist()) == list(range(30, 105))
        ordered = torch.empty(75, dtype=torch.int32)
        ordered[places.long() - 30] = chosen
        assert ordered.tolist() == sorted(chosen.tolist())
        counts = torch.bincount(chosen.long(), minlength=EXPERTS)
        assert choice.starts.tolist() == [30, *(30 + counts.cumsum(0)).tolist()]
        assert counts[2] == 0, "an expert without rows"


class Mixture:
    """Experts of one format: gate and up (width, hidden), down (hidden, width)."""

    def __init__(self, name: str, hidden: int, width: int, *, bias: bool = False) -> None:
        self.hidden, self.width = hidden, width
        self.sides = []
        for part, (rows, columns) in enumerate([(width, hidden)] * 2 + [(hidden, width)]):
            offsets = normal(rows, seed=part) if bias else None
            self.sides.append(
                [
                    Matrix(name, cases.random_weight(name, rows, columns, seed), offsets)
                    for seed in range(20 * part, 20 * part + EXPERTS)
                ]
            )

    def records(self, pool: Pool, part: int, name: str) -> ctypes.Array[Weight]:
        strips = name in cases.STRIP_FORMATS
        listed = [m.in_strips(pool) if strips else m.record for m in self.sides[part]]
        return (Weight * EXPERTS)(*listed)

    def wanted(self, x: torch.Tensor, chosen: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """float64 [row, hidden], with SiLU."""
        found = torch.zeros(len(x), self.hidden, dtype=torch.float64)
        for row in range(len(x)):
            for expert, weight in zip(chosen[row].tolist(), weights[row].double(), strict=True):
                gate, up, down = (side[expert] for side in self.sides)
                inner = reference.gated(
                    reference.product(x[row : row + 1], gate.decoded, gate.bias),
                    reference.product(x[row : row + 1], up.decoded, up.bias),
                    gelu=False,
                )
                out = inner @ down.decoded.double().T
                found[row] += weight * (out[0] if down.bias is None else out[0] + down.bias)
        return found


def mixed(
    pool: Pool,
    mixture: Mixture,
    name: str,
    x: torch.Tensor,
    choice: Choice,
    *,
    chunk: bool,
    first: int = 0,
    rows: int | None = None,
) -> torch.Tensor:
    """Rows ``first ...`` through route and experts: [row, hidden], the rest poison."""
    count = len(x)
    asked = count - first if rows is None else rows
    inputs = Inputs.of(pool, x, codes=not chunk)
    inner = Inputs(count * ACTIVE, mixture.width, codes=not chunk)
    outputs = poisoned(count * ACTIVE, 2 * mixture.width + PAD)
    gathered = poisoned(count * ACTIVE, mixture.hidden)
    found = poisoned(count, mixture.hidden + PAD)
    scratch = poisoned(pool.threads, pool.dense_scratch(asked))
    common = {
        "route": ctypes.pointer(choice.record),
        "gathered": gathered.data_ptr(),
        "scratch": scratch.data_ptr(),
        "scratch_stride": scratch.stride(0),
    }
    into = records.Experts(
        source=ctypes.pointer(inputs.record),
        output=outputs.data_ptr(),
        count=2,
        stride=outputs.stride(0),
        **common,
    )
    out = records.Experts(
        source=ctypes.pointer(inner.record),
        output=found.data_ptr(),
        count=1,
        stride=found.stride(0),
        **common,
    )
    kept = [mixture.records(pool, part, name) for part in range(3)]
    for record, side, listed in ((into, 0, kept[0]), (into, 1, kept[1]), (out, 0, kept[2])):
        record.weights[side] = ctypes.cast(listed, ctypes.POINTER(Weight))
    gate = records.Gate(
        gates=outputs.data_ptr(),
        ups=outputs[:, mixture.width :].data_ptr(),
        to=ctypes.pointer(inner.record),
        stride=outputs.stride(0),
        up_stride=outputs.stride(0),
        columns=mixture.width,
        gelu=0,
        copies=ACTIVE,
    )
    kinds = (Kind.EXPERTS_IN, Kind.EXPERTS_OUT)
    if chunk:
        kinds = (Kind.EXPERTS_DENSE_IN, Kind.EXPERTS_DENSE_OUT)
    run(
        pool,
        plain_rows(count).record(first, asked),
        (Kind.ROUTE, choice.record),
        (kinds[0], into),
        (Kind.GATE, gate),
        (kinds[1], out),
    )
    assert untouched(found[:first]) and untouched(found[first + asked :])
    assert untouched(found[:, mixture.hidden :]) and untouched(outputs[:, 2 * mixture.width :])
    return found[first : first + asked, : mixture.hidden]


@pytest.mark.parametrize("name", ["q4_k", "q8_0", "bf16", "iq4_xs", "q2_k"])
@pytest.mark.parametrize("chunk", [False, True])
@pytest.mark.parametrize("rows", [1, 13])
def test_a_row_is_the_weighted_sum_of_its_experts(
    pool: Pool, name: str, chunk: bool, rows: int
) -> None:
    mixture = Mixture(name, 256, 256, bias=name == "q8_0")
    x, logits = normal(rows, 256), normal(rows, EXPERTS, seed=5)
    choice = Choice(logits, chunk=chunk)
    found = mixed(pool, mixture, name, x, choice, chunk=chunk)
    wanted = mixture.wanted(x, *reference.routed(logits, ACTIVE, 1.0))
    assert (found - wanted).norm() <= 2e-4 * wanted.norm()
    other = mixture.wanted(x, *reference.routed(logits.roll(1, 1), ACTIVE, 1.0))
    assert (found - other).norm() > 0.1 * wanted.norm(), "the control: other experts"


@pytest.mark.parametrize("chunk", [False, True])
@pytest.mark.parametrize(("hidden", "width"), [(96, 32), (64, 160), (32, 96)])
def test_widths_that_fill_no_panel_are_right(
    pools: dict[int, Pool], chunk: bool, hidden: int, width: int
) -> None:
    mixture = Mixture("q4_1", hidden, width)
    x, logits = normal(21, hidden), normal(21, EXPERTS, seed=5)
    wanted = mixture.wanted(x, *reference.routed(logits, ACTIVE, 1.0))
    for pool in pools.values():
        choice = Choice(logits, chunk=chunk)
        found = mixed(pool, mixture, "q4_1", x, choice, chunk=chunk, first=4, rows=15)
        assert (found - wanted[4:19]).norm() <= 2e-4 * wanted.norm()


@pytest.mark.parametrize("name", ["q5_1", "f32"])
@pytest.mark.parametrize("chunk", [False, True])
def test_a_row_has_the_same_bits_in_any_company(
    pools: dict[int, Pool], chunk: bool, name: str
) -> None:
    mixture = Mixture(name, 64, 96)
    x, logits = normal(30, 64), normal(30, EXPERTS, seed=5)

    def rows(threads: int, first: int, count: int) -> torch.Tensor:
        choice = Choice(logits, chunk=chunk)
        return mixed(pools[threads], mixture, name, x, choice, chunk=chunk, first=first, rows=count)

    whole = rows(1, 0, 30)
    for threads, first, count in ((2, 0, 30), (3, 7, 12), (1, 29, 1), (2, 3, 2)):
        assert same_bits(rows(threads, first, count), whole[first : first + count])
    assert not same_bits(whole[0], whole[1]), "the control"
