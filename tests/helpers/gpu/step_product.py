"""One case of the products of generated rows, checked on any device."""

from __future__ import annotations

import torch

from kernels.rows import QuantizedRows
from kernels.step_product.cases import (
    CASES,
    TOLERANCE,
    StepProductCase,
    StepProductInputs,
    build,
)
from kernels.step_product.configuration import Configuration
from kernels.step_product.launch import step_experts, step_product
from kernels.step_product.reference import expert_product, product

__all__ = ["CASES", "check"]

FEW_PROGRAMS = Configuration(tile=8, warps=4)
"""In the interpreter, where each program and each step of K costs a tenth of a second."""


def check(case: StepProductCase, device: torch.device | str) -> dict[str, float]:
    """Against the reference, and each row alone and beside others: the relative L2 distance."""
    device = torch.device(device)
    inputs = build(case, device, torch.Generator(device).manual_seed(5))
    found, wanted = launched(case, inputs), expected(case, inputs)
    assert not bool(torch.isnan(found).any()), f"{case.name}: some outputs are not written."
    error = distance(found, wanted)
    assert error <= TOLERANCE, f"{case.name}: {error:.1e} from the reference."
    for first, stop in parts(case.rows):
        cut = between(case, inputs, first, stop)
        part = launched(case, cut)
        assert same_bits(part, found[first:stop]), (
            f"{case.name}: rows {first}..{stop} alone have other bits than among {case.rows}."
        )
    return {"relative_l2": error}


def parts(rows: int) -> list[tuple[int, int]]:
    """The first and the last row alone, and the last ones of each bucket together."""
    if rows == 1:
        return []
    counts = [count for count in (2, 4, 8) if count < rows]
    return [(0, 1), (rows - 1, rows), *((rows - count, rows) for count in counts)]


def between(
    case: StepProductCase, inputs: StepProductInputs, first: int, stop: int
) -> StepProductInputs:
    """The same case with some of its rows."""
    each = case.chosen if case.chosen and not case.shared else 1
    cut = slice(first * each, stop * each)
    x = inputs.x
    rows = QuantizedRows(x.high[cut], x.low[cut], x.scales[cut], x.sums[cut])
    chosen = None if inputs.chosen is None else inputs.chosen[first:stop]
    return StepProductInputs(rows, inputs.weight, chosen, inputs.before[first:stop], inputs.bias)


def launched(case: StepProductCase, inputs: StepProductInputs) -> torch.Tensor:
    """Run into a poisoned output; what lies between its rows must stay poisoned."""
    rows, n = inputs.before.shape
    cut = None if inputs.before.is_cuda else FEW_PROGRAMS
    if inputs.chosen is not None:
        out = torch.full((rows, case.chosen, n), torch.nan, device=inputs.before.device)
        step_experts(inputs.x, inputs.weight, inputs.chosen, out, cut=cut)
        return out
    room = torch.full((rows, n + case.gap), torch.nan, device=inputs.before.device)
    out = room[:, :n]
    if case.add:
        out.copy_(inputs.before)
    step_product(inputs.x, inputs.weight, out, bias=inputs.bias, add=case.add, cut=cut)
    assert bool(torch.isnan(room[:, n:]).all()), f"{case.name}: written beyond the rows."
    return out


def expected(case: StepProductCase, inputs: StepProductInputs) -> torch.Tensor:
    """The reference, float64."""
    if inputs.chosen is not None:
        return expert_product(inputs.x, inputs.weight, inputs.chosen, case.weight_rows)
    wanted = product(inputs.x, inputs.weight)
    if inputs.bias is not None:
        wanted = wanted + inputs.bias.double()
    return wanted + inputs.before.double() if case.add else wanted


def distance(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """Relative L2."""
    return float((found.double() - wanted).norm() / wanted.norm().clamp_min(1e-300))


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Bit for bit."""
    return torch.equal(one.contiguous().view(torch.int32), other.contiguous().view(torch.int32))
