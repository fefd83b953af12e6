"""What the joining of codes and scales yields, whichever the scheme."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from engine.checkpoint.labels import quoted
from engine.checkpoint.published.header import misfit
from engine.checkpoint.source import TensorFacts

PLAIN: Mapping[str, str] = MappingProxyType(
    {
        "F32": "f32",
        "F16": "f16",
        "BF16": "bf16",
        "F64": "f64",
        "F8_E4M3": "f8_e4m3",
        "I8": "i8",
        "I16": "i16",
        "I32": "i32",
        "I64": "i64",
    }
)
"""The header's words for formats that need no scales, and the names of those formats."""
FLOATS = ("F32", "F16", "BF16")

Stored = Mapping[str, TensorFacts]
"""Tensors by name as the headers have them: their format is the header's word ("BF16")."""


@dataclass(frozen=True, slots=True)
class Joined:
    """Tensors that stand for several stored ones.

    Attributes:
        whole: by the name of the codes.
        left_out: names of stored tensors that are part of those, or of no use here.
    """

    whole: Mapping[str, TensorFacts]
    left_out: frozenset[str]


def check_kind(facts: TensorFacts, kinds: Sequence[str], labels: Sequence[str]) -> None:
    """Refuse scales or minima that are stored in another way than ``kinds``."""
    if facts.format not in kinds:
        wanted = " or ".join(kinds)
        raise misfit(
            labels[facts.file], facts.name, f"is stored as {facts.format}; wanted {wanted}"
        )


def check_shape(
    facts: TensorFacts, shape: tuple[int, ...], whose: TensorFacts, labels: Sequence[str]
) -> None:
    """Refuse scales or minima whose shape is not the one that the codes ask for."""
    if facts.shape != shape:
        raise misfit(
            labels[facts.file],
            facts.name,
            f"has the shape {list(facts.shape)}; wanted {list(shape)} for {quoted(whose.name)} "
            f"of {list(whose.shape)}",
        )
