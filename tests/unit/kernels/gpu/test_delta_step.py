"""The gated delta rule on generated rows: against float64, and against the engine's own layer."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.forward.layers import delta_rule
from kernels.checks import KernelShapeError
from kernels.delta_step.cases import DeltaShape, DeltaStepCase, DeltaStepInputs, build
from kernels.delta_step.reference import Lane, advance_row
from tests.helpers.gpu.delta_step import CASES, check, distance, poisoned_rows, same_row, step

SMALL = DeltaStepCase("small", DeltaShape(2, 4, 16, 32), (1, 0))


def made(case: DeltaStepCase = SMALL) -> DeltaStepInputs:
    return build(case, torch.device("cpu"), torch.Generator().manual_seed(3))


@pytest.mark.parametrize("case", [c for c in CASES if c.interpreted], ids=lambda case: case.name)
def test_rows_states_and_tails_are_the_references_and_no_row_knows_another(
    case: DeltaStepCase,
) -> None:
    check(case, "cpu")


@pytest.mark.parametrize("tiled", [False, True])
def test_the_reference_is_the_engines_layer(tiled: bool) -> None:
    inputs = made(replace(SMALL, shape=replace(SMALL.shape, tiled=tiled)))
    weights = inputs.weights
    state, tail = inputs.states[1].clone(), inputs.tails[1].clone()
    mixed = delta_rule.convolved(tail, inputs.mixed[:1], weights.taps)
    heads = torch.arange(4)
    serving = heads % 2 if tiled else heads // 2
    query, key = (
        delta_rule.unit_length(part.view(2, 1, 16), weights.unit_eps)[serving]
        for part in torch.split(mixed[:, :64], 32, dim=1)
    )
    steps = torch.nn.functional.softplus(inputs.alpha[:1] + weights.time_bias)
    rule = delta_rule.DeltaInputs(
        query=query * 16**-0.5,
        key=key,
        value=mixed[:, 64:].view(4, 1, 32),
        decay=(weights.decay * steps).t(),
        beta=inputs.beta[:1].sigmoid().t(),
    )
    lane = Lane(inputs.states[1].double(), inputs.tails[1].double())
    read = advance_row(lane, inputs.mixed[0], inputs.beta[0], inputs.alpha[0], weights)
    assert distance(delta_rule.step_rule(state, rule)[:, 0], read) < 1e-6
    assert distance(state, lane.state) < 1e-6
    assert torch.equal(tail.double(), lane.tail)


def test_a_row_without_a_slot_is_zeros_and_moves_nothing() -> None:
    inputs = made()
    inputs.slots[0] = -1
    inputs.gate[0] = torch.nan
    states, tails = inputs.states.clone(), inputs.tails.clone()
    out = poisoned_rows(inputs)
    step(inputs, out)
    assert torch.equal(out.values()[0], torch.zeros(128, dtype=torch.float64))
    assert torch.equal(inputs.states[1], states[1])
    assert torch.equal(inputs.tails[1], tails[1])
    assert not torch.equal(inputs.states[0], states[0])


def test_what_neighbours_hold_changes_no_bit_of_a_row_and_what_it_holds_does() -> None:
    first, second, third = made(), made(), made()
    second.mixed[1] *= 3
    second.states[0] += 1
    third.mixed[0, 0] += 0.5
    outs = []
    for inputs in (first, second, third):
        outs.append(poisoned_rows(inputs))
        step(inputs, outs[-1])
    assert same_row(outs[0], 0, outs[1], 0)
    assert torch.equal(first.states[1], second.states[1])
    assert not same_row(outs[0], 0, outs[2], 0)
    assert not same_row(outs[0], 1, outs[1], 1)


@pytest.mark.parametrize("x", [-90.0, -20.0, -1e-3, 0.0, 3.0, 40.0])
def test_a_state_decays_as_it_should_however_large_the_step(x: float) -> None:
    inputs = made()
    inputs.alpha[:] = x
    wanted = inputs.states.double()
    lane = Lane(wanted[1], inputs.tails[1].double())
    advance_row(lane, inputs.mixed[0], inputs.beta[0], inputs.alpha[0], inputs.weights)
    step(inputs, poisoned_rows(inputs))
    assert distance(inputs.states[1], lane.state) < 1e-6


def test_other_shapes_are_refused() -> None:
    inputs = made()
    out = poisoned_rows(inputs)
    for wrong in (
        replace(inputs, mixed=inputs.mixed[:, :-1]),
        replace(inputs, slots=inputs.slots.long()),
        replace(inputs, scratch=inputs.scratch[:1, :64]),
        replace(inputs, states=inputs.states.transpose(2, 3)),
        replace(inputs, tails=inputs.tails[:, :2]),
    ):
        with pytest.raises(KernelShapeError):
            step(wrong, out)
    with pytest.raises(KernelShapeError):
        replace(inputs.weights, value_dim=48)
