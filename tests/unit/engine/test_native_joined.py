"""Codes whose scales lie in tensors of their own: no value changes on the way into products.

The reference is ``engine.forward.Weights``, which decodes them in torch.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from engine.forward import Weights
from engine.models.spec import Linear, RowRuns
from engine.native import StoredWeights
from kernels.cpu import cases, records, reference
from kernels.cpu.library import Library, Pool
from kernels.cpu.records import Kind, Weight
from tests.helpers.cpu_library import (
    Inputs,
    Stream,
    multiply,
    plain_rows,
    poisoned,
    run,
    same_bits,
)
from tests.helpers.joined_source import DECODED, NAME, STRIPPED, Joined, JoinedSource


@pytest.fixture
def pool() -> Iterator[Pool]:
    with Pool(Library(), 1) as opened:
        yield opened


class Laid:
    """Some rows of a source laid out, and what they are."""

    def __init__(self, pool: Pool, how: Joined, columns: int, runs: RowRuns | None) -> None:
        self.source = JoinedSource(how, columns)
        self.linear = Linear(NAME, None, runs)
        self.weights = StoredWeights(self.source, Library(), pool)
        self.promised = self.weights.arena_bytes([self.linear])
        self.copied = self.weights.copied_bytes([self.linear])
        self.done = sum(self.weights.lay_out([self.linear]))
        self.weight: Weight = self.weights.product(self.linear)
        self.wanted = Weights(self.source).linear(self.linear)


@pytest.mark.parametrize("how", STRIPPED, ids=str)
@pytest.mark.parametrize(
    ("columns", "runs"),
    [(128, None), (1152, ((40, 9),)), (128, ((5, 3), (100, 11), (30, 20)))],
)
def test_a_unit_matrix_gives_back_every_element(
    pool: Pool, how: Joined, runs: RowRuns | None, columns: int
) -> None:
    """Whole stacks, one run and several, past one packing depth; strips need no copy."""
    laid = Laid(pool, how, columns, runs)
    assert laid.weight.is_strips
    assert laid.copied == laid.weights.decoded_bytes([laid.linear]) == 0
    assert laid.done == laid.weights.stored_bytes([laid.linear])
    unit = Inputs.of(pool, torch.eye(columns), codes=False)
    found = multiply(pool, unit, [laid.weight], plain_rows(columns).record(), dense=True)
    assert torch.equal(found.values.T, laid.wanted)
    laid.weights.close()


@pytest.mark.parametrize("how", STRIPPED, ids=str)
def test_a_step_s_product_is_within_its_bound(pool: Pool, how: Joined) -> None:
    laid = Laid(pool, how, 384, ((11, 50),))
    x = torch.randn(6, 384, generator=torch.Generator().manual_seed(1))
    x[:, 5::96] *= 30.0
    inputs = Inputs.of(pool, x)
    found = multiply(pool, inputs, [laid.weight], plain_rows(6).record()).values
    error = (found - reference.product(x, laid.wanted)).abs()
    # Minima and codes nearly cancel, so their sizes count beside the elements'.
    rounding = 4 * cases.rounding_tolerance(x, laid.wanted)
    kind = "f32" if how.format == "f8_e4m3" else "q4_1"
    assert (error <= cases.product_tolerance(x, laid.wanted, kind) + rounding).all()
    for row in range(6):
        alone = multiply(pool, inputs, [laid.weight], plain_rows(6).record(row, 1)).values
        assert same_bits(alone[row], found[row])
    assert not same_bits(found[0], found[1]), "the control"
    laid.weights.close()


@pytest.mark.parametrize("how", [*STRIPPED, DECODED], ids=str)
def test_embedding_rows_are_read_from_the_file(pool: Pool, how: Joined) -> None:
    laid = Laid(pool, how, 384, ((0, 1),))
    residual = poisoned(3, 384)
    record = records.Embed(laid.weights.file_rows(NAME), residual.data_ptr(), 1.0, 0)
    run(pool, Stream([0] * 3, ids=[110, 0, 37]).record(), (Kind.EMBED, record))
    wanted = Weights(laid.source).rows(NAME, [110, 0, 37])
    assert same_bits(residual, wanted)
    laid.weights.close()


@pytest.mark.parametrize("runs", [None, ((5, 3), (100, 11))])
def test_what_has_no_strips_is_decoded_and_counted(pool: Pool, runs: RowRuns | None) -> None:
    laid = Laid(pool, DECODED, 128, runs)
    assert not laid.weight.is_strips
    assert (laid.promised, laid.copied) == (0, laid.wanted.numel() * 4)
    assert laid.weights.decoded_bytes([laid.linear]) == laid.copied
    unit = Inputs.of(pool, torch.eye(128), codes=False)
    found = multiply(pool, unit, [laid.weight], plain_rows(128).record(), dense=True)
    assert torch.equal(found.values.T, laid.wanted)
    laid.weights.close()


def test_strips_take_what_the_files_take_where_the_codes_fill_a_nibble_or_more(pool: Pool) -> None:
    """Rows are filled up to whole strips; two and three bits take four."""
    runs = ((0, 96),)
    for how in STRIPPED:
        laid = Laid(pool, how, 384, runs)
        file_bytes = laid.weights.stored_bytes([laid.linear])
        if how.format in ("mlx2", "mlx3"):
            assert file_bytes < laid.promised < 2 * file_bytes
        elif how.format in ("mlx4", "mlx5", "mlx6", "mlx8"):
            assert laid.promised == file_bytes
        else:
            assert file_bytes <= laid.promised <= 1.2 * file_bytes
        laid.weights.close()


def test_another_scale_is_noticed(pool: Pool) -> None:
    """The control: the wrong row's scale shows in that row alone."""
    how = Joined("f8_e4m3", (16, 128), "f32")
    laid = Laid(pool, how, 128, ((0, 37),))
    moved = laid.wanted.clone()
    moved[15] = moved[15] * 2
    unit = Inputs.of(pool, torch.eye(128), codes=False)
    found = multiply(pool, unit, [laid.weight], plain_rows(128).record(), dense=True).values.T
    assert (found != moved).any(dim=1).nonzero().flatten().tolist() == [15]
    laid.weights.close()
