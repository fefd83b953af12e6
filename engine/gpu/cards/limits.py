"""Which models run on a GPU: a question about a spec alone, so that planners ask too. No torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from engine.models.spec import AttentionSpec, DeltaSpec, ExpertsSpec, LayerSpec, Mixer, ModelSpec
from kernels.packed.layout import BLOCK

LONGEST_HEAD: Final = 512
HEAD_MULTIPLE: Final = 8
LEAST_CAPABILITY: Final = (8, 0)


def unsupported_card(capability: tuple[int, int]) -> str | None:
    """Why a GPU of this compute capability cannot be used, in one sentence; None where it can."""
    if capability >= LEAST_CAPABILITY:
        return None
    found, wanted = (".".join(map(str, each)) for each in (capability, LEAST_CAPABILITY))
    return f"Its compute capability is {found}, and Hearth needs {wanted} or newer."


def unsupported_by_gpu(spec: ModelSpec) -> str | None:
    """Why this model cannot run on a GPU yet, in one sentence; None where it can.

    Rows are cut into blocks of 32 and heads into steps of 8 up to 512, as published models have
    them.
    """
    if spec.per_layer is not None:
        return "Its per-layer inputs have no path on a GPU yet."
    if spec.hidden % BLOCK:
        return f"Its width of {spec.hidden} is no multiple of {BLOCK}."
    return next((reason for layer in spec.layers for reason in _reasons(layer)), None)


def _reasons(layer: LayerSpec) -> Iterator[str]:
    yield from _mixer_reasons(layer.mixer)
    for branch in layer.branches:
        body = branch.body
        if isinstance(body, ExpertsSpec):
            yield from _mixture_reasons(body)
        elif body.width % BLOCK:
            yield f"Its feed-forward width of {body.width} is no multiple of {BLOCK}."


def _mixture_reasons(body: ExpertsSpec) -> Iterator[str]:
    first = body.experts[0]
    if any(
        (each.width, each.activation) != (first.width, first.activation) for each in body.experts
    ):
        yield "Its experts are of several widths or activations."
    if first.width % BLOCK:
        yield f"Its experts' width of {first.width} is no multiple of {BLOCK}."
    if body.router.bias is not None and body.router_scale != 1.0:
        yield "Its router has a bias and a scale."
    if any(each.bias for expert in body.experts for each in (expert.gate, expert.up, expert.down)):
        yield "Its experts have biases."


def _mixer_reasons(mixer: Mixer) -> Iterator[str]:
    match mixer:
        case AttentionSpec():
            heads, dim = mixer.head_count, mixer.head_dim
            if dim % HEAD_MULTIPLE or dim > LONGEST_HEAD:
                yield f"Its heads of {dim} are no multiple of {HEAD_MULTIPLE} up to {LONGEST_HEAD}."
        case DeltaSpec():
            heads, dim = mixer.value_head_count, mixer.value_dim
            if heads % mixer.key_head_count:
                yield f"Its {heads} value heads do not divide among {mixer.key_head_count}."
    if heads * dim % BLOCK:
        yield f"Its {heads} heads of {dim} are no multiple of {BLOCK} columns together."
