"""The library's decoder gives the reference decoder's bits, for every format it has."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from kernels.cpu import cases
from kernels.cpu.library import Library, Pool
from kernels.cpu.records import Weight
from kernels.quant import FORMATS
from kernels.quant.facts import FACTS
from tests.helpers.cpu_library import Matrix, same_bits, untouched

SPECIAL = [
    0x3F800000,  # 1
    0x3F808000,  # a tie that rounds down to even
    0x3F818000,  # a tie that rounds up to even
    0x3F808001,  # just above a tie
    0x3F807FFF,  # just below one
    0x7F7FFFFF,  # the largest: rounds to infinity
    0x7F800000,
    0xFF800000,
    0x7F800001,  # NaNs whose upper half alone would be infinity
    0xFFBFFFFF,
    0x7FC00000,
    0x00000001,
    0x80000000,
    0x00008000,  # denormal tie
    0x00018000,
    0xC2F60000,
]


def random_bytes(name: str, rows: int, blocks: int) -> torch.Tensor:
    """Any bits at all: NaN, infinite and denormal scales among them."""
    facts = FACTS[name]
    draw = np.random.default_rng([rows, blocks, facts.type_id, 1])
    elements = blocks * max(1, 32 // facts.block_elements) * facts.block_elements
    size = facts.row_bytes(elements)
    return torch.from_numpy(draw.integers(0, 256, (rows, size), dtype=np.uint8))


def decode(pool: Pool, weight: Weight, first: int, rows: int, dtype: torch.dtype) -> torch.Tensor:
    """Through a buffer with a row, and columns, too many; both must stay as they were."""
    to = torch.full((rows + 1, weight.columns + 32), float("nan"), dtype=dtype)
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
    known = {name for name, facts in FACTS.items() if library.has_format(facts.type_id)}
    assert known == set(cases.FORMATS)
    assert not library.has_format(4) and not library.has_format(-1)


@pytest.mark.parametrize("name", cases.FORMATS)
@pytest.mark.parametrize(("rows", "blocks"), [(1, 1), (7, 3)])
def test_any_bits_decode_as_the_reference_decodes_them(
    pool: Pool, name: str, rows: int, blocks: int
) -> None:
    matrix = Matrix(name, random_bytes(name, rows, blocks))
    found = decode(pool, matrix.record, 0, rows, torch.float32)
    assert_same_numbers(found, matrix.decoded)


@pytest.mark.parametrize("name", cases.FORMATS)
def test_bfloat16_is_the_reference_rounded_to_nearest_even(pool: Pool, name: str) -> None:
    matrix = Matrix(name, random_bytes(name, 5, 2))
    found = decode(pool, matrix.record, 0, 5, torch.bfloat16)
    assert_same_numbers(found, matrix.decoded.bfloat16())


def test_ties_infinities_and_nans_round_to_bfloat16_as_in_torch(pool: Pool) -> None:
    bits = torch.tensor(SPECIAL * 2, dtype=torch.int64).to(torch.int32)
    matrix = Matrix("f32", bits.view(torch.uint8).view(1, -1))
    found = decode(pool, matrix.record, 0, 1, torch.bfloat16)[0]
    wanted = bits.view(torch.float32).bfloat16()
    assert_same_numbers(found, wanted)
    assert found[1] == found[0] and found[2] > found[1], "the ties went to even"


@pytest.mark.parametrize("name", ["q4_0", "q6_k", "f16"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_from_the_middle_are_those_rows(pool: Pool, name: str, dtype: torch.dtype) -> None:
    matrix = Matrix(name, random_bytes(name, 9, 1))
    found = decode(pool, matrix.record, 4, 3, dtype)
    assert_same_numbers(found, matrix.decoded[4:7].to(dtype))
    assert not torch.equal(found.nan_to_num(), matrix.decoded[3:6].to(dtype).nan_to_num())


@pytest.mark.parametrize("name", ["q8_0", "q3_k"])
def test_columns_past_one_piece_of_bfloat16_join_without_a_seam(pool: Pool, name: str) -> None:
    matrix = Matrix(name, cases.random_weight(name, 2, 4096 + 512))
    found = decode(pool, matrix.record, 0, 2, torch.bfloat16)
    assert same_bits(found, matrix.decoded.bfloat16())


@pytest.mark.parametrize("name", ["q4_1", "bf16"])
def test_any_number_of_threads_decodes_the_same(pools: dict[int, Pool], name: str) -> None:
    matrix = Matrix(name, cases.random_weight(name, 13, 256))
    found = [decode(pool, matrix.record, 0, 13, torch.float32) for pool in pools.values()]
    assert all(same_bits(each, FORMATS[name].decode(matrix.stored)) for each in found)
