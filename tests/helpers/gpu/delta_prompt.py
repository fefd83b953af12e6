"""Checks of the gated delta rule on rows of a prompt, on any device that runs the kernels."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from kernels.delta_prompt.cases import (
    CASES,
    OUT_TOLERANCE,
    STATE_TOLERANCE,
    DeltaPromptCase,
    DeltaPromptInputs,
    build,
)
from kernels.delta_prompt.launch import delta_prompt, prompt_scratch
from kernels.delta_prompt.reference import advance_rows
from kernels.delta_prompt.sizes import BLOCK_ROWS
from kernels.delta_step.reference import Lane
from tests.helpers.gpu.delta_step import distance

__all__ = ["CASES", "check"]


@dataclass(frozen=True, slots=True)
class Moved:
    """What a call leaves: the rows, and all states and tails."""

    out: torch.Tensor
    states: torch.Tensor
    tails: torch.Tensor


def check(case: DeltaPromptCase, device: str) -> dict[str, float]:
    """One case against its reference, whole and cut: named errors."""
    inputs = build(case, torch.device(device), torch.Generator().manual_seed(11))
    found = prompt(inputs, case.rows)
    lane = Lane(inputs.states[inputs.slot].double(), inputs.tails[inputs.slot].double())
    rows = (inputs.mixed, inputs.gate, inputs.beta, inputs.alpha)
    wanted = advance_rows(lane, rows, inputs.weights)
    errors = {
        "out": distance(found.out, wanted),
        "state": distance(found.states[inputs.slot], lane.state),
        "tail": distance(found.tails[inputs.slot], lane.tail),
        "bf16 alone": distance(wanted.bfloat16(), wanted),
    }
    assert errors["tail"] == 0.0, f"{case.name}: the tail is not the newest inputs."
    assert errors["state"] <= STATE_TOLERANCE, f"{case.name}: the state is off: {errors}."
    beyond = errors["out"] - errors["bf16 alone"]
    assert beyond <= OUT_TOLERANCE, f"{case.name}: rows are off: {errors}."
    others = [at for at in range(len(inputs.states)) if at != inputs.slot]
    assert torch.equal(found.states[others], inputs.states[others]), "Another state moved."
    assert torch.equal(found.tails[others], inputs.tails[others]), "Another tail moved."
    halves = BLOCK_ROWS * (case.rows // BLOCK_ROWS // 2)
    for length in sorted({BLOCK_ROWS, halves} if halves else ()):
        cut = prompt(inputs, length)
        assert torch.equal(cut.out, found.out), f"{case.name}: cut each {length} rows differ."
        assert torch.equal(cut.states, found.states), f"{case.name}: another state when cut."
        assert torch.equal(cut.tails, found.tails), f"{case.name}: another tail when cut."
    return errors


def prompt(inputs: DeltaPromptInputs, length: int, rows: int | None = None) -> Moved:
    """Launch on copies, ``length`` rows at a time, up to row ``rows``."""
    rows = len(inputs.mixed) if rows is None else rows
    out = torch.full((rows, inputs.weights.columns + 16), torch.nan, dtype=torch.bfloat16)
    out = out.to(inputs.mixed.device)[:, : inputs.weights.columns]
    moved = Moved(out, inputs.states.clone(), inputs.tails.clone())
    for first in range(0, rows, length):
        end = min(rows, first + length)
        part = slice(first, end)
        inputs.memory.fill_(255)
        delta_prompt(
            inputs.mixed[part], inputs.gate[part], inputs.beta[part], inputs.alpha[part],
            inputs.weights, moved.states, moved.tails, inputs.slot,
            prompt_scratch(end - first, inputs.weights, inputs.memory), out[part],
        )  # fmt: skip
    return moved
