"""Products of prompt rows with their experts: each pair's own, whoever else is there."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from kernels.checks import KernelShapeError
from kernels.expert_prompt.cases import CASES, ExpertPromptCase, build
from kernels.expert_prompt.launch import expert_prompt, most_tiles
from kernels.expert_prompt.reference import products
from tests.helpers.gpu.expert_prompt import check, tiles, written

CPU = torch.device("cpu")
MANY = ExpertPromptCase(50, 3, 4, 17, 96)


@pytest.mark.parametrize("case", [case for case in CASES if case.interpreted], ids=str)
def test_a_pair_has_the_product_with_its_expert(case: ExpertPromptCase) -> None:
    assert check(case, "cpu")["error"] >= 0


def test_tiles_change_no_bit_of_sums_that_are_exact() -> None:
    inputs = build(MANY, CPU, torch.Generator().manual_seed(1))
    inputs.x.copy_((inputs.x * 2).round())
    inputs.weight.copy_((inputs.weight * 100).round())
    wanted = products(inputs.x, inputs.weight, inputs.experts, MANY.active).bfloat16()
    for tile in tiles(inputs):
        assert torch.equal(written(MANY, inputs, tile), wanted)


def test_an_expert_that_differs_changes_its_own_pairs_alone() -> None:
    inputs = build(MANY, CPU, torch.Generator().manual_seed(1))
    before = written(MANY, inputs)
    inputs.weight[2, :, 95] += 1.0
    changed = (written(MANY, inputs) != before).any(1)
    assert torch.equal(changed, inputs.experts == 2)


def test_there_are_tiles_enough_however_pairs_fall() -> None:
    for pairs, experts, rows in ((7, 3, 4), (1, 9, 4), (64, 4, 16)):
        worst = max(
            sum(-(-count // rows) for count in (pairs - rest, *([1] * rest)))
            for rest in range(min(experts, pairs))
        )
        assert worst <= most_tiles(pairs, experts, rows)


def test_what_does_not_fit_is_refused() -> None:
    inputs = build(replace(MANY, rows=2), CPU, torch.Generator().manual_seed(1))
    x, weight, order, starts = inputs.x, inputs.weight, inputs.order, inputs.starts
    out = torch.zeros(6, 17)
    with pytest.raises(KernelShapeError, match="6 pairs of"):
        expert_prompt(x, weight, order, starts, out, rows_per_pair=1)
    with pytest.raises(KernelShapeError, match="for 6 pairs"):
        expert_prompt(x, weight, order, starts[1:], out, rows_per_pair=3)
    with pytest.raises(KernelShapeError, match="No product"):
        expert_prompt(x.float(), weight, order, starts, out, rows_per_pair=3)
    with pytest.raises(KernelShapeError, match="int32"):
        expert_prompt(x, weight, order.long(), starts, out, rows_per_pair=3)
    with pytest.raises(KernelShapeError, match="dense"):
        expert_prompt(x, weight, order, starts, out.T.contiguous().T, rows_per_pair=3)
