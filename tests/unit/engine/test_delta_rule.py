"""The gated delta rule: both forms against a float64 recurrence, and the bits of its blocks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.nn import functional

from engine.forward.layers.delta_rule import (
    BLOCK_ROWS,
    DeltaInputs,
    convolved,
    prompt_rule,
    step_rule,
    unit_length,
)
from tests.helpers.lone_model import relative_l2

HEADS, KEY_DIM, VALUE_DIM = 5, 12, 21


def random_inputs(rows: int, *, decay: torch.Tensor | None = None, seed: int = 1) -> DeltaInputs:
    """Rows of every kind: heads that keep almost all of their state and ones that keep little."""
    draw = torch.Generator().manual_seed(seed)
    key = unit_length(torch.randn(HEADS, rows, KEY_DIM, generator=draw), 1e-6)
    # Keys near their predecessors make the triangular system anything but diagonal.
    key[:, 1:] = unit_length(key[:, 1:] + 2 * key[:, :-1], 1e-6)
    pace = torch.logspace(-3, 1, HEADS).unsqueeze(1)
    return DeltaInputs(
        query=unit_length(torch.randn(key.shape, generator=draw), 1e-6) * KEY_DIM**-0.5,
        key=key,
        value=torch.randn(HEADS, rows, VALUE_DIM, generator=draw),
        decay=-pace * torch.rand(HEADS, rows, generator=draw) if decay is None else decay,
        beta=torch.rand(HEADS, rows, generator=draw),
    )


def random_state(seed: int = 2) -> torch.Tensor:
    return torch.randn(HEADS, KEY_DIM, VALUE_DIM, generator=torch.Generator().manual_seed(seed))


def recurrence(
    state: torch.Tensor, inputs: DeltaInputs
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Row by row in float64: what was read, and the state at the end."""
    parts = (inputs.query, inputs.key, inputs.value, inputs.decay, inputs.beta)
    query, key, value, decay, beta = (part.double().numpy() for part in parts)
    held = state.double().numpy().copy()
    read = np.empty(value.shape)
    for head, row in itertools.product(range(HEADS), range(value.shape[1])):
        held[head] *= np.exp(decay[head, row])
        change = beta[head, row] * (value[head, row] - key[head, row] @ held[head])
        held[head] += np.outer(key[head, row], change)
        read[head, row] = query[head, row] @ held[head]
    return read, held


def stepped(state: torch.Tensor, inputs: DeltaInputs) -> torch.Tensor:
    rows = inputs.value.shape[1]
    return torch.cat([step_rule(state, inputs.cut(row, row + 1)) for row in range(rows)], 1)


@pytest.mark.parametrize("rows", [1, 2, 63, 64, 65, 130, 257])
@pytest.mark.parametrize("position", [0, 64, 101])
def test_a_prompt_s_rows_are_those_of_the_recurrence(rows: int, position: int) -> None:
    state, inputs = random_state(), random_inputs(rows)
    read, held = recurrence(state, inputs)
    found = prompt_rule(state, inputs, position)
    assert relative_l2(found, torch.from_numpy(read)) < 2e-6
    assert relative_l2(state, torch.from_numpy(held)) < 2e-6


def test_rows_one_by_one_are_those_of_the_recurrence() -> None:
    state, inputs = random_state(), random_inputs(200)
    read, held = recurrence(state, inputs)
    found = stepped(state, inputs)
    assert relative_l2(found, torch.from_numpy(read)) < 2e-6
    assert relative_l2(state, torch.from_numpy(held)) < 2e-6


@pytest.mark.parametrize("weight", [0.5, 0.9, 1.1])
def test_a_wrong_share_of_the_correction_is_seen(weight: float) -> None:
    """The control: the comparison above notices a beta that is a little off."""
    inputs = random_inputs(130)
    read, _ = recurrence(random_state(), inputs)
    wrong = DeltaInputs(inputs.query, inputs.key, inputs.value, inputs.decay, weight * inputs.beta)
    assert relative_l2(prompt_rule(random_state(), wrong, 0), torch.from_numpy(read)) > 1e-2


def test_a_head_that_forgets_at_once_leaves_later_rows_exact() -> None:
    """Sums of decays in the thousands, and rows between them that keep nearly everything."""
    decay = torch.full((HEADS, 130), -1e-3)
    decay[:, ::9] = -300.0
    state, inputs = random_state(), random_inputs(130, decay=decay)
    read, held = recurrence(state, inputs)
    found = prompt_rule(state, inputs, 0)
    assert relative_l2(found, torch.from_numpy(read)) < 2e-6
    assert relative_l2(state, torch.from_numpy(held)) < 2e-6


@pytest.mark.parametrize("cuts", [(64,), (128, 192), (64, 128, 192, 256), (256,), (192, 320)])
def test_cuts_between_blocks_change_no_bit(cuts: tuple[int, ...]) -> None:
    inputs, whole, cut = random_inputs(350), random_state(), random_state()
    wanted = prompt_rule(whole, inputs, 256)
    edges = [0, *cuts, 350]
    parts = [
        prompt_rule(cut, inputs.cut(first, end), 256 + first)
        for first, end in itertools.pairwise(edges)
    ]
    assert torch.equal(torch.cat(parts, 1), wanted)
    assert torch.equal(cut, whole)


@pytest.mark.parametrize("moved", [0, 1])
def test_cuts_within_a_block_change_bits(moved: int) -> None:
    """The control; blocks lie at absolute positions, so moving all rows by one cuts them too."""
    inputs, whole, cut = random_inputs(350), random_state(), random_state()
    wanted = prompt_rule(whole, inputs, 0)
    first = prompt_rule(cut, inputs.cut(0, BLOCK_ROWS + 32 - moved), moved)
    rest = prompt_rule(cut, inputs.cut(BLOCK_ROWS + 32 - moved, 350), BLOCK_ROWS + 32)
    found = torch.cat([first, rest], 1)
    assert not torch.equal(found, wanted)
    assert relative_l2(found, wanted) < 2e-6


@pytest.mark.parametrize("size", [2, 4, 5])
@pytest.mark.parametrize("cut", [1, 2, 3, 40])
def test_the_convolution_goes_on_over_cuts(size: int, cut: int) -> None:
    """Every bit, also where a part is shorter than the kernel; torch's own sums are near.

    With channels that fill torch's vectors: it computes what is left over with other roundings.
    """
    draw = torch.Generator().manual_seed(3)
    mixed = torch.randn(57, 96, generator=draw)
    kernel = torch.randn(size, 96, generator=draw)
    before = torch.randn(size - 1, 96, generator=draw)
    tail = before.clone()
    found = torch.cat(
        [
            convolved(tail, part, kernel)
            for part in (mixed[:cut], mixed[cut : cut + 1], mixed[cut + 1 :])
        ]
    )
    once = before.clone()
    assert torch.equal(found, convolved(once, mixed, kernel))
    assert torch.equal(tail, mixed[-(size - 1) :]) and torch.equal(once, tail)
    inputs = torch.cat([before, mixed]).double().t().unsqueeze(0)
    weights = kernel.double().t().unsqueeze(1)
    wanted = functional.silu(functional.conv1d(inputs, weights, groups=96)[0].t())
    assert relative_l2(found, wanted) < 1e-6
