"""What one generated row reads of a checkpoint's tensors, by a spec alone.

A product reads the rows of its weight that take part, experts count by the share of them that is
active, and what is looked up by rows (the embedding, per-layer embeddings) counts nothing unless
it is multiplied too. Pure, no torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from engine.checkpoint.source import TensorFacts
from engine.models.spec import (
    AttentionSpec,
    Branch,
    DeltaSpec,
    ExpertsSpec,
    FeedForwardSpec,
    LayerSpec,
    Linear,
    Mixer,
    ModelSpec,
    Norm,
)

Tensors = Mapping[str, TensorFacts]
Part = Linear | Norm | str | None
"""A product, a norm or a tensor that is read whole; None where the layer lacks it."""


@dataclass(frozen=True, slots=True)
class StepReads:
    """Elements of each tensor that one generated row reads; a mean where experts are chosen."""

    elements: Mapping[str, Fraction]

    @property
    def element_count(self) -> int:
        """All of them together: the active parameters of a token."""
        return round(sum(self.elements.values()))

    def stored_bytes(self, tensors: Tensors) -> int:
        """The bytes in the files behind them, scales and minima included."""
        return round(
            sum(
                tensors[name].stored_bytes * count / max(1, prod(tensors[name].shape))
                for name, count in self.elements.items()
            )
        )


def step_reads(spec: ModelSpec, tensors: Tensors) -> StepReads:
    """Follow one generated row through a model."""
    found: dict[str, Fraction] = {}
    for layer in spec.layers:
        _add(found, tensors, layer_parts(layer))
        for body in mixtures(layer):
            _add(found, tensors, expert_parts(body), _active_share(body))
    _add(found, tensors, _end_parts(spec))
    for name, count in found.items():
        found[name] = min(count, Fraction(prod(tensors[name].shape)))
    return StepReads(found)


def products(spec: ModelSpec) -> list[Linear]:
    """Every different product of a model, experts and head included."""
    found: dict[Linear, None] = {}
    for part in _all_parts(spec):
        if isinstance(part, Linear):
            found.setdefault(part)
    return [*found, Linear(spec.head)]


def small_elements(spec: ModelSpec, tensors: Tensors) -> int:
    """Elements of what is no product's weight: norms, biases, convolutions."""
    weights = {linear.weight for linear in products(spec)}
    names = {name for part in _all_parts(spec) for name, _ in _counted(part, tensors)}
    return sum(prod(tensors[name].shape) for name in names - weights)


def decoded_elements(spec: ModelSpec, tensors: Tensors) -> int:
    """Elements of the tensors that an executor in float32 keeps decoded, each counted once."""
    return sum(prod(tensors[name].shape) for name in step_reads(spec, tensors).elements)


def model_elements(spec: ModelSpec, tensors: Tensors) -> int:
    """Elements of everything that the spec names, what is looked up by rows included."""
    names = {*step_reads(spec, tensors).elements, spec.embedding}
    if spec.per_layer is not None:
        names.add(spec.per_layer.embedding)
    return sum(prod(tensors[name].shape) for name in names)


def _add(
    found: dict[str, Fraction],
    tensors: Tensors,
    parts: Iterator[Part],
    share: Fraction = Fraction(1),
) -> None:
    counts: dict[str, int] = {}
    for part in parts:
        for name, count in _counted(part, tensors):
            counts[name] = counts.get(name, 0) + count
    for name, count in counts.items():
        found[name] = found.get(name, Fraction(0)) + count * share


def _counted(part: Part, tensors: Tensors) -> Iterator[tuple[str, int]]:
    """(tensor, elements) of one part."""
    match part:
        case None:
            return
        case str():
            yield part, prod(tensors[part].shape)
        case Norm():
            if part.weight is not None:
                yield part.weight, prod(tensors[part.weight].shape)
        case Linear():
            shape = tensors[part.weight].shape
            rows = prod(shape[:-1])
            taken = rows if part.rows is None else sum(count for _, count in part.rows)
            yield part.weight, taken * shape[-1]
            if part.bias is not None:
                yield part.bias, taken


def _all_parts(spec: ModelSpec) -> Iterator[Part]:
    for layer in spec.layers:
        yield from layer_parts(layer)
        for body in mixtures(layer):
            yield from expert_parts(body)
    yield from _end_parts(spec)


def mixtures(layer: LayerSpec) -> list[ExpertsSpec]:
    """The mixtures of a layer."""
    return [branch.body for branch in layer.branches if isinstance(branch.body, ExpertsSpec)]


def expert_parts(body: ExpertsSpec) -> Iterator[Part]:
    """All parts of all experts."""
    for expert in body.experts:
        yield from _feed_forward_parts(expert)


def _active_share(body: ExpertsSpec) -> Fraction:
    return Fraction(body.active_count, len(body.experts))


def layer_parts(layer: LayerSpec) -> Iterator[Part]:
    """All parts of a layer but the experts of its mixtures."""
    yield from (layer.mixer_norm, layer.mixer_post_norm, layer.branches_post_norm, layer.scale)
    yield from _mixer_parts(layer.mixer)
    for branch in layer.branches:
        yield from _branch_parts(branch)
    if layer.per_layer is not None:
        yield from (layer.per_layer.gate, layer.per_layer.project, layer.per_layer.norm)


def _mixer_parts(mixer: Mixer) -> Iterator[Part]:
    match mixer:
        case AttentionSpec():
            yield from (mixer.query, mixer.key, mixer.value, mixer.output, mixer.gate)
            yield from (mixer.query_norm, mixer.key_norm, mixer.value_norm)
        case DeltaSpec():
            yield from (mixer.mixed, mixer.gate, mixer.beta, mixer.alpha, mixer.output)
            yield from (mixer.convolution, mixer.decay, mixer.time_bias, mixer.norm)


def _branch_parts(branch: Branch) -> Iterator[Part]:
    yield from (branch.norm, branch.post_norm, branch.gate)
    match branch.body:
        case FeedForwardSpec():
            yield from _feed_forward_parts(branch.body)
        case ExpertsSpec():
            yield from (branch.body.router, branch.body.router_norm, branch.body.scales)


def _feed_forward_parts(body: FeedForwardSpec) -> Iterator[Part]:
    yield from (body.gate, body.up, body.down)


def _end_parts(spec: ModelSpec) -> Iterator[Part]:
    yield from (spec.final_norm, spec.head)
    if spec.per_layer is not None:
        yield from (spec.per_layer.projection, spec.per_layer.norm)
