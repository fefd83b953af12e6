"""The library's decoder gives the reference decoder's bits, for every format it has."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from kernels.cpu import cases
from kernels.cpu.library import Library, Pool
from kernels.cpu.records import Weight
from kernels.quant import FORMATS
from kernels.quant.facts import FACTS, FACTS_BY_TYPE
from tests.helpers.cpu_library import Matrix, same_bits, untouched


def random_bytes(name: str, rows: int, blocks: int) -> torch.Tensor:
    """Any bits at all: NaN, infinite and denormal scales among them."""
    facts = FACTS[name]
    draw = np.random.default_rng([rows, blocks, facts.type_id or 0, 1])
    elements = blocks * max(1, 32 // facts.block_elements) * facts.block_elements
    size = facts.row_bytes(elements)
    return torch.from_numpy(draw.integers(0, 256, (rows, size), dtype=np.uint8))


def decode(pool: Pool, weight: Weight, first: int, rows: int) -> torch.Tensor:
    """Through a buffer with a row, and columns, too many; both must stay as they were."""
    to = torch.full((rows + 1, weight.columns + 32), float("nan"))
    pool.decode(weight, first, to[:rows, : weight.columns])
    assert untouched(to[rows]) and untouched(to[:, weight.columns :])
    return to[:rows, : weight.columns]


def assert_same_numbers(found: torch.Tensor, wanted: torch.Tensor) -> None:
    """Bit for bit, but any NaN is as good as another."""
    nan = wanted.isnan()
    assert torch.equal(found.isnan(), nan)
    assert same_bits(found.masked_fill(nan, 0), wanted.masked_fill(nan, 0))


def test_the_cases_name_every_format_that_the_library_has() -> None:
    library = Library()
    known = {facts.name for number, facts in FACTS_BY_TYPE.items() if library.has_format(number)}
    assert known == set(cases.FORMATS)
    assert not library.has_format(4) and not library.has_format(-1)


@pytest.mark.parametrize("name", cases.FORMATS)
@pytest.mark.parametrize(("rows", "blocks"), [(1, 1), (7, 3)])
def test_any_bits_decode_as_the_reference_decodes_them(
    pool: Pool, name: str, rows: int, blocks: int
) -> None:
    matrix = Matrix(name, random_bytes(name, rows, blocks))
    found = decode(pool, matrix.record, 0, rows)
    assert_same_numbers(found, matrix.decoded)


@pytest.mark.parametrize("name", ["q4_0", "q6_k", "f16"])
def test_rows_from_the_middle_are_those_rows(pool: Pool, name: str) -> None:
    matrix = Matrix(name, random_bytes(name, 9, 1))
    found = decode(pool, matrix.record, 4, 3)
    assert_same_numbers(found, matrix.decoded[4:7])
    assert not torch.equal(found.nan_to_num(), matrix.decoded[3:6].nan_to_num())


@pytest.mark.parametrize("name", ["q4_1", "bf16"])
def test_any_number_of_threads_decodes_the_same(pools: dict[int, Pool], name: str) -> None:
    matrix = Matrix(name, cases.random_weight(name, 13, 256))
    found = [decode(pool, matrix.record, 0, 13) for pool in pools.values()]
    assert all(same_bits(each, FORMATS[name].decode(matrix.stored)) for each in found)
