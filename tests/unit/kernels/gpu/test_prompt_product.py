"""Products of prompt rows: near float64, a row by itself, whatever the tiles."""

from __future__ import annotations

import pytest
import torch

from kernels.checks import KernelShapeError
from kernels.prompt_product.cases import CASES, PromptProductCase, build
from kernels.prompt_product.launch import (
    AMPERE,
    HOPPER,
    Cut,
    Tile,
    bucket,
    chosen,
    prompt_product,
)
from kernels.prompt_product.reference import product
from tests.helpers.gpu.prompt_product import check, tiles, written

CPU = torch.device("cpu")
WHOLE = PromptProductCase(70, 40, 96, gap=8, wide=True, add=True)


@pytest.mark.parametrize("case", [case for case in CASES if case.interpreted], ids=str)
def test_a_product_is_near_float64(case: PromptProductCase) -> None:
    assert check(case, "cpu")["error"] >= 0


def test_rows_and_tiles_change_no_bit_of_sums_that_are_exact() -> None:
    inputs = build(WHOLE, CPU, torch.Generator().manual_seed(1))
    inputs.x.copy_((inputs.x * 4).round())
    inputs.weight.copy_((inputs.weight * 200).round())
    inputs.before.copy_((inputs.before * 4).round())
    wanted = (inputs.before.double() + product(inputs.x, inputs.weight, None)).float()
    for tile in tiles(inputs):
        assert torch.equal(written(WHOLE, inputs, 0, 70, tile), wanted)
        for first, rows in ((0, 1), (69, 1), (5, 33)):
            part = written(WHOLE, inputs, first, rows, tile)
            assert torch.equal(part, wanted[first : first + rows])


def test_a_row_whose_input_differs_differs_alone() -> None:
    case = PromptProductCase(33, 7, 64, wide=True)
    inputs = build(case, CPU, torch.Generator().manual_seed(1))
    before = written(case, inputs, 0, 33, None)
    inputs.x[20, 63] += 1.0
    after = written(case, inputs, 0, 33, None)
    assert (before != after).any(1).nonzero().flatten().tolist() == [20]


def test_whole_rounds_have_large_tiles_and_what_is_left_smaller_ones() -> None:
    assert chosen(HOPPER, 8192, 33792, 132) == (Cut(HOPPER[0], 0, 33792),)
    (whole, rest) = chosen(HOPPER, 2048, 5120, 132)
    assert (whole.tile, whole.first, whole.end) == (HOPPER[0], 0, 4096)
    assert (rest.first, rest.end) == (4096, 5120)
    assert rest.tile.rows * rest.tile.columns < 128 * 256
    assert all(cut.tile.columns <= 128 for cut in chosen(HOPPER, 64, 5120, 132))
    assert [bucket(rows) for rows in (1, 64, 65, 8192, 9000)] == [64, 64, 128, 8192, 8192]


@pytest.mark.parametrize("tiles_of", [HOPPER, AMPERE])
def test_cuts_cover_every_column_once(tiles_of: tuple[Tile, ...]) -> None:
    for rows in (64, 512, 2048, 8192):
        for outputs in (1, 48, 1024, 4096, 5120, 17408, 34816):
            cuts = chosen(tiles_of, rows, outputs, 132)
            assert [cut.first for cut in cuts] == [0, *(cut.end for cut in cuts[:-1])]
            assert cuts[-1].end == outputs and all(cut.first < cut.end for cut in cuts)


def test_what_does_not_fit_is_refused() -> None:
    half = torch.zeros(2, 32, dtype=torch.bfloat16)
    out = torch.zeros(2, 3)
    weight = half.new_zeros(3, 32)
    with pytest.raises(KernelShapeError, match="is no"):
        prompt_product(half, weight[:2], out)
    with pytest.raises(KernelShapeError, match="No product of"):
        prompt_product(half, weight.float(), out)
    with pytest.raises(KernelShapeError, match="not written to"):
        prompt_product(half, weight, out.bfloat16(), add=True)
    with pytest.raises(KernelShapeError, match="dense"):
        prompt_product(half.T.contiguous().T, weight, out)
    with pytest.raises(KernelShapeError, match="bias is"):
        prompt_product(half, weight, out, bias=out[0, :2])
