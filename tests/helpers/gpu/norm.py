"""One case of residual and norm, checked on any device."""

from __future__ import annotations

import torch

from kernels.norm.cases import BF16_TOLERANCE, TOLERANCE, NormCase, NormInputs, build
from kernels.norm.launch import norm_prompt, norm_step
from kernels.norm.reference import residual_norm
from kernels.rows import QuantizedRows
from tests.helpers.gpu.codes import (
    error,
    is_quantized,
    poisoned,
    poisoned_rows,
    row_of,
    same_rows,
)

EPS = 1e-6


def step(case: NormCase, inputs: NormInputs) -> tuple[torch.Tensor, torch.Tensor, QuantizedRows]:
    """The residual as it leaves, its norm and the codes; ``inputs`` stay as they are."""
    x = inputs.x.clone()
    plain = poisoned(*x.shape, device=x.device)
    out = poisoned_rows(len(x), case.columns, x.device)
    norm_step(
        x,
        inputs.weight,
        EPS,
        out,
        added=inputs.added,
        added_weight=inputs.added_weight,
        added_eps=EPS,
        scale=case.scale,
        plain=plain,
    )
    return x, plain, out


def part(inputs: NormInputs, first: int, end: int) -> NormInputs:
    """Some rows of a case."""
    added = None if inputs.added is None else inputs.added[first:end]
    return NormInputs(inputs.x[first:end], inputs.weight, added, inputs.added_weight)


def check(case: NormCase, device: str) -> dict[str, float]:
    """Errors of one case; raises AssertionError where a promise is broken."""
    inputs = build(case, torch.device(device), torch.Generator().manual_seed(1))
    total, normed = residual_norm(
        inputs.x,
        inputs.weight,
        EPS,
        added=inputs.added,
        added_weight=inputs.added_weight,
        added_eps=EPS,
        scale=case.scale,
    )
    x, plain, out = step(case, inputs)
    found = {"residual": error(x, total), "norm": error(plain, normed)}
    assert max(found.values()) <= TOLERANCE, f"{case}: the norm is off by {found}."
    assert is_quantized(out, plain), f"{case}: the codes are not those of the norm."
    for row in {0, case.rows // 2, case.rows - 1}:
        x1, plain1, out1 = step(case, part(inputs, row, row + 1))
        alone = torch.equal(x1[0], x[row]) and torch.equal(plain1[0], plain[row])
        assert alone and same_rows(out1, row_of(out, row)), f"{case}: row {row} is not itself."
    return found | _prompt(case, inputs, total, normed)


def _prompt(
    case: NormCase, inputs: NormInputs, total: torch.Tensor, normed: torch.Tensor
) -> dict[str, float]:
    x = inputs.x.clone()
    out = poisoned(*x.shape, device=x.device, dtype=torch.bfloat16)
    norm_prompt(
        x,
        inputs.weight,
        EPS,
        out,
        added=inputs.added,
        added_weight=inputs.added_weight,
        added_eps=EPS,
        scale=case.scale,
    )
    found = {"prompt residual": error(x, total), "prompt norm": error(out, normed)}
    assert found["prompt residual"] <= TOLERANCE, f"{case}: the residual is off by {found}."
    assert found["prompt norm"] <= BF16_TOLERANCE, f"{case}: the norm is off by {found}."
    return found
