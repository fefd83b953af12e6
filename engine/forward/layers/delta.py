"""Gated delta rule layers: projections, states in their arena, the gated norm of the output."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional

from engine.cache.recurrent import RecurrentArena
from engine.errors import InvariantBroken
from engine.forward.layers.delta_rule import (
    DeltaInputs,
    convolved,
    prompt_rule,
    step_rule,
    unit_length,
)
from engine.forward.layers.norms import Norms
from engine.forward.layers.rows import Rows
from engine.forward.products import Products
from engine.forward.weights import Weights
from engine.models.spec import DeltaSpec, HeadOrder, ModelSpec


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The small tensors of one layer, float32.

    Attributes:
        kernel: [size, channels], the newest input last.
        decay: [value_head], negative.
        time_bias: [value_head].
        serving: [value_head] int64, the key head of each; None where they are one to one.
    """

    kernel: torch.Tensor
    decay: torch.Tensor
    time_bias: torch.Tensor
    serving: torch.Tensor | None


class DeltaLayers:
    """Computes the recurrent layers of one model; used from the engine thread only.

    Owns their small tensors. Prompt rows take the block form, also a single one, in blocks cut at
    absolute positions; generated rows the one-row form.

    What is promised: where the prompt comes in chunks of the runner's grid, the last one shorter,
    a pass that resumes at any grid point has the bits of a cold one. Chunks of other lengths agree
    to rounding, as the two forms do: torch's products and vectors round by the number of rows.
    """

    def __init__(
        self,
        spec: ModelSpec,
        weights: Weights,
        norms: Norms,
        products: Products,
        arena: RecurrentArena | None,
    ) -> None:
        self._norms = norms
        self._products = products
        self._arena = arena
        self._numbers = {
            layer.mixer.slot: _numbers(layer.mixer, weights)
            for layer in spec.layers
            if isinstance(layer.mixer, DeltaSpec)
        }
        if self._numbers and arena is None:
            raise InvariantBroken(f"A {spec.family} model was built without recurrent states.")

    def advance(self, normed: torch.Tensor, delta: DeltaSpec, rows: Rows) -> torch.Tensor:
        """Move the lane's state over the rows: [value_head, rows, value_dim] read from it."""
        state, tail = self._state(delta, rows)
        numbers = self._numbers[delta.slot]
        mixed = convolved(tail, self._products.multiply(normed, delta.mixed), numbers.kernel)
        alpha = self._products.multiply(normed, delta.alpha) + numbers.time_bias
        inputs = DeltaInputs(
            *_heads(mixed, delta, numbers.serving),
            decay=functional.softplus(alpha).mul_(numbers.decay).t(),
            beta=self._products.multiply(normed, delta.beta).sigmoid_().t(),
        )
        if rows.generated:
            return step_rule(state, inputs)
        return prompt_rule(state, inputs, rows.positions.start)

    def output(self, normed: torch.Tensor, read: torch.Tensor, delta: DeltaSpec) -> torch.Tensor:
        """What rows take in, [rows, hidden], of what ``advance`` read for them."""
        by_row = self._norms.apply(read.transpose(0, 1), delta.norm).reshape(len(normed), -1)
        gate = functional.silu(self._products.multiply(normed, delta.gate), inplace=True)
        return self._products.multiply(by_row.mul_(gate), delta.output)

    def _state(self, delta: DeltaSpec, rows: Rows) -> tuple[torch.Tensor, torch.Tensor]:
        slot = rows.recurrent_slot
        if slot is None or self._arena is None:
            raise InvariantBroken("Rows of a recurrent model were given without a state.")
        return self._arena.states[slot, delta.slot], self._arena.tails[slot, delta.slot]


def _numbers(delta: DeltaSpec, weights: Weights) -> _Numbers:
    decay = weights.vector(delta.decay)
    kernel = weights.whole(delta.convolution).reshape(delta.channels, delta.kernel)
    return _Numbers(
        kernel=kernel.t().contiguous(),
        decay=decay.exp().neg_() if delta.decay_is_log else decay,
        time_bias=weights.vector(delta.time_bias),
        serving=_serving(delta),
    )


def _serving(delta: DeltaSpec) -> torch.Tensor | None:
    keys, values = delta.key_head_count, delta.value_head_count
    if keys == values:
        return None
    heads = torch.arange(values)
    return heads // (values // keys) if delta.order is HeadOrder.GROUPED else heads % keys


def _heads(
    mixed: torch.Tensor, delta: DeltaSpec, serving: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Query, key and value as ``DeltaInputs`` has them, of rows q | k | v."""
    width = delta.key_head_count * delta.key_dim
    parts = mixed.tensor_split([width, 2 * width], 1)
    query, key = (
        unit_length(part.view(len(mixed), -1, delta.key_dim), delta.eps).transpose(0, 1)
        for part in parts[:2]
    )
    query = query * delta.key_dim**-0.5
    value = parts[2].view(len(mixed), -1, delta.value_dim).transpose(0, 1)
    if serving is None:
        return query, key, value
    return query[serving], key[serving], value
