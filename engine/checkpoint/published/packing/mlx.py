"""MLX's packed weights: words of codes beside scales, and minima in the affine mode.

    <module>.weight   uint32, [..., rows, columns * bits / 32]
    <module>.scales   [..., rows, columns / group]: a float, or in the other modes a byte
    <module>.biases   the minima, as the scales; in the affine mode only

A module is packed where it has scales. Its packing is what the config says, compared with the
shapes: words and scales of a row tell bits times group, not which is which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.checkpoint.labels import quoted
from engine.checkpoint.published.header import misfit
from engine.checkpoint.published.packing.joined import (
    FLOATS,
    PLAIN,
    Joined,
    Stored,
    check_kind,
    check_shape,
)
from engine.checkpoint.published.packing.schemes import AFFINE, MODES, MLXScheme, Packing
from engine.checkpoint.source import TensorFacts
from engine.errors import CheckpointUnreadable

_WEIGHT, _SCALES, _BIASES = ".weight", ".scales", ".biases"
_WORD_BITS = 32
_CODES: Mapping[str, str] = {"mxfp4": "e2m1", "mxfp8": "f8_e4m3", "nvfp4": "e2m1"}
_BYTE_SCALES: Mapping[str, str] = {"mxfp4": "e8m0", "mxfp8": "e8m0", "nvfp4": "f8_e4m3"}


def join_mlx(stored: Stored, scheme: MLXScheme, labels: Sequence[str]) -> Joined:
    """Join every packed module's tensors.

    Raises:
        CheckpointUnreadable: a part is missing, or shapes and config disagree.
    """
    whole: dict[str, TensorFacts] = {}
    left_out: set[str] = set()
    for name, facts in stored.items():
        module = name.removesuffix(_WEIGHT)
        scales = stored.get(module + _SCALES) if name.endswith(_WEIGHT) else None
        if scales is None:
            if facts.format == "U32":
                raise misfit(
                    labels[facts.file],
                    name,
                    f"holds codes, but there is no {quoted(module + _SCALES)} to scale them",
                )
            continue
        packing = _packing(facts, module, scheme, labels[facts.file])
        biases = stored.get(module + _BIASES)
        whole[name] = _join(facts, scales, biases, packing, labels)
        left_out |= {module + _SCALES, module + _BIASES}
    return Joined(whole, frozenset(left_out))


def _packing(facts: TensorFacts, module: str, scheme: MLXScheme, label: str) -> Packing:
    found = scheme.packing(module)
    if found is None:
        raise misfit(label, facts.name, "has scales, but the config does not say that it is packed")
    return found


def _join(
    facts: TensorFacts,
    scales: TensorFacts,
    biases: TensorFacts | None,
    packing: Packing,
    labels: Sequence[str],
) -> TensorFacts:
    columns = _columns(facts, scales, packing, labels)
    grid = (*facts.shape[:-1], columns // packing.group)
    check_shape(scales, grid, facts, labels)
    codes = replace(facts, shape=(*facts.shape[:-1], columns), block=(1, packing.group))
    if packing.mode != AFFINE:
        check_kind(scales, ("U8",), labels)
        if biases is not None:
            raise misfit(labels[biases.file], biases.name, f"has no place in mode {packing.mode}")
        return replace(
            codes,
            format=_CODES[packing.mode],
            scales=replace(scales, format=_BYTE_SCALES[packing.mode]),
        )
    if biases is None:
        name = facts.name.removesuffix(_WEIGHT) + _BIASES
        raise misfit(labels[facts.file], facts.name, f"holds codes, but there is no {quoted(name)}")
    check_kind(scales, FLOATS, labels)
    check_kind(biases, FLOATS, labels)
    check_shape(biases, grid, facts, labels)
    return replace(
        codes,
        format=f"mlx{packing.bits}",
        scales=replace(scales, format=PLAIN[scales.format]),
        minima=replace(biases, format=PLAIN[biases.format]),
    )


def _columns(
    facts: TensorFacts, scales: TensorFacts, packing: Packing, labels: Sequence[str]
) -> int:
    """Columns of the matrix that the codes stand for, if words and scales agree on them."""
    check_kind(facts, ("U32",), labels)
    if len(facts.shape) < 2:
        raise misfit(labels[facts.file], facts.name, "holds codes, but is no matrix")
    bits, groups = facts.shape[-1] * _WORD_BITS, scales.shape[-1]
    if bits != groups * packing.group * packing.bits:
        raise _disagreement(facts, groups, packing, labels[facts.file])
    return groups * packing.group


def _disagreement(
    facts: TensorFacts, groups: int, packing: Packing, label: str
) -> CheckpointUnreadable:
    bits = facts.shape[-1] * _WORD_BITS
    fitting = [
        f"{each.bits} bits in groups of {each.group}"
        for each in MODES[packing.mode]
        if bits == groups * each.group * each.bits
    ]
    return misfit(
        label,
        facts.name,
        f"has {facts.shape[-1]} words and {groups} scales a row, which is not the config's "
        f"{packing.bits} bits in groups of {packing.group}; {' or '.join(fitting) or 'nothing'} "
        "would fit",
    )
