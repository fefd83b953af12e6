"""Pieces of a ``ModelSpec`` for transformers' own tensors, and these as a checkpoint.

Names are those of the model's ``state_dict``; nothing is permuted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from transformers import PreTrainedModel

from engine.models.spec import Activation, FeedForwardSpec, Linear, RopeSpec, RopeStyle, RowRuns
from tests.helpers.memory_source import MemorySource

EPS = 1e-6
SHIFTED = 1.0


def arrays_of(model: PreTrainedModel) -> dict[str, Any]:
    """Every tensor of a model by its own name, float32."""
    return {
        name: np.ascontiguousarray(value.detach().float().numpy())
        for name, value in model.state_dict().items()
    }


def source_of(model: PreTrainedModel) -> MemorySource:
    """The model's tensors as a checkpoint; its metadata are empty."""
    return MemorySource("handmade", {}, arrays_of(model))


def linear(stem: str, *runs: tuple[int, int]) -> Linear:
    """``stem.weight``, or some runs of its rows."""
    return Linear(f"{stem}.weight", None, runs or None)


def alternating(first: int, count: int, every: int, blocks: int) -> RowRuns:
    """``count`` rows from ``first`` on in each of ``blocks`` blocks of ``every`` rows."""
    return tuple((block * every + first, count) for block in range(blocks))


def rope_of(theta: float, dims: int, over: int | None = None) -> RopeSpec:
    """Halves; ``over`` is what exponents are divided by, and how far the pairs are apart."""
    over = over or dims
    turning = tuple(theta ** (-2 * pair / over) for pair in range(dims // 2))
    return RopeSpec(RopeStyle.HALVES, turning + (0.0,) * ((over - dims) // 2))


def gated(stem: str, width: int, activation: Activation = Activation.SILU) -> FeedForwardSpec:
    """A gated feed-forward under ``stem``."""
    return FeedForwardSpec(
        width,
        linear(f"{stem}.gate_proj"),
        linear(f"{stem}.up_proj"),
        linear(f"{stem}.down_proj"),
        activation,
    )


def stacked(
    stem: str, count: int, width: int, hidden: int, activation: Activation
) -> tuple[FeedForwardSpec, ...]:
    """Experts in stacks: gate over up, then down."""
    both, down = f"{stem}.gate_up_proj", f"{stem}.down_proj"
    return tuple(
        FeedForwardSpec(
            width,
            Linear(both, None, ((2 * expert * width, width),)),
            Linear(both, None, (((2 * expert + 1) * width, width),)),
            Linear(down, None, ((expert * hidden, hidden),)),
            activation,
        )
        for expert in range(count)
    )
