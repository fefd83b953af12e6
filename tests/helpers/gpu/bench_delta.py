"""What to time of the gated delta rule: real layers, prompts and generated rows.

A name has value heads and rows. The bytes of a step are those of states read and written; those of
a prompt its inputs and its output. Operations of a prompt are those of the block form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import cycle

import torch

from kernels.delta_prompt.launch import (
    CONFIGURATION,
    PromptConfiguration,
    delta_prompt,
    prompt_scratch,
    prompt_scratch_bytes,
)
from kernels.delta_step.cases import DeltaShape, delta_weights
from kernels.delta_step.launch import DeltaWeights, delta_step
from kernels.rows import empty_rows

Bench = tuple[str, Callable[[], object], float, float]
DEVICE = torch.device("cuda")
HEADS = (48, 32, 16)
PROMPT_ROWS = (8192, 2048, 512)
STEP_ROWS = (1, 2, 4, 8)
LAYERS = 24
"""Whose states steps go round: more than an L2 cache holds."""
OTHERS = (
    replace(CONFIGURATION, tile=64),
    replace(CONFIGURATION, solve_warps=8),
)


def benches() -> Iterator[Bench]:
    """Prompts and steps of all layers, then other configurations of one prompt."""
    for heads in HEADS:
        weights = _weights(heads)
        for rows in PROMPT_ROWS:
            yield _prompt(weights, rows, CONFIGURATION)
        for rows in STEP_ROWS:
            yield _step(weights, rows)
    for other in OTHERS:
        yield _prompt(_weights(48), 2048, other)


def _weights(heads: int) -> DeltaWeights:
    return delta_weights(DeltaShape(16, heads), DEVICE, torch.Generator().manual_seed(1))


def _joint(rows: int, weights: DeltaWeights, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    heads = weights.value_head_count
    widths = [weights.channels, weights.columns, heads, heads]
    joint = torch.randn(rows, sum(widths), device=DEVICE).to(dtype)
    return torch.split(joint, widths, dim=1)


def _arena(weights: DeltaWeights, slots: int, layers: int) -> tuple[torch.Tensor, torch.Tensor]:
    heads, dims = weights.value_head_count, (weights.key_dim, weights.value_dim)
    states = torch.zeros(slots, layers, heads, *dims, device=DEVICE)
    return states, torch.zeros(slots, layers, weights.size - 1, weights.channels, device=DEVICE)


def _step(weights: DeltaWeights, rows: int) -> Bench:
    states, tails = _arena(weights, rows, LAYERS)
    mixed, gate, beta, alpha = _joint(rows, weights, torch.float32)
    slots = torch.arange(rows, dtype=torch.int32, device=DEVICE)
    scratch = torch.empty(rows, weights.columns, device=DEVICE)
    out = empty_rows(rows, weights.columns, DEVICE)
    calls = [
        partial(
            delta_step, mixed, gate, beta, alpha, weights,
            states[:, layer], tails[:, layer], slots, scratch, out,
        )
        for layer in range(LAYERS)
    ]  # fmt: skip
    turns = cycle(calls)

    def call() -> None:
        next(turns)()

    size = 8.0 * states[:, 0].numel()
    name = f"delta_step {weights.value_head_count} heads, {rows} rows"
    return name, call, size, 7.0 * states[:, 0].numel()


def _prompt(weights: DeltaWeights, rows: int, configuration: PromptConfiguration) -> Bench:
    states, tails = _arena(weights, 1, 1)
    mixed, gate, beta, alpha = _joint(rows, weights, torch.bfloat16)
    size = prompt_scratch_bytes(rows, weights)
    scratch = prompt_scratch(rows, weights, torch.empty(size, dtype=torch.uint8, device=DEVICE))
    out = torch.empty(rows, weights.columns, dtype=torch.bfloat16, device=DEVICE)
    call = partial(
        delta_prompt, mixed, gate, beta, alpha, weights,
        states[:, 0], tails[:, 0], 0, scratch, out, configuration,
    )  # fmt: skip
    heads, key, value = weights.value_head_count, weights.key_dim, weights.value_dim
    work = 2.0 * rows * heads * (128 * key + 128 * value + 3 * key * value)
    moved = 2.0 * rows * (weights.channels + 2 * weights.columns)
    name = f"delta_prompt {heads} heads, {rows} rows"
    if configuration != CONFIGURATION:
        cut = configuration
        name += (
            f" tile {cut.tile} stages {cut.stages} warps"
            f" {cut.convolve_warps}/{cut.solve_warps}/{cut.advance_warps}/{cut.finish_warps}"
        )
    return name, call, moved, work
