"""One case of a mixture, checked on any device."""

from __future__ import annotations

import torch

from kernels.mixture.cases import TOLERANCE, MixtureCase, MixtureInputs, build
from kernels.mixture.launch import order_pairs, route, sum_experts
from kernels.mixture.reference import ordered, routed, summed
from kernels.mixture.sizes import count_words
from tests.helpers.gpu.codes import error, poisoned

SAME = 1e-6
"""Relative: experts whose float32 likelihoods are nearer may be ordered either way."""


def routing(
    case: MixtureCase, inputs: MixtureInputs, rows: slice
) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights and experts of some rows."""
    logits = inputs.logits[rows]
    weights = poisoned(len(logits), case.active, device=logits.device)
    chosen = torch.full((len(logits), case.active), -99, dtype=torch.int32, device=logits.device)
    route(logits, inputs.scales, weights, chosen)
    return weights, chosen


def ordering(chosen: torch.Tensor, experts: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Pairs by expert, and where each expert's begin."""
    pairs, device = chosen.numel(), chosen.device
    order = torch.full((pairs,), -99, dtype=torch.int32, device=device)
    starts = torch.full((experts + 1,), -99, dtype=torch.int32, device=device)
    counts = torch.full((count_words(pairs, experts),), -99, dtype=torch.int32, device=device)
    order_pairs(chosen, order, starts, counts)
    return order, starts


def check(case: MixtureCase, device: str) -> dict[str, float]:
    """Errors of one case; raises AssertionError where a promise is broken."""
    inputs = build(case, torch.device(device), torch.Generator().manual_seed(1))
    weights, chosen = routing(case, inputs, slice(None))
    found = {"weights": _routed(case, inputs, weights, chosen)}
    order, starts = ordering(chosen, case.experts)
    pairs = zip((order, starts), ordered(chosen, case.experts), strict=True)
    same = all(torch.equal(one.long(), other) for one, other in pairs)
    assert same, f"{case}: pairs are not in the order of experts."
    x = inputs.x.clone()
    sum_experts(inputs.parts, weights, x)
    found["sum"] = error(x, summed(inputs.parts, weights, inputs.x))
    assert found["sum"] <= TOLERANCE, f"{case}: the sum is off by {found}."
    for row in {0, case.rows // 2, case.rows - 1}:
        part = slice(row, row + 1)
        weights1, chosen1 = routing(case, inputs, part)
        x1 = inputs.x[part].clone()
        sum_experts(inputs.parts[part], weights1, x1)
        alone = torch.equal(weights1[0], weights[row]) and torch.equal(chosen1[0], chosen[row])
        assert alone and torch.equal(x1[0], x[row]), f"{case}: row {row} is not itself."
    return found


def _routed(
    case: MixtureCase, inputs: MixtureInputs, weights: torch.Tensor, chosen: torch.Tensor
) -> float:
    """How far the weights are off; the experts must be those of float64 but for near ties."""
    wanted, experts = routed(inputs.logits, case.active, inputs.scales)
    likely = inputs.logits.double().softmax(-1)
    both = [likely.gather(1, each.long()).sort(-1).values for each in (chosen, experts)]
    near = ((both[0] - both[1]).abs() <= SAME * both[1]).all()
    assert bool(near), f"{case}: experts are chosen that are less likely than others."
    assert bool((chosen[:, 1:] > chosen[:, :-1]).all()), f"{case}: experts do not ascend."
    same = (chosen == experts).all(-1)
    needed = 1.0 if case.ties else 0.99
    assert float(same.double().mean()) >= needed, f"{case}: experts are not the lowest of equals."
    found = error(weights[same], wanted[same])
    assert found <= TOLERANCE, f"{case}: weights are off by {found}."
    return found
