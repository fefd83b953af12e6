"""The experts of a mixture, however a file holds them.

Stacked (gate and up apart, or one over the other in one stack) or each for itself. Every expert
becomes a feed-forward of its own whose products name their rows of the stack. No torch here.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.models.spec import Activation, FeedForwardSpec, Linear
from engine.models.tensors import TensorNames


@dataclass(frozen=True, slots=True)
class ExpertSizes:
    """What the experts of one layer share; ``width`` is the inner number of columns."""

    hidden: int
    count: int
    width: int
    activation: Activation


def experts(tensors: TensorNames, stem: str, sizes: ExpertSizes) -> tuple[FeedForwardSpec, ...]:
    """The experts below ``stem`` ("blk.0.ffn"), each tensor checked before any is listed."""
    if tensors.has(f"{stem}_gate.0.weight"):
        return tuple(_single(tensors, stem, index, sizes) for index in range(sizes.count))
    stacks = (f"{stem}_gate_exps.weight", f"{stem}_up_exps.weight")
    if not any(tensors.has(name) for name in stacks):
        return _fused(tensors, stem, sizes)
    inner = (sizes.count, sizes.width, sizes.hidden)
    gate = tensors.checked(f"{stem}_gate_exps.weight", inner)
    up = tensors.checked(f"{stem}_up_exps.weight", inner)
    down = _down_stack(tensors, stem, sizes)
    return tuple(
        _expert(
            sizes,
            _cut(gate, index * sizes.width, sizes.width),
            _cut(up, index * sizes.width, sizes.width),
            _cut(down, index * sizes.hidden, sizes.hidden),
        )
        for index in range(sizes.count)
    )


def _fused(tensors: TensorNames, stem: str, sizes: ExpertSizes) -> tuple[FeedForwardSpec, ...]:
    width = sizes.width
    both = tensors.checked(f"{stem}_gate_up_exps.weight", (sizes.count, 2 * width, sizes.hidden))
    down = _down_stack(tensors, stem, sizes)
    return tuple(
        _expert(
            sizes,
            _cut(both, 2 * index * width, width),
            _cut(both, (2 * index + 1) * width, width),
            _cut(down, index * sizes.hidden, sizes.hidden),
        )
        for index in range(sizes.count)
    )


def _single(tensors: TensorNames, stem: str, index: int, sizes: ExpertSizes) -> FeedForwardSpec:
    """No biases are looked for, which no family has here: there may be 75,000 such products."""
    inward, outward = (sizes.width, sizes.hidden), (sizes.hidden, sizes.width)
    gate, up, down = (
        Linear(tensors.checked(f"{stem}_{part}.{index}.weight", shape))
        for part, shape in (("gate", inward), ("up", inward), ("down", outward))
    )
    return _expert(sizes, gate, up, down)


def _down_stack(tensors: TensorNames, stem: str, sizes: ExpertSizes) -> str:
    return tensors.checked(f"{stem}_down_exps.weight", (sizes.count, sizes.hidden, sizes.width))


def _cut(stack: str, first: int, count: int) -> Linear:
    return Linear(stack, rows=((first, count),))


def _expert(sizes: ExpertSizes, gate: Linear, up: Linear, down: Linear) -> FeedForwardSpec:
    return FeedForwardSpec(sizes.width, gate, up, down, sizes.activation)
