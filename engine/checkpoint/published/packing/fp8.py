"""Eight-bit floats of published checkpoints: codes beside scales by block, row or tensor.

    <name>                               F8_E4M3, [..., rows, columns]
    <name>_scale_inv or <name>_scale     [..., ceil(rows / height), ceil(columns / width)]

A value is code * scale by either name. Scales of activations serve products of eight bits, which
are not computed here; they are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from engine.checkpoint.labels import quoted
from engine.checkpoint.published.header import misfit
from engine.checkpoint.published.packing.joined import FLOATS, PLAIN, Joined, Stored, check_kind
from engine.checkpoint.published.packing.schemes import FP8Scheme
from engine.checkpoint.source import TensorFacts

_CODES = "F8_E4M3"
_EXPONENTS = "F8_E8M0"
_ENDINGS = ("_scale_inv", "_scale")
_OF_ACTIVATIONS = ("input_scale", "activation_scale")

Block = tuple[int, int]


def join_fp8(stored: Stored, scheme: FP8Scheme, labels: Sequence[str]) -> Joined:
    """Join every tensor of eight-bit floats with its scales.

    Raises:
        CheckpointUnreadable: scales are missing, or their shape fits no block.
    """
    whole: dict[str, TensorFacts] = {}
    left_out = set()
    for name, facts in stored.items():
        if scheme.declared and name.endswith(_OF_ACTIVATIONS):
            left_out.add(name)
        if facts.format != _CODES:
            continue
        scales = [found for end in _ENDINGS if (found := stored.get(name + end)) is not None]
        if scales:
            whole[name] = _join(facts, scales[0], scheme.block, labels)
            left_out.add(scales[0].name)
        elif scheme.declared:
            raise misfit(
                labels[facts.file],
                name,
                f"is stored as {_CODES}, but there is no {quoted(name + _ENDINGS[0])} or "
                f"{quoted(name + _ENDINGS[1])}",
            )
    return Joined(whole, frozenset(left_out))


def _join(
    facts: TensorFacts, scales: TensorFacts, declared: Block | None, labels: Sequence[str]
) -> TensorFacts:
    check_kind(scales, (*FLOATS, _EXPONENTS), labels)
    found = _grid(facts.shape, scales.shape, declared)
    if found is None:
        how = f" in blocks of {list(declared)}" if declared else ", by row or by tensor"
        raise misfit(
            labels[scales.file],
            scales.name,
            f"has the shape {list(scales.shape)}, which does not scale {quoted(facts.name)} of "
            f"{list(facts.shape)}{how}",
        )
    block, shape = found
    kind = "e8m0" if scales.format == _EXPONENTS else PLAIN[scales.format]
    return replace(
        facts,
        format="f8_e4m3",
        scales=replace(scales, shape=shape, format=kind),
        block=block,
    )


def _grid(
    shape: tuple[int, ...], scales: tuple[int, ...], declared: Block | None
) -> tuple[Block, tuple[int, ...]] | None:
    """The block of one scale and the scales' shape as a matrix each, or None where none fits."""
    lead, (rows, columns) = shape[:-2], (1, *shape)[-2:]
    if scales[: len(lead)] != lead:
        return None
    rest = scales[len(lead) :]
    if prod(rest) == 1:
        return (rows, columns), (*lead, 1, 1)
    if rest in ((rows,), (rows, 1)):
        return (1, columns), (*lead, rows, 1)
    if declared is None:
        return None
    height, width = declared
    grid = (-(-rows // height), -(-columns // width))
    return (declared, (*lead, *grid)) if rest == grid else None
