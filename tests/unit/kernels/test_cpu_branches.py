"""What only some families have: gates on attention, values made of keys, pages of another layer,
sums of branches, per-layer inputs, a scale of the whole layer, a cap on the logits.
"""

from __future__ import annotations

import ctypes

import pytest
import torch

from kernels.cpu import cases, records, reference
from kernels.cpu.library import Pool
from kernels.cpu.records import Kind, LayerKv
from tests.helpers.cpu_library import (
    PAD,
    Inputs,
    Matrix,
    Stream,
    plain_rows,
    poisoned,
    run,
    same_bits,
    untouched,
)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def assert_close(found: torch.Tensor, wanted: torch.Tensor, tolerance: float) -> None:
    assert (found - wanted).abs().max() <= tolerance * wanted.abs().max()


@pytest.mark.parametrize("columns", [5, 96, 1001])
def test_logits_are_capped_in_place(pools: dict[int, Pool], columns: int) -> None:
    drawn = 40 * normal(3, columns)
    drawn[1, :5] = torch.tensor([0.0, 1e4, -1e4, 1e-3, -90.0])
    wanted = reference.capped(drawn, 30.0)
    for pool in pools.values():
        logits = poisoned(3, columns + PAD)
        logits[:, :columns] = drawn
        record = records.Cap(logits.data_ptr(), logits.stride(0), columns, 30.0, 0)
        run(pool, plain_rows(3).record(1, 2), (Kind.CAP, record))
        assert (logits[1:, :columns] - wanted[1:]).abs().max() < 30 * 2.0**-22
        assert same_bits(logits[0, :columns], drawn[0]) and untouched(logits[:, columns:])


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_a_logit_that_is_no_number_is_not_capped_away(pool: Pool, wrong: float) -> None:
    logits = normal(1, 20)
    logits[0, 13] = wrong
    run(pool, plain_rows(1).record(), (Kind.CAP, records.Cap(logits.data_ptr(), 20, 20, 30.0, 0)))
    assert not logits[0, 13].isfinite()
    assert logits.isfinite().sum() == 19, "the control"


@pytest.mark.parametrize("raw", [False, True])
def test_a_layer_s_scale_comes_after_the_sum_and_before_the_next_inputs(
    pool: Pool, raw: bool
) -> None:
    residual, added, scale = normal(3, 64), normal(3, 64, seed=1), torch.tensor([0.37])
    weight = normal(64, seed=2)
    wanted = (residual + added).double() * 0.37
    inputs = Inputs(3, 64)
    record = records.Residual(
        residual=residual.data_ptr(),
        added=added.data_ptr(),
        weight=None if raw else weight.data_ptr(),
        to=ctypes.pointer(inputs.record),
        columns=64,
        added_stride=64,
        eps=1e-6,
        scale=scale.data_ptr(),
        raw=int(raw),
    )
    run(pool, plain_rows(3).record(1, 2), (Kind.RESIDUAL, record))
    assert_close(residual[1:], wanted[1:], 2e-7)
    expected = residual if raw else reference.normed(residual, weight, 1e-6)
    assert_close(inputs.values[1:], expected[1:].double(), cases.NORM_TOLERANCE)
    codes = reference.prepared(inputs.values[1:].contiguous())
    assert torch.equal(inputs.codes[1:], codes.codes)
    assert untouched(inputs.values[0])


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("post", [False, True])
def test_branches_are_normed_gated_and_added_up(
    pools: dict[int, Pool], post: bool, gated: bool
) -> None:
    added, norm, gates = normal(2, 5, 96), normal(96, seed=1), 3 * normal(5, 1, seed=2)
    one = [reference.normed(part, norm, 1e-5) if post else part.double() for part in added]
    wanted = sum(part * gates.double().sigmoid() if gated else part for part in one)
    for pool in pools.values():
        total = poisoned(5, 96)
        entries = [
            records.Combine(
                added=added[index].data_ptr(),
                post=norm.data_ptr() if post else None,
                gates=gates.data_ptr() if gated else None,
                sum=total.data_ptr(),
                columns=96,
                added_stride=96,
                gate_stride=1,
                post_eps=1e-5,
                first=int(index == 0),
            )
            for index in range(2)
        ]
        run(pool, plain_rows(5).record(1, 3), *((Kind.COMBINE, record) for record in entries))
        assert isinstance(wanted, torch.Tensor)
        assert_close(total[1:4], wanted[1:4], 2e-6)
        assert untouched(total[0]) and untouched(total[4])


@pytest.mark.parametrize("name", ["f32", "q4_k", "q8_0"])
def test_per_layer_inputs_are_made_of_the_id_and_the_embedding(
    pools: dict[int, Pool], name: str
) -> None:
    layers, width = 3, 256
    matrix = Matrix(name, cases.random_weight(name, 11, layers * width))
    projected, norm = normal(4, layers * width + PAD), normal(width, seed=1)
    stream = Stream([0] * 4, ids=[10, 0, 3, 7])
    pieces = projected[:, :-PAD].reshape(4, layers, width) * 0.125
    ids = matrix.decoded[[10, 0, 3, 7]].view(4, layers, width)
    wanted = (ids.double() * 16.0 + reference.normed(pieces, norm, 1e-3)) * 0.5
    for pool in pools.values():
        found = poisoned(4, layers * width)
        record = records.PerLayer(
            embedding=matrix.record,
            projected=projected.data_ptr(),
            norm=norm.data_ptr(),
            to=found.data_ptr(),
            stride=projected.stride(0),
            layers=layers,
            width=width,
            embedding_scale=16.0,
            projection_scale=0.125,
            scale=0.5,
            eps=1e-3,
        )
        run(pool, stream.record(1, 2), (Kind.PER_LAYER, record))
        assert_close(found[1:3], wanted[1:3].flatten(1), cases.NORM_TOLERANCE)
        assert untouched(found[0]) and untouched(found[3])


class Keys:
    """Two rows of queries and keys (and values) of one layer with a page each."""

    heads, kv_heads, dim = 2, 2, 48

    def __init__(self, *, values: bool) -> None:
        self.k_at = self.heads * self.dim
        self.v_at = self.k_at + self.kv_heads * self.dim if values else self.k_at
        self.width = self.v_at + self.kv_heads * self.dim
        self.rows = normal(2, self.width)
        self.before = self.rows.clone()
        self.arena = poisoned(2, 2, self.kv_heads, 256, self.dim).half()
        self.norms = [1 + 0.3 * normal(self.dim, seed=seed) for seed in (5, 6)]
        self.table = reference.angle_table(
            torch.tensor([3, 200]), 100.0 ** -torch.arange(24).double(), 1.0
        ).float()

    def run(self, pool: Pool, *, borrows: bool = False) -> None:
        record = records.Rotate(
            kv=LayerKv(self.arena.data_ptr(), self.kv_heads, self.dim, 0, 0),
            rows=self.rows.data_ptr(),
            key_norm=self.norms[0].data_ptr(),
            value_norm=self.norms[1].data_ptr(),
            angles=self.table.contiguous().data_ptr(),
            stride=self.width,
            heads=self.heads,
            k_offset=self.k_at,
            v_offset=self.v_at,
            pairs=24,
            halves=1,
            query_scale=1.0,
            key_eps=1e-6,
            value_eps=1e-3,
            borrows=int(borrows),
        )
        run(pool, Stream([3, 200], [[[1], [0]]]).record(), (Kind.ROTATE, record))

    def written(self, side: int) -> torch.Tensor:
        """[row, kv_head, head_dim] of the pages."""
        return torch.stack([self.arena[1, side, :, 3], self.arena[0, side, :, 200]]).double()


@pytest.mark.parametrize("values", [True, False])
def test_values_have_a_norm_of_their_own_and_may_be_the_keys_as_they_were(
    pools: dict[int, Pool], values: bool
) -> None:
    for pool in pools.values():
        keys = Keys(values=values)
        keys.run(pool)
        shape = (2, keys.kv_heads, keys.dim)
        raw_keys = keys.before[:, keys.k_at : keys.k_at + 96].reshape(shape)
        raw_values = keys.before[:, keys.v_at : keys.v_at + 96].reshape(shape)
        normed = reference.normed(raw_keys, keys.norms[0], 1e-6)
        assert_close(keys.written(0), reference.rotated(normed, keys.table, halves=True), 6e-4)
        assert_close(keys.written(1), reference.normed(raw_values, keys.norms[1], 1e-3), 6e-4)
        assert (keys.written(1) - keys.written(0)).abs().max() > 0.1, "the control"


def test_a_layer_that_borrows_pages_writes_none(pool: Pool) -> None:
    own, borrowing = Keys(values=True), Keys(values=True)
    own.run(pool)
    borrowing.run(pool, borrows=True)
    assert untouched(borrowing.arena)
    assert same_bits(borrowing.rows[:, : own.k_at], own.rows[:, : own.k_at])
    assert not same_bits(own.rows[:, : own.k_at], own.before[:, : own.k_at]), "the control"


@pytest.mark.parametrize("chunk", [True, False])
def test_a_gate_multiplies_what_attention_mixed(pool: Pool, chunk: bool) -> None:
    """The same queries without and with a gate, which lies behind them in the same rows."""
    heads, kv_heads, dim = 4, 2, 48
    arena = normal(2, 2, kv_heads, 256, dim).half()
    rows = normal(3, 2 * heads * dim + PAD)
    gates = rows[:, heads * dim : 2 * heads * dim]
    table = [[[1, 0]] * 3]
    found = []
    for gate in (None, rows[:, heads * dim :].data_ptr()):
        inputs = Inputs(3, heads * dim, codes=not chunk)
        common = {
            "kv": LayerKv(arena.data_ptr(), kv_heads, dim, 0, 0),
            "queries": rows.data_ptr(),
            "gates": gate,
            "to": ctypes.pointer(inputs.record),
            "stride": rows.stride(0),
            "heads": heads,
        }
        stream = Stream([256, 257, 258], table).record(1, 2)
        if chunk:
            scratch = poisoned(1, pool.chunk_scratch(heads, kv_heads, dim))
            record = records.Chunk(
                scratch=scratch.data_ptr(), scratch_stride=scratch.stride(0), **common
            )
            run(pool, stream, (Kind.CHUNK, record))
        else:
            partials = poisoned(3, heads, 2, dim + 2)
            attend = records.Attend(partials=partials.data_ptr(), partial_pages=2, **common)
            run(pool, stream, (Kind.ATTEND, attend), (Kind.MERGE, attend))
            codes = reference.prepared(inputs.values[1:].contiguous())
            assert torch.equal(inputs.codes[1:], codes.codes)
        assert untouched(inputs.values[0])
        found.append(inputs.values[1:].double())
    assert_close(found[1], found[0] * gates[1:].double().sigmoid(), 1e-6)
    assert (found[1] - found[0]).abs().max() > 0.1, "the control"
