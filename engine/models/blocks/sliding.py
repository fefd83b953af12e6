"""Which layers of a gemma slide, and how positions turn there. No torch here."""

from __future__ import annotations

from collections.abc import Sequence

from engine.checkpoint.source import MetadataValue
from engine.models import layers, rope
from engine.models.metadata import FamilyKeys
from engine.models.spec import RopeSpec, RopeStyle

DEFAULT_PATTERN = 6
PATTERN_KEY = "attention.sliding_window_pattern"
TYPES_KEY = "layer_types"
SLIDING, FULL = "sliding_attention", "full_attention"
ROPE_BASE = 10_000.0


def sliding_layers(keys: FamilyKeys, layer_count: int) -> tuple[bool, ...]:
    """Which layers slide: every one but each sixth, unless the file gives a pattern or no window.

    Published files name each layer's type; in GGUF a pattern is either a number P (each P-th layer
    is full) or one truth value a layer.
    """
    if keys.count_or_zero("attention.sliding_window") == 0:
        return (False,) * layer_count
    if keys.has(TYPES_KEY) or not _is_list(keys.raw(PATTERN_KEY)):
        return published_sliding(keys, layer_count)
    return sliding_pattern(keys, layer_count)


def sliding_pattern(keys: FamilyKeys, layer_count: int) -> tuple[bool, ...]:
    """One truth value a layer, which the file must give."""
    return keys.flags(PATTERN_KEY, layer_count)


def published_sliding(keys: FamilyKeys, layer_count: int) -> tuple[bool, ...]:
    """By the layers' types; where none are given each P-th layer is full, P being 6 by default."""
    stored = keys.raw(TYPES_KEY)
    if stored is None:
        pattern = keys.count(PATTERN_KEY, DEFAULT_PATTERN)
        return tuple((index + 1) % pattern != 0 for index in range(layer_count))
    if not isinstance(stored, Sequence) or isinstance(stored, str):
        raise keys.refusal(TYPES_KEY, f"{layer_count} names, one a layer")
    if len(stored) != layer_count or not all(entry in (SLIDING, FULL) for entry in stored):
        raise keys.refusal(TYPES_KEY, f"{SLIDING} or {FULL} for each of {layer_count} layers")
    return tuple(entry == SLIDING for entry in stored)


def sliding_rope(keys: FamilyKeys, dims: int) -> RopeSpec:
    """The plain rule of the layers that slide: no family scales it."""
    layers.refuse_other(keys, "rope.sliding.scaling.type", ("none",))
    published = keys.positive("rope.sliding.freq_base", ROPE_BASE)
    base = keys.positive("rope.freq_base_swa", published)
    return layers.computable_rope(keys, lambda: RopeSpec(RopeStyle.HALVES, rope.plain(base, dims)))


def _is_list(value: MetadataValue | None) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
