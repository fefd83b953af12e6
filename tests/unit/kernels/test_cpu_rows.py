"""Operations of a row beside the products: embedding, norms, angles, rotation, pages, gates."""

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


@pytest.mark.parametrize("name", ["q4_1", "q6_k", "f32"])
def test_an_embedding_row_is_the_decoded_row_times_its_scale(
    pools: dict[int, Pool], name: str
) -> None:
    matrix = Matrix(name, cases.random_weight(name, 11, 256))
    stream = Stream([0] * 5, ids=[10, 0, 3, 3, 7])
    for pool in pools.values():
        residual = poisoned(5, 256)
        record = records.Embed(matrix.record, residual.data_ptr(), 1.5, 0)
        run(pool, stream.record(1, 3), (Kind.EMBED, record))
        assert same_bits(residual[1:4], matrix.decoded[[0, 3, 3]] * 1.5)
        assert untouched(residual[0]) and untouched(residual[4])


class TestResidual:
    """``residual += norm(added)``, then the next product's inputs."""

    columns = 96

    def run(
        self,
        pool: Pool,
        *,
        added: torch.Tensor | None = None,
        post: torch.Tensor | None = None,
        weight: torch.Tensor | None = None,
        codes: bool = True,
    ) -> tuple[torch.Tensor, Inputs]:
        """Rows 1 and 2 of three; ``added`` lies in a wider buffer."""
        residual, inputs = normal(3, self.columns), Inputs(3, self.columns, codes=codes)
        wide = poisoned(3, self.columns + PAD)
        if added is not None:
            wide[:, : self.columns] = added
        record = records.Residual(
            residual=residual.data_ptr(),
            added=None if added is None else wide.data_ptr(),
            post=None if post is None else post.data_ptr(),
            weight=None if weight is None else weight.data_ptr(),
            to=ctypes.pointer(inputs.record),
            columns=self.columns,
            added_stride=self.columns + PAD,
            post_eps=1e-3,
            eps=1e-5,
        )
        run(pool, plain_rows(3).record(1, 2), (Kind.RESIDUAL, record))
        assert same_bits(residual[0], normal(3, self.columns)[0])
        assert untouched(inputs.values[0]) and inputs.padding_untouched()
        return residual[1:], inputs

    def test_without_anything_to_add_only_the_inputs_are_made(self, pool: Pool) -> None:
        weight = normal(self.columns, seed=1)
        residual, inputs = self.run(pool, weight=weight)
        before = normal(3, self.columns)[1:]
        assert same_bits(residual, before)
        self.assert_normed(inputs, before, weight)
        wanted = reference.prepared(inputs.values[1:].contiguous())
        assert torch.equal(inputs.codes[1:], wanted.codes)
        assert same_bits(inputs.sums[1:], wanted.sums)

    def test_what_is_added_is_in_both(self, pool: Pool) -> None:
        added, weight = normal(3, self.columns, seed=2), normal(self.columns, seed=1)
        residual, inputs = self.run(pool, added=added, weight=weight)
        assert same_bits(residual, normal(3, self.columns)[1:] + added[1:])
        self.assert_normed(inputs, residual, weight)

    def test_a_post_norm_comes_before_the_sum(self, pool: Pool) -> None:
        added, post = normal(3, self.columns, seed=2) * 50, normal(self.columns, seed=3)
        residual, inputs = self.run(pool, added=added, post=post)
        wanted = normal(3, self.columns)[1:] + reference.normed(added[1:], post, 1e-3)
        assert (residual - wanted).abs().max() <= cases.NORM_TOLERANCE * wanted.abs().max()
        assert untouched(inputs.values), "without a weight nothing is prepared"

    def test_inputs_of_a_chunk_have_no_codes(self, pool: Pool) -> None:
        weight = normal(self.columns, seed=1)
        _, inputs = self.run(pool, weight=weight, codes=False)
        self.assert_normed(inputs, normal(3, self.columns)[1:], weight)
        assert (inputs.codes == 12345).all() and untouched(inputs.scales)

    def test_any_number_of_threads_gives_the_same_bits(self, pools: dict[int, Pool]) -> None:
        added, weight = normal(3, self.columns, seed=2), normal(self.columns, seed=1)
        found = [self.run(each, added=added, post=weight, weight=weight) for each in pools.values()]
        assert all(same_bits(each[0], found[0][0]) for each in found)
        assert all(torch.equal(each[1].codes, found[0][1].codes) for each in found)

    @staticmethod
    def assert_normed(inputs: Inputs, x: torch.Tensor, weight: torch.Tensor) -> None:
        wanted = reference.normed(x, weight, 1e-5)
        error = (inputs.values[1:] - wanted).abs()
        assert (error <= cases.NORM_TOLERANCE * wanted.abs()).all()


def test_angles_far_into_the_context_are_as_exact_as_early_ones(pools: dict[int, Pool]) -> None:
    positions = [0, 1, 255, 4095, 131071, 1_000_003]
    frequencies = torch.tensor([1.0, 0.31622776, 1e-3, 1e-4, 7e-6], dtype=torch.float64)
    listed = (ctypes.c_double * 5)(*frequencies.tolist())
    wanted = reference.angle_table(torch.tensor(positions), frequencies, 1.25)
    for pool in pools.values():
        table = poisoned(len(positions) + 1, 2, 5)
        record = records.Angles(listed, table.data_ptr(), 5, 1.25, 0)
        run(pool, Stream(positions).record(), (Kind.ANGLES, record))
        assert (table[:-1] - wanted).abs().max() < 2e-7
        assert untouched(table[-1])


class Layer:
    """Joint query, key and value rows and the pages that they are written to, all poisoned."""

    heads, kv_heads, pages = 4, 2, 6
    # Row by row: its position, and its stream's pages in order of positions.
    positions = (0, 255, 256, 700)
    tables = ((5,), (1,), (0, 3), (2, 0, 4))

    def __init__(self, head_dim: int, pairs: int) -> None:
        self.dim, self.pairs = head_dim, pairs
        self.k_at = self.heads * head_dim
        self.v_at = self.k_at + self.kv_heads * head_dim
        self.width = self.v_at + self.kv_heads * head_dim
        self.rows = poisoned(4, self.width + PAD)
        self.rows[:, : self.width] = normal(4, self.width)
        self.before = self.rows.clone()
        self.arena = poisoned(self.pages, 2, self.kv_heads, 256, head_dim).half()
        self.norms = [1 + 0.3 * normal(head_dim, seed=seed) for seed in (5, 6)]
        positions = torch.tensor(self.positions)
        frequencies = 10000.0 ** -(torch.arange(pairs) / max(pairs, 1)).double()
        self.table = reference.angle_table(positions, frequencies, 1.0).float().contiguous()
        self.stream = Stream(self.positions, [self.tables])

    def run(self, pool: Pool, *, halves: bool, norms: bool, first: int = 0, rows: int = 4) -> None:
        record = records.Rotate(
            kv=LayerKv(self.arena.data_ptr(), self.kv_heads, self.dim, 0, 0),
            rows=self.rows.data_ptr(),
            query_norm=self.norms[0].data_ptr() if norms else None,
            key_norm=self.norms[1].data_ptr() if norms else None,
            angles=self.table.data_ptr() if self.pairs else None,
            stride=self.width + PAD,
            heads=self.heads,
            k_offset=self.k_at,
            v_offset=self.v_at,
            pairs=self.pairs,
            halves=int(halves),
            query_scale=0.125,
            query_eps=1e-6,
            key_eps=1e-4,
        )
        run(pool, self.stream.record(first, rows), (Kind.ROTATE, record))

    def part(self, rows: torch.Tensor, index: int) -> torch.Tensor:
        """Queries (0), keys (1) or values (2) of rows, [row, head, head_dim]."""
        start, end = ((0, self.k_at), (self.k_at, self.v_at), (self.v_at, self.width))[index]
        return rows[:, start:end].view(len(rows), -1, self.dim)

    def slot(self, row: int) -> tuple[int, int]:
        """Page and slot of a row."""
        position = self.positions[row]
        return self.tables[row][position // 256], position % 256


@pytest.mark.parametrize("halves", [True, False])
@pytest.mark.parametrize("norms", [True, False])
@pytest.mark.parametrize(("head_dim", "pairs"), [(16, 8), (80, 40), (64, 12), (48, 0), (256, 128)])
def test_queries_and_keys_are_normed_and_turned(
    pool: Pool, head_dim: int, pairs: int, norms: bool, halves: bool
) -> None:
    """Both styles, whole heads and parts of them, heads that do not turn at all."""
    layer = Layer(head_dim, pairs)
    layer.run(pool, halves=halves, norms=norms)
    for index, (scale, eps) in enumerate(((0.125, 1e-6), (1.0, 1e-4))):
        heads = layer.part(layer.before, index)
        if norms:
            heads = reference.normed(heads, layer.norms[index], eps)
        wanted = reference.rotated(heads, layer.table, halves=halves) * scale
        tolerance = (cases.NORM_TOLERANCE + cases.ROTATION_TOLERANCE) * wanted.abs().amax()
        assert (layer.part(layer.rows, index) - wanted).abs().max() <= tolerance
    assert same_bits(layer.rows[:, layer.v_at :], layer.before[:, layer.v_at :])


@pytest.mark.parametrize("halves", [True, False])
def test_the_other_style_turns_otherwise(pool: Pool, halves: bool) -> None:
    """The control."""
    layer = Layer(64, 32)
    layer.run(pool, halves=halves, norms=False)
    wrong = reference.rotated(layer.part(layer.before, 1), layer.table, halves=not halves)
    assert (layer.part(layer.rows, 1) - wrong).abs().max() > 0.1


@pytest.mark.parametrize(("first", "rows"), [(0, 4), (1, 2), (3, 1)])
def test_keys_and_values_land_in_their_slots_and_nowhere_else(
    pools: dict[int, Pool], first: int, rows: int
) -> None:
    for pool in pools.values():
        layer = Layer(48, 24)
        layer.run(pool, halves=True, norms=True, first=first, rows=rows)
        for row in range(first, first + rows):
            page, slot = layer.slot(row)
            for side in (0, 1):
                written = layer.arena[page, side, :, slot]
                found = layer.part(layer.rows, 1 + side)[row]
                assert same_bits(written, reference.stored_half(found))
                layer.arena[page, side, :, slot] = float("nan")
        assert untouched(layer.arena)


def test_values_beyond_fp16_become_its_ends(pool: Pool) -> None:
    layer = Layer(16, 0)
    wild = torch.tensor([70000.0, -1e9, 65519.0, -65520.0, float("inf"), float("-inf"), 6e-8, 2e-8])
    layer.rows[:, layer.k_at : layer.k_at + 8] = wild
    layer.rows[:, layer.v_at : layer.v_at + 8] = wild
    layer.run(pool, halves=True, norms=False)
    page, slot = layer.slot(2)
    for side in (0, 1):
        assert layer.arena[page, side, 0, slot, :8].tolist() == [
            65504.0, -65504.0, 65504.0, -65504.0, 65504.0, -65504.0, 2**-24, 0.0,
        ]  # fmt: skip
    assert layer.arena[page, :, :, slot].isfinite().all()


@pytest.mark.parametrize("gelu", [True, False])
def test_a_gate_is_right_far_from_zero_too(pools: dict[int, Pool], gelu: bool) -> None:
    columns, offset = 96, 96 + PAD
    joint = poisoned(3, offset + columns + PAD)
    gates = 3 * normal(3, columns)
    gates[1, :8] = torch.tensor([0.0, -0.0, 100.0, -100.0, 1e4, -1e4, 1e-30, -90.0])
    up = normal(3, columns, seed=1)
    joint[:, :columns], joint[:, offset : offset + columns] = gates, up
    wanted = reference.gated(gates, up, gelu=gelu)
    for pool in pools.values():
        inputs = Inputs(3, columns)
        record = records.Gate(
            joint.data_ptr(), joint[:, offset:].data_ptr(), ctypes.pointer(inputs.record),
            joint.stride(0), joint.stride(0), columns, int(gelu), 1,
        )  # fmt: skip
        run(pool, plain_rows(3).record(1, 2), (Kind.GATE, record))
        error = (inputs.values[1:] - wanted[1:]).abs()
        assert (error <= cases.GATE_TOLERANCE * (gates * up).abs()[1:]).all()
        codes = reference.prepared(inputs.values[1:].contiguous())
        assert torch.equal(inputs.codes[1:], codes.codes)
        assert untouched(inputs.values[0]) and inputs.padding_untouched()
    other = reference.gated(gates, up, gelu=not gelu)
    assert (inputs.values[1:] - other[1:]).abs().max() > 1e-2, "the control"
