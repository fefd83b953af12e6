"""One case of gates, checked on any device."""

from __future__ import annotations

import torch

from kernels.gated.cases import TOLERANCE, GatedCase, GatedInputs, build
from kernels.gated.launch import add_gated, gated_prompt, gated_step
from kernels.gated.reference import added, gated
from kernels.rows import QuantizedRows
from tests.helpers.gpu.codes import is_quantized, poisoned, poisoned_rows, row_of, same_rows


def step(case: GatedCase, inputs: GatedInputs, first: int, end: int) -> QuantizedRows:
    """Codes of some rows of a case."""
    out = poisoned_rows(end - first, case.columns, inputs.gate.device)
    gate, up = inputs.gate[first:end], inputs.up[first:end]
    gated_step(gate, up, out, activation=case.activation)
    return out


def check(case: GatedCase, device: str) -> dict[str, float]:
    """Errors of one case; raises AssertionError where a promise is broken."""
    inputs = build(case, torch.device(device), torch.Generator().manual_seed(1))
    wanted = gated(inputs.gate, inputs.up, case.activation)
    scale = inputs.gate.double().abs() * inputs.up.double().abs() + 1e-30
    plain = poisoned(case.rows, case.columns, device=inputs.gate.device)
    gated_prompt(inputs.gate, inputs.up, plain, activation=case.activation)
    found = {"gated": float(((plain.double() - wanted).abs() / scale).max())}
    assert found["gated"] <= TOLERANCE, f"{case}: the gate is off by {found}."
    out = step(case, inputs, 0, case.rows)
    assert is_quantized(out, plain), f"{case}: the codes are not those of the gated rows."
    for row in {0, case.rows // 2, case.rows - 1}:
        alone = step(case, inputs, row, row + 1)
        assert same_rows(alone, row_of(out, row)), f"{case}: row {row} is not itself."
    half = poisoned(case.rows, case.columns, device=plain.device, dtype=torch.bfloat16)
    gated_prompt(inputs.gate, inputs.up, half, activation=case.activation)
    assert torch.equal(half, plain.bfloat16()), f"{case}: bfloat16 is not the nearest."
    return found | _added(case, inputs)


def _added(case: GatedCase, inputs: GatedInputs) -> dict[str, float]:
    x = inputs.x.clone()
    add_gated(x, inputs.up, inputs.single)
    wanted = added(inputs.x, inputs.up, inputs.single)
    scale = inputs.x.double().abs() + inputs.up.double().abs() + 1e-30
    found = {"added": float(((x.double() - wanted).abs() / scale).max())}
    assert found["added"] <= TOLERANCE, f"{case}: what is added is off by {found}."
    return found
