"""A model's layers as a GPU computes them: packed weights, small tensors and numbers, in order.

Made once from a ``ModelSpec`` and its weights; what follows from the spec alone (offsets into joint
outputs, turns of the rotary rule) is settled here, so that a step is launches and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from engine.gpu.arena.weights import FusedPart, GpuWeights
from engine.models.spec import (
    Activation,
    AttentionSpec,
    Branch,
    DeltaSpec,
    ExpertsSpec,
    FeedForwardSpec,
    HeadOrder,
    LayerSpec,
    Linear,
    ModelSpec,
    Norm,
    RopeSpec,
    RopeStyle,
)
from kernels.delta_step.launch import DeltaWeights
from kernels.packed.weight import Weight
from kernels.rotary.launch import HeadColumns, HeadNorms, Turns
from kernels.rotary.turns import turns_of


@dataclass(frozen=True, slots=True)
class NormWeight:
    """An RMS norm: weight [width] float32 with its offset added; None multiplies by nothing."""

    weight: torch.Tensor | None
    eps: float


@dataclass(frozen=True, slots=True)
class Joint:
    """Products that read the same input and write one output [rows, columns], side by side."""

    parts: tuple[FusedPart, ...]
    columns: int


@dataclass(frozen=True, slots=True)
class Attention:
    """An attention layer; the joint output is query | gate | key | value, as far as there are any.

    Attributes:
        gate: column of the gate, None without one.
    """

    spec: AttentionSpec
    inputs: Joint
    output: Joint
    columns: HeadColumns
    norms: HeadNorms
    turns: Turns | None
    gate: int | None


@dataclass(frozen=True, slots=True)
class Delta:
    """A gated delta rule layer; the joint output is mixed | gate | beta | alpha."""

    spec: DeltaSpec
    inputs: Joint
    output: Joint
    weights: DeltaWeights


Mixer = Attention | Delta


@dataclass(frozen=True, slots=True)
class FeedForward:
    """``down(activation(gate) * up)``; the joint output is gate | up."""

    inputs: Joint
    output: Joint
    width: int
    activation: Activation


@dataclass(frozen=True, slots=True)
class Mixture:
    """A mixture of experts.

    Attributes:
        router: [experts, hidden], multiplied in float32.
        gate, up, down: stacks of all experts' rows.
        router_norm: None: the router reads what the experts read.
    """

    spec: ExpertsSpec
    router: torch.Tensor
    router_bias: torch.Tensor | None
    router_norm: NormWeight | None
    gate: Weight
    up: Weight
    down: Weight
    scales: torch.Tensor | None
    width: int
    activation: Activation


@dataclass(frozen=True, slots=True)
class BranchWeights:
    """One addend of a layer's second half."""

    norm: NormWeight
    body: FeedForward | Mixture
    post_norm: NormWeight | None
    gate: Joint | None


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One block; see ``LayerSpec``."""

    mixer_norm: NormWeight
    mixer: Mixer
    mixer_post_norm: NormWeight | None
    branches: tuple[BranchWeights, ...]
    branches_post_norm: NormWeight | None
    scale: float


@dataclass(frozen=True, slots=True)
class ModelWeights:
    """All of a model."""

    spec: ModelSpec
    embedding: Weight
    layers: tuple[LayerWeights, ...]
    final_norm: NormWeight
    head: Weight


def model_weights(spec: ModelSpec, weights: GpuWeights, device: torch.device) -> ModelWeights:
    """Every layer's records; the weights keep their bytes."""
    maker = _Maker(weights, device)
    return ModelWeights(
        spec=spec,
        embedding=weights.matrix(spec.embedding),
        layers=tuple(map(maker.layer, spec.layers)),
        final_norm=maker.norm(spec.final_norm),
        head=weights.matrix(spec.head),
    )


class _Maker:
    """Makes records; equal rotary rules share one tensor."""

    def __init__(self, weights: GpuWeights, device: torch.device) -> None:
        self._weights = weights
        self._device = device
        self._turns: dict[RopeSpec, Turns] = {}

    def layer(self, layer: LayerSpec) -> LayerWeights:
        match layer.mixer:
            case AttentionSpec() as attention:
                mixer: Mixer = self._attention(attention)
            case DeltaSpec() as delta:
                mixer = self._delta(delta)
        scale = 1.0 if layer.scale is None else float(self._weights.vector(layer.scale).item())
        return LayerWeights(
            mixer_norm=self.norm(layer.mixer_norm),
            mixer=mixer,
            mixer_post_norm=self._optional(layer.mixer_post_norm),
            branches=tuple(map(self._branch, layer.branches)),
            branches_post_norm=self._optional(layer.branches_post_norm),
            scale=scale,
        )

    def norm(self, norm: Norm) -> NormWeight:
        weight = None if norm.weight is None else self._weights.norm(norm)
        return NormWeight(weight, norm.eps)

    def _optional(self, norm: Norm | None) -> NormWeight | None:
        return None if norm is None else self.norm(norm)

    def _joint(self, linears: Sequence[Linear]) -> Joint:
        parts = self._weights.fused(linears)
        last = parts[-1]
        return Joint(parts, last.first + last.weight.rows)

    def _attention(self, spec: AttentionSpec) -> Attention:
        queries, keys = spec.head_count * spec.head_dim, spec.kv_head_count * spec.head_dim
        linears, at = [spec.query], queries
        gate = None
        if spec.gate is not None:
            linears.append(spec.gate)
            gate, at = at, at + queries
        key = value = -1
        if spec.key is not None:
            linears.append(spec.key)
            key, at = at, at + keys
            value = key
            if spec.value is not None:
                linears.append(spec.value)
                value = at
        columns = HeadColumns(0, key, value, spec.head_count, spec.kv_head_count, spec.head_dim)
        return Attention(
            spec=spec,
            inputs=self._joint(linears),
            output=self._joint([spec.output]),
            columns=columns,
            norms=self._head_norms(spec),
            turns=None if spec.rope is None else self._turned(spec.rope),
            gate=gate,
        )

    def _head_norms(self, spec: AttentionSpec) -> HeadNorms:
        query, key, value = (
            None if norm is None else self.norm(norm)
            for norm in (spec.query_norm, spec.key_norm, spec.value_norm)
        )
        return HeadNorms(
            query=None if query is None else query.weight,
            query_eps=None if query is None else query.eps,
            key=None if key is None else key.weight,
            key_eps=None if key is None else key.eps,
            value=None if value is None else value.weight,
            value_eps=None if value is None else value.eps,
        )

    def _turned(self, rope: RopeSpec) -> Turns:
        if rope not in self._turns:
            turns = torch.from_numpy(turns_of(rope.frequencies)).to(self._device)
            self._turns[rope] = Turns(turns, rope.magnitude, rope.style is RopeStyle.HALVES)
        return self._turns[rope]

    def _delta(self, spec: DeltaSpec) -> Delta:
        weights = DeltaWeights(
            taps=self._weights.taps(spec.convolution, spec.channels),
            decay=self._weights.decay(spec.decay, is_log=spec.decay_is_log),
            time_bias=self._weights.vector(spec.time_bias),
            norm=self._weights.norm(spec.norm),
            norm_eps=spec.norm.eps,
            unit_eps=spec.eps,
            key_head_count=spec.key_head_count,
            value_head_count=spec.value_head_count,
            key_dim=spec.key_dim,
            value_dim=spec.value_dim,
            tiled=spec.order is HeadOrder.TILED,
        )
        inputs = self._joint([spec.mixed, spec.gate, spec.beta, spec.alpha])
        return Delta(spec, inputs, self._joint([spec.output]), weights)

    def _branch(self, branch: Branch) -> BranchWeights:
        match branch.body:
            case FeedForwardSpec() as body:
                made: FeedForward | Mixture = FeedForward(
                    self._joint([body.gate, body.up]),
                    self._joint([body.down]),
                    body.width,
                    body.activation,
                )
            case ExpertsSpec() as body:
                made = self._mixture(body)
        return BranchWeights(
            norm=self.norm(branch.norm),
            body=made,
            post_norm=self._optional(branch.post_norm),
            gate=None if branch.gate is None else self._joint([branch.gate]),
        )

    def _mixture(self, body: ExpertsSpec) -> Mixture:
        experts, first = body.experts, body.experts[0]
        router_norm = None if body.router_norm is None else self.norm(body.router_norm)
        router = self._weights.floats(body.router, body.router_scale)
        bias = body.router.bias
        return Mixture(
            spec=body,
            router=router,
            router_bias=None if bias is None else self._weights.vector(bias),
            router_norm=router_norm,
            gate=self._weights.stack([expert.gate for expert in experts]),
            up=self._weights.stack([expert.up for expert in experts]),
            down=self._weights.stack([expert.down for expert in experts]),
            scales=None if body.scales is None else self._weights.vector(body.scales),
            width=first.width,
            activation=first.activation,
        )
