"""Mixtures: the likeliest experts, pairs in their order, sums near float64, a row by itself."""

from __future__ import annotations

import pytest
import torch

from kernels.checks import KernelShapeError
from kernels.mixture.cases import CASES, MixtureCase, MixtureInputs, build
from kernels.mixture.launch import order_pairs, route, sum_experts
from kernels.mixture.sizes import BLOCK_PAIRS
from tests.helpers.gpu.mixture import check, ordering, routing

CPU = torch.device("cpu")


@pytest.mark.parametrize("case", [case for case in CASES if case.interpreted], ids=str)
def test_a_mixture_is_near_float64_and_a_row_itself_among_others(case: MixtureCase) -> None:
    check(case, "cpu")


def test_the_lowest_of_equals_are_chosen() -> None:
    logits = torch.zeros(1, 8)
    logits[0, 5] = 1.0
    inputs = MixtureInputs(logits, None, torch.empty(0), torch.empty(0))
    weights, chosen = routing(MixtureCase(1, 8, 3, 1), inputs, slice(None))
    assert chosen.tolist() == [[0, 1, 5]]
    assert weights[0, 0] == weights[0, 1] < weights[0, 2]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_row_of_nan_still_chooses_experts_that_exist() -> None:
    inputs = MixtureInputs(torch.full((1, 8), torch.nan), None, torch.empty(0), torch.empty(0))
    weights, chosen = routing(MixtureCase(1, 8, 3, 1), inputs, slice(None))
    assert sorted(set(chosen[0].tolist())) == chosen[0].tolist()
    assert 0 <= int(chosen.min()) <= int(chosen.max()) < 8
    assert bool(weights.isnan().all())


def test_pairs_of_several_blocks_keep_their_order() -> None:
    chosen = torch.randint(0, 3, (BLOCK_PAIRS + 77, 1), dtype=torch.int32)
    chosen[chosen == 1] = 2
    order, starts = ordering(chosen, 3)
    assert torch.equal(order.long(), chosen.flatten().sort(stable=True).indices)
    zeros = int((chosen == 0).sum())
    assert starts.tolist() == [0, zeros, zeros, len(chosen)]


def test_other_weights_give_another_sum() -> None:
    inputs = build(CASES[1], CPU, torch.Generator().manual_seed(2))
    weights = torch.rand(3, 2)
    one, other = inputs.x.clone(), inputs.x.clone()
    sum_experts(inputs.parts, weights, one)
    sum_experts(inputs.parts, weights.flip(1), other)
    assert not torch.equal(one, other)


def test_shapes_that_do_not_belong_together_are_refused() -> None:
    logits, few = torch.zeros(2, 8), torch.zeros(2, 3)
    chosen = torch.zeros(2, 3, dtype=torch.int32)
    with pytest.raises(KernelShapeError, match="not routed"):
        route(few, None, torch.zeros(2, 4), torch.zeros(2, 4, dtype=torch.int32))
    with pytest.raises(KernelShapeError, match="for 2 rows"):
        route(logits, None, few[:1], chosen)
    order, starts = torch.zeros(6, dtype=torch.int32), torch.zeros(9, dtype=torch.int32)
    with pytest.raises(KernelShapeError, match="6 pairs"):
        order_pairs(chosen, order[:5], starts, torch.zeros(8, dtype=torch.int32))
    with pytest.raises(KernelShapeError, match="too few to count"):
        order_pairs(chosen, order, starts, torch.zeros(7, dtype=torch.int32))
    with pytest.raises(KernelShapeError, match=r"to \[2, 8\]"):
        sum_experts(torch.zeros(2, 3, 4), few, logits)
    with pytest.raises(KernelShapeError, match="dense"):
        sum_experts(torch.zeros(2, 4, 3).transpose(1, 2), few, torch.zeros(2, 4))
