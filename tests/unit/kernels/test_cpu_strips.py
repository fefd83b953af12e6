"""Strips hold every value of a weight, and dense products of many rows are right to float32."""

from __future__ import annotations

import pytest
import torch

from kernels.cpu import cases, reference
from kernels.cpu.library import Pool
from kernels.quant.facts import FACTS
from tests.helpers.cpu_library import Inputs, Matrix, multiply, plain_rows, same_bits, untouched

SHAPES = [(1, 1), (15, 1), (33, 5)]


def values(rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, columns, generator=generator)


def matrix(name: str, rows: int, blocks: int, *, bias: bool = False) -> Matrix:
    """``blocks`` quant blocks of the format a row, of at least 32 columns each."""
    columns = blocks * max(32, FACTS[name].block_elements)
    offsets = values(1, rows, seed=9)[0] if bias else None
    return Matrix(name, cases.random_weight(name, rows, columns), offsets)


def test_the_cases_name_every_format_that_has_strips(pool: Pool) -> None:
    found = {name for name in cases.FORMATS if pool.layout_bytes(matrix(name, 1, 1).record)}
    assert found == set(cases.STRIP_FORMATS)


@pytest.mark.parametrize("name", cases.STRIP_FORMATS)
@pytest.mark.parametrize(("rows", "blocks"), SHAPES)
def test_a_unit_matrix_gives_back_every_element_of_a_strip(
    pool: Pool, name: str, rows: int, blocks: int
) -> None:
    """One block and several, rows that fill no strip, columns past one packing depth."""
    stored = matrix(name, rows, blocks)
    unit = Inputs.of(pool, torch.eye(stored.columns), codes=False)
    found = multiply(pool, unit, [stored.in_strips(pool)], plain_rows(stored.columns).record(),
                     dense=True)  # fmt: skip
    assert torch.equal(found.values.T, stored.decoded)


@pytest.mark.parametrize("name", cases.FORMATS)
def test_a_unit_matrix_gives_back_every_element_in_the_file_s_order(pool: Pool, name: str) -> None:
    stored = matrix(name, 19, 2)
    unit = Inputs.of(pool, torch.eye(stored.columns), codes=False)
    found = multiply(pool, unit, [stored.record], plain_rows(stored.columns).record(), dense=True)
    assert torch.equal(found.values.T, stored.decoded)


def test_another_element_is_noticed(pool: Pool) -> None:
    """The control: one flipped bit of one row's last block shows, in that row alone."""
    stored = matrix("q4_k", 18, 2)
    other = stored.stored.clone()
    other[17, -1] ^= 0x10
    unit = Inputs.of(pool, torch.eye(stored.columns), codes=False)
    rows = plain_rows(stored.columns).record()
    found = [
        multiply(pool, unit, [each.in_strips(pool)], rows, dense=True).values.T
        for each in (stored, Matrix("q4_k", other))
    ]
    differs = (found[0] != found[1]).any(dim=1)
    assert differs.nonzero().flatten().tolist() == [17]


@pytest.mark.parametrize("name", ["q4_1", "q5_k", "f16", "iq4_xs"])
@pytest.mark.parametrize("strips", [False, True])
def test_a_dense_product_of_past_one_depth_is_right_to_float32(
    pool: Pool, name: str, strips: bool
) -> None:
    if strips and name not in cases.STRIP_FORMATS:
        name = "q8_0"
    stored = Matrix(name, cases.random_weight(name, 41, 2304), values(1, 41, seed=9)[0])
    x = values(13, stored.columns)
    weight = stored.in_strips(pool) if strips else stored.record
    inputs = Inputs.of(pool, x, codes=False)
    found = multiply(pool, inputs, [weight], plain_rows(13).record(), dense=True)
    wanted = reference.product(x, stored.decoded, stored.bias)
    # A chain of fused multiply-adds: half a step of the running sum each.
    bound = 2.0**-24 * 2304**0.5 * 4 * (x.double().abs() @ stored.decoded.double().abs().T)
    assert ((found.values - wanted).abs() <= bound.clamp(min=1e-6)).all()


@pytest.mark.parametrize("strips", [False, True])
def test_a_dense_row_has_the_same_bits_in_any_company(pools: dict[int, Pool], strips: bool) -> None:
    """Rows 1 to 16 and 100, on 1 to 3 threads, alone or in the middle of a chunk."""
    stored = matrix("q4_k", 70, 5, bias=True)
    x = values(100, stored.columns)

    def product(threads: int, first: int, count: int) -> torch.Tensor:
        pool = pools[threads]
        weight = stored.in_strips(pool) if strips else stored.record
        inputs = Inputs.of(pool, x, codes=False)
        rows = plain_rows(100).record(first, count)
        found = multiply(pool, inputs, [weight], rows, dense=True).values
        assert untouched(found[:first]) and untouched(found[first + count :])
        return found[first : first + count]

    whole = product(1, 0, 100)
    for count in range(1, 17):
        first = 7 * (count % 2)
        assert same_bits(product(1, first, count), whole[first : first + count]), count
    for threads in (2, 3):
        assert same_bits(product(threads, 0, 100), whole), threads
        assert same_bits(product(threads, 99, 1), whole[99:]), threads
    assert not same_bits(whole[0], whole[1]), "the control"


def test_three_dense_weights_lie_side_by_side(pool: Pool) -> None:
    stored = [matrix("q4_k", 35, 1, bias=True), matrix("q6_k", 1, 1), matrix("f32", 9, 8)]
    x = values(7, 256)
    weights = [stored[0].in_strips(pool), stored[1].in_strips(pool), stored[2].record]
    inputs = Inputs.of(pool, x, codes=False)
    found = multiply(pool, inputs, weights, plain_rows(7).record(), dense=True).values
    alone = [
        multiply(pool, inputs, [weight], plain_rows(7).record(), dense=True).values
        for weight in weights
    ]
    assert same_bits(found, torch.cat(alone, dim=1))
