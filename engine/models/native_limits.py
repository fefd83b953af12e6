"""Which models the native library can run: a question about a spec alone, so that planners ask too.

No torch here.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.models.spec import AttentionSpec, DeltaSpec, ExpertsSpec, LayerSpec, Mixer, ModelSpec
from kernels.cpu.records import GROUP

HEAD_MULTIPLE = 16
LONGEST_KERNEL = 9
NATIVE_GRID_ROWS = 16
"""Prompt chunks begin at its multiples and states are kept there; small, for any cut gives a row
the same bits (tests/gates/test_prompt_grid.py)."""
LONGEST_HEAD = 1024


def unsupported_by_native(spec: ModelSpec) -> str | None:
    """Why this model cannot run natively, in one sentence; None where it can.

    The native code computes whole groups of 32 columns and 16 elements of a head at a time, as
    every published model has them.
    """
    if spec.hidden % GROUP:
        return f"Its width of {spec.hidden} is no multiple of {GROUP}."
    if spec.per_layer is not None and spec.per_layer.width % GROUP:
        return f"Its per-layer width of {spec.per_layer.width} is no multiple of {GROUP}."
    return next((reason for layer in spec.layers for reason in _reasons(layer)), None)


def _reasons(layer: LayerSpec) -> Iterator[str]:
    for branch in layer.branches:
        body = branch.body
        if isinstance(body, ExpertsSpec):
            yield from _mixture_reasons(body)
        elif body.width % GROUP:
            yield f"Its feed-forward width of {body.width} is no multiple of {GROUP}."
    yield from _mixer_reasons(layer.mixer)


def _mixture_reasons(body: ExpertsSpec) -> Iterator[str]:
    kinds = {(expert.width, expert.activation) for expert in body.experts}
    if len(kinds) > 1:
        yield "Its experts are of several widths or activations."
    if body.experts[0].width % GROUP:
        yield f"Its experts' width of {body.experts[0].width} is no multiple of {GROUP}."
    if body.router.bias is not None and body.router_scale != 1.0:
        yield "Its router has a bias and a scale."


def _mixer_reasons(mixer: Mixer) -> Iterator[str]:
    heads, dim = _values(mixer)
    dims = {dim, mixer.key_dim} if isinstance(mixer, DeltaSpec) else {dim}
    for odd in sorted(each for each in dims if each % HEAD_MULTIPLE):
        yield f"Its heads of {odd} are no multiple of {HEAD_MULTIPLE}."
    if dim > LONGEST_HEAD:
        yield f"Its heads of {dim} are longer than {LONGEST_HEAD}."
    if heads * dim % GROUP:
        yield f"Its {heads} heads are no multiple of {GROUP} columns together."
    if isinstance(mixer, DeltaSpec) and mixer.kernel > LONGEST_KERNEL:
        yield f"Its convolution of {mixer.kernel} is longer than {LONGEST_KERNEL}."


def _values(mixer: AttentionSpec | DeltaSpec) -> tuple[int, int]:
    """Heads and head size of what a mixer's output product takes in."""
    if isinstance(mixer, DeltaSpec):
        return mixer.value_head_count, mixer.value_dim
    return mixer.head_count, mixer.head_dim
