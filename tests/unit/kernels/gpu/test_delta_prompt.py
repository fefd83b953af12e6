"""The gated delta rule on a prompt: against float64 row by row, in any cut, and at its limits."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from kernels.checks import KernelShapeError
from kernels.delta_prompt.cases import DeltaPromptCase, DeltaPromptInputs, build
from kernels.delta_prompt.launch import delta_prompt, prompt_scratch, prompt_scratch_bytes
from kernels.delta_step.cases import DeltaShape
from tests.helpers.gpu.delta_prompt import CASES, check, prompt
from tests.helpers.gpu.delta_step import distance

SMALL = DeltaPromptCase("small", DeltaShape(1, 1, 16, 32), 70)


def made(case: DeltaPromptCase = SMALL) -> DeltaPromptInputs:
    return build(case, torch.device("cpu"), torch.Generator().manual_seed(5))


@pytest.mark.parametrize("case", [c for c in CASES if c.interpreted], ids=lambda case: case.name)
def test_rows_state_and_tail_are_the_references_in_every_cut(case: DeltaPromptCase) -> None:
    check(case, "cpu")


def test_rows_have_the_bits_that_they_have_before_others() -> None:
    inputs = made()
    whole, first = prompt(inputs, 70), prompt(inputs, 70, rows=37)
    assert torch.equal(whole.out[:37], first.out)
    assert not torch.equal(whole.states, first.states)


def test_a_row_changes_none_before_it_and_every_one_after_it() -> None:
    inputs = made(replace(SMALL, shift=-6.0))
    before = prompt(inputs, 70).out
    inputs.mixed[20] += 1
    after = prompt(inputs, 70).out
    assert torch.equal(before[:20], after[:20])
    assert all(not torch.equal(before[row], after[row]) for row in range(20, 70))


def test_a_large_decay_costs_the_rows_after_it_no_accuracy() -> None:
    inputs = made(replace(SMALL, dtype=torch.float32))
    inputs.alpha[::2] = 3e4
    inputs.alpha[1::2] = -3.0
    calm = prompt(inputs, 70)
    assert torch.isfinite(calm.out.float()).all()
    inputs.alpha[::2] = 3e3
    assert distance(calm.states, prompt(inputs, 70).states.double()) < 1e-6


def test_pieces_that_the_scratch_holds_change_no_bit() -> None:
    inputs = made()
    whole = prompt(inputs, 70)
    out = torch.full_like(whole.out, torch.nan)
    states, tails = inputs.states.clone(), inputs.tails.clone()
    delta_prompt(
        inputs.mixed, inputs.gate, inputs.beta, inputs.alpha, inputs.weights,
        states, tails, inputs.slot, prompt_scratch(64, inputs.weights, inputs.memory), out,
    )  # fmt: skip
    assert torch.equal(out, whole.out)
    assert torch.equal(states, whole.states)
    assert torch.equal(tails, whole.tails)


def test_other_shapes_are_refused() -> None:
    inputs = made()
    for wrong in (
        replace(inputs, beta=inputs.beta[:, :0]),
        replace(inputs, slot=3),
        replace(inputs, states=inputs.states.double()),
        replace(inputs, memory=inputs.memory[: prompt_scratch_bytes(64, inputs.weights)]),
    ):
        with pytest.raises(KernelShapeError):
            prompt(wrong, 70)
