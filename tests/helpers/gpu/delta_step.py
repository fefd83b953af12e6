"""Checks of the gated delta rule on generated rows, on any device that runs the kernels."""

from __future__ import annotations

from dataclasses import replace

import torch

from kernels.delta_step.cases import (
    CASES,
    OUT_TOLERANCE,
    STATE_TOLERANCE,
    DeltaStepCase,
    DeltaStepInputs,
    build,
)
from kernels.delta_step.launch import delta_step
from kernels.delta_step.reference import Lane, advance_row, gated_norm
from kernels.rows import QuantizedRows, empty_rows

__all__ = ["CASES", "check"]


def check(case: DeltaStepCase, device: str) -> dict[str, float]:
    """One case against its reference, and each row alone against all: named errors."""
    inputs = build(case, torch.device(device), torch.Generator().manual_seed(7))
    states, tails = inputs.states.clone(), inputs.tails.clone()
    out = poisoned_rows(inputs)
    wanted = expected(inputs)
    alone = [_alone(inputs, row) for row in range(len(case.slots))]
    step(inputs, out)
    errors = {
        "out": distance(out.values(), wanted[0]),
        "states": distance(inputs.states, wanted[1]),
        "tails": distance(inputs.tails, wanted[2]),
    }
    assert errors["tails"] == 0.0, f"{case.name}: a tail is not the newest inputs."
    assert errors["states"] <= STATE_TOLERANCE, f"{case.name}: states are off: {errors}."
    assert errors["out"] <= OUT_TOLERANCE, f"{case.name}: rows are off: {errors}."
    untouched = [slot for slot in range(len(states)) if slot not in case.slots]
    assert torch.equal(inputs.states[untouched], states[untouched]), "Another slot's state moved."
    assert torch.equal(inputs.tails[untouched], tails[untouched]), "Another slot's tail moved."
    for row, (lone, state, tail) in enumerate(alone):
        assert same_row(lone, 0, out, row), f"{case.name}: row {row} alone has other bits."
        if case.slots[row] >= 0:
            assert torch.equal(state, inputs.states[case.slots[row]]), "A lone state differs."
            assert torch.equal(tail, inputs.tails[case.slots[row]]), "A lone tail differs."
    return errors


def step(inputs: DeltaStepInputs, out: QuantizedRows) -> None:
    """Launch on the inputs, whose states and tails move."""
    delta_step(
        inputs.mixed, inputs.gate, inputs.beta, inputs.alpha, inputs.weights,
        inputs.states, inputs.tails, inputs.slots, inputs.scratch, out,
    )  # fmt: skip


def expected(inputs: DeltaStepInputs) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Rows, states and tails of the reference, float64; the inputs stay."""
    states, tails = inputs.states.double(), inputs.tails.double()
    rows = torch.zeros(inputs.gate.shape, dtype=torch.float64, device=inputs.gate.device)
    for row, slot in enumerate(inputs.slots.tolist()):
        if slot >= 0:
            read = advance_row(
                Lane(states[slot], tails[slot]),
                inputs.mixed[row], inputs.beta[row], inputs.alpha[row], inputs.weights,
            )  # fmt: skip
            rows[row] = gated_norm(read, inputs.gate[row], inputs.weights)
    return rows, states, tails


def poisoned_rows(inputs: DeltaStepInputs) -> QuantizedRows:
    """Room for the rows, full of numbers that no kernel writes."""
    out = empty_rows(len(inputs.gate), inputs.weights.columns, inputs.gate.device)
    for part in (out.high, out.low):
        part.fill_(-128)
    out.scales.fill_(torch.nan)
    out.sums.fill_(2**31 - 1)
    return out


def same_row(one: QuantizedRows, at: int, other: QuantizedRows, row: int) -> bool:
    """Whether row ``at`` of one has the bits of ``row`` of the other."""
    parts = ((one.high, other.high), (one.low, other.low), (one.sums, other.sums))
    scales = torch.equal(one.scales[at].view(torch.int32), other.scales[row].view(torch.int32))
    return scales and all(torch.equal(mine[at], theirs[row]) for mine, theirs in parts)


def distance(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """Relative L2 distance; infinite where a number is missing."""
    apart = torch.linalg.vector_norm(found.double() - wanted)
    length = torch.linalg.vector_norm(wanted)
    return float(torch.nan_to_num(apart / length.clamp_min(1e-300), nan=torch.inf))


def _alone(inputs: DeltaStepInputs, row: int) -> tuple[QuantizedRows, torch.Tensor, torch.Tensor]:
    """One row by itself on copies: its output, state and tail."""
    cut = slice(row, row + 1)
    lone = replace(
        inputs,
        mixed=inputs.mixed[cut],
        gate=inputs.gate[cut],
        beta=inputs.beta[cut],
        alpha=inputs.alpha[cut],
        states=inputs.states.clone(),
        tails=inputs.tails.clone(),
        slots=inputs.slots[cut],
    )
    out = poisoned_rows(lone)
    step(lone, out)
    slot = int(lone.slots)
    return out, lone.states[slot], lone.tails[slot]
