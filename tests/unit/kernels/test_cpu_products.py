"""Products of a step against float64, and a row's bits in any company.

Each is checked twice: against the very values that the int16 codes stand for, where only float32
rounding is left, and against the float values, where half a step of a code comes on top.
"""

from __future__ import annotations

import pytest
import torch

from kernels.cpu import cases, reference
from kernels.cpu.cases import ProductCase
from kernels.cpu.library import Pool
from kernels.cpu.records import Weight
from tests.helpers.cpu_library import Inputs, Matrix, multiply, plain_rows, same_bits, untouched


def values(rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    """Normal numbers, with a loud column in some groups as real activations have."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, columns, generator=generator)
    x[:, 5::96] *= 30.0
    return x


def ways(pool: Pool, name: str, matrix: Matrix) -> list[Weight]:
    """The weight in the file's order and, where it has them, in strips."""
    strips = [matrix.in_strips(pool)] if name in cases.STRIP_FORMATS else []
    return [matrix.record, *strips]


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("columns", [32, 96, 1056])
def test_activations_become_the_nearest_codes(
    pools: dict[int, Pool], rows: int, columns: int
) -> None:
    x = values(rows, columns)
    x[0, :32] = 0.0
    x[-1, -32:] = -1e-30
    wanted = reference.prepared(x)
    for pool in pools.values():
        found = Inputs.of(pool, x)
        assert torch.equal(found.codes, wanted.codes)
        assert same_bits(found.scales, wanted.scales)
        assert same_bits(found.sums, wanted.sums)
        assert same_bits(found.values, x)
        assert found.padding_untouched()


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf")])
def test_a_value_that_is_no_number_reaches_every_result_of_its_row(
    pool: Pool, wrong: float
) -> None:
    """int16 has no code for it, and a finite result would hide a failure of the model."""
    x = values(2, 96)
    x[0, 37] = wrong
    matrix = Matrix("q4_0", cases.random_weight("q4_0", 9, 96))
    for weight in ways(pool, "q4_0", matrix):
        found = multiply(pool, Inputs.of(pool, x), [weight], plain_rows(2).record()).values
        assert found[0].isnan().all()
        assert found[1].isfinite().all(), "the control: the other row"


def test_the_largest_of_a_group_gets_the_largest_code(pool: Pool) -> None:
    x = torch.linspace(-1.0, 0.5, 32).view(1, 32)
    found = Inputs.of(pool, x)
    assert found.codes.min() == -32767
    error = (found.codes.double() * found.scales.double() - x.double()).abs().max()
    assert 0 < error <= 0.505 * found.scales[0, 0]


def test_a_group_too_small_for_its_scale_adds_next_to_nothing(pool: Pool) -> None:
    x = torch.full((1, 64), 1e-39)
    x[:, 32:] = 1.0
    matrix = Matrix("q8_0", cases.random_weight("q8_0", 5, 64))
    found = multiply(pool, Inputs.of(pool, x), [matrix.record], plain_rows(1).record())
    wanted = reference.product(x, matrix.decoded)
    assert (found.values - wanted).abs().max() < 1e-4


@pytest.mark.parametrize("case", cases.PRODUCTS, ids=str)
@pytest.mark.parametrize("name", cases.FORMATS)
def test_a_product_is_within_its_bound(pool: Pool, name: str, case: ProductCase) -> None:
    x = values(case.rows, case.blocks * 256)
    matrix = Matrix(name, cases.random_weight(name, case.weight_rows, case.blocks * 256))
    inputs = Inputs.of(pool, x)
    coded = x if name in cases.VALUE_FORMATS else reference.prepared(x).values()
    for weight in ways(pool, name, matrix):
        found = multiply(pool, inputs, [weight], plain_rows(case.rows).record()).values.double()
        rounding = (found - reference.product(coded, matrix.decoded)).abs()
        assert (rounding <= cases.rounding_tolerance(x, matrix.decoded)).all()
        error = (found - reference.product(x, matrix.decoded)).abs()
        assert (error <= cases.product_tolerance(x, matrix.decoded, name)).all()


@pytest.mark.parametrize("name", ["q4_0", "q8_0", "q6_k"])
def test_codes_of_eight_bits_would_not_be_within_the_bound(pool: Pool, name: str) -> None:
    """The control: the bound tells int16 activations from the int8 ones that peers use."""
    x = values(3, 256)
    matrix = Matrix(name, cases.random_weight(name, 9, 256))
    groups = x.view(3, -1, 32)
    step = groups.abs().amax(-1, keepdim=True) / 127
    rough = ((groups / step).round() * step).view(3, 256)
    found = multiply(pool, Inputs.of(pool, rough), [matrix.record], plain_rows(3).record()).values
    error = (found - reference.product(x, matrix.decoded)).abs()
    assert (error > 4 * cases.product_tolerance(x, matrix.decoded, name)).any()


@pytest.mark.parametrize("name", ["q4_k", "iq4_nl", "bf16"])
def test_a_bias_is_added_to_every_row(pool: Pool, name: str) -> None:
    stored, bias = cases.random_weight(name, 37, 256), values(1, 37, seed=4)[0]
    x = Inputs.of(pool, values(6, 256))
    rows = plain_rows(6).record()
    plain, biased = Matrix(name, stored), Matrix(name, stored, bias)
    for without, with_bias in zip(ways(pool, name, plain), ways(pool, name, biased), strict=True):
        wanted = multiply(pool, x, [without], rows).values + bias
        assert same_bits(multiply(pool, x, [with_bias], rows).values, wanted)


def test_three_weights_of_unlike_formats_lie_side_by_side(pool: Pool) -> None:
    names = ("q6_k", "q4_k", "f16")
    stored = [
        Matrix(name, cases.random_weight(name, rows, 512))
        for name, rows in zip(names, (21, 3, 16), strict=True)
    ]
    weights = [stored[0].in_strips(pool), stored[1].in_strips(pool), stored[2].record]
    inputs, rows = Inputs.of(pool, values(5, 512)), plain_rows(5).record()
    together = multiply(pool, inputs, weights, rows).values
    alone = [multiply(pool, inputs, [weight], rows).values for weight in weights]
    assert same_bits(together, torch.cat(alone, dim=1))
    assert not same_bits(together[:, 0], together[:, 21]), "the control"


@pytest.mark.parametrize("name", cases.FORMATS)
def test_a_row_has_the_same_bits_in_any_company(pools: dict[int, Pool], name: str) -> None:
    """1 to 16 rows, from the first or from the middle, on 1, 2 and 3 threads."""
    x = values(16, 256)
    matrix = Matrix(name, cases.random_weight(name, 43, 256))
    weights = {threads: ways(pool, name, matrix)[-1] for threads, pool in pools.items()}
    alone = torch.cat([row_of(pools[1], weights[1], x, row, 1) for row in range(16)])
    for count in range(2, 17):
        first = (16 - count) // 2
        found = row_of(pools[1], weights[1], x, first, count)
        assert same_bits(found, alone[first : first + count]), count
    for threads in (2, 3):
        for count in (1, 5, 16):
            found = row_of(pools[threads], weights[threads], x, 0, count)
            assert same_bits(found, alone[:count]), (threads, count)
    assert not same_bits(alone[0], alone[1]), "the control"


def row_of(pool: Pool, weight: Weight, x: torch.Tensor, first: int, count: int) -> torch.Tensor:
    """Rows ``first ...`` of a product; nothing else may be written."""
    found = multiply(pool, Inputs.of(pool, x), [weight], plain_rows(len(x)).record(first, count))
    assert untouched(found.values[:first]) and untouched(found.values[first + count :])
    return found.values[first : first + count]
