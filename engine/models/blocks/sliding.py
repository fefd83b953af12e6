"""Which layers of a gemma slide, and how positions turn in the two kinds. No torch here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.checkpoint.source import CheckpointSource, Dialect, MetadataValue
from engine.models import layers, rope
from engine.models.metadata import FamilyKeys
from engine.models.spec import RopeSpec, RopeStyle

DEFAULT_PATTERN = 6
PATTERN_KEY = "attention.sliding_window_pattern"
TYPES_KEY = "layer_types"
SLIDING, FULL = "sliding_attention", "full_attention"
ROPE_BASE = 10_000.0
MOST_ROWS = (1 << 31) - 1
"""Positions are told in 32 bits everywhere."""
TURNING_SHARE = 0.25
STANDING = 1e-20
"""A frequency below this turns nothing in float32 at any position; files divide by 1e30."""


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
    """By the layers' types; where none are given each P-th layer is full, P being 6 by default.

    A config that has both must mean the same: readers of each kind would compute another model.
    """
    stored = keys.raw(TYPES_KEY)
    if stored is None:
        return _every(keys.count(PATTERN_KEY, DEFAULT_PATTERN), layer_count)
    if not isinstance(stored, Sequence) or isinstance(stored, str):
        raise keys.refusal(TYPES_KEY, f"{layer_count} names, one a layer")
    if len(stored) != layer_count or not all(entry in (SLIDING, FULL) for entry in stored):
        raise keys.refusal(TYPES_KEY, f"{SLIDING} or {FULL} for each of {layer_count} layers")
    sliding = tuple(entry == SLIDING for entry in stored)
    if keys.has(PATTERN_KEY) and _every(keys.count(PATTERN_KEY), layer_count) != sliding:
        raise keys.refusal(PATTERN_KEY, f"the layers that {TYPES_KEY} names")
    return sliding


def _every(pattern: int, layer_count: int) -> tuple[bool, ...]:
    return tuple((index + 1) % pattern != 0 for index in range(layer_count))


def sliding_window(keys: FamilyKeys) -> int:
    """Rows attended by a layer that slides, the own one included."""
    window = keys.count("attention.sliding_window")
    if window > MOST_ROWS:
        raise keys.refusal("attention.sliding_window", f"at most {MOST_ROWS} rows")
    return window


def sliding_rope(keys: FamilyKeys, dims: int) -> RopeSpec:
    """The plain rule of the layers that slide, over ``dims`` elements or fewer: none scales it."""
    layers.refuse_other(keys, "rope.sliding.scaling.type", ("none",))
    own = keys.count("rope.dimension_count_swa", dims)
    if own % 2 or own > dims:
        raise keys.refusal("rope.dimension_count_swa", f"an even number of at most {dims}")
    published = keys.positive("rope.sliding.freq_base", ROPE_BASE)
    base = keys.positive("rope.freq_base_swa", published)
    return layers.computable_rope(keys, lambda: RopeSpec(RopeStyle.HALVES, rope.plain(base, own)))


def proportional_rope(source: CheckpointSource, keys: FamilyKeys, head_dim: int) -> RopeSpec:
    """A share of a head's pairs turns as quickly as if all did; the others stand still.

    GGUF says which by divisors; published configs name the rule, or another one.
    """
    if source.dialect is Dialect.GGUF:
        dims = layers.rotated_dims(keys, head_dim)
        found = layers.scaled_rope(keys, source, dims, RopeStyle.HALVES)
        slow = tuple(turn if turn > STANDING else 0.0 for turn in found.frequencies)
        return replace(found, frequencies=slow)
    stated = keys.has("rope.scaling.type")
    if stated and keys.text("rope.scaling.type", "") != "proportional":
        return layers.scaled_rope(keys, source, head_dim, RopeStyle.HALVES)
    share = keys.positive("rope.partial_rotary_factor", 1.0 if stated else TURNING_SHARE)
    base, factor = keys.positive("rope.freq_base"), keys.positive("rope.scaling.factor", 1.0)
    return layers.computable_rope(
        keys, lambda: RopeSpec(RopeStyle.HALVES, rope.proportional(base, head_dim, share, factor))
    )


def _is_list(value: MetadataValue | None) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
