"""Heads of models whose sliding and full layers differ in them.

GGUF gives counts once a layer and a head's length once a kind. Published configs give the sliding
layers' numbers, and either those of the full ones or overrides layer by layer. No torch here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.checkpoint.source import CheckpointSource, Dialect, MetadataValue
from engine.models.metadata import FamilyKeys
from engine.models.published import TEXT_PART

HEADS = "attention.head_count"
KV_HEADS = "attention.head_count_kv"
FULL_KV_HEADS = "attention.head_count_kv_full"
LENGTHS = {False: "attention.key_length", True: "attention.key_length_swa"}
VALUE_LENGTHS = {False: "attention.value_length", True: "attention.value_length_swa"}
OVERRIDES = "per_layer_config."
OVERRIDDEN = ("head_dim", "num_key_value_heads")


@dataclass(frozen=True, slots=True)
class Heads:
    """The heads of one layer, ``dim`` elements each."""

    count: int
    kv_count: int
    dim: int


def heads_by_kind(
    source: CheckpointSource, keys: FamilyKeys, sliding: Sequence[bool]
) -> dict[bool, Heads]:
    """The heads of sliding (True) and of full layers, as far as there are any.

    Args:
        sliding: for each layer whether it slides.

    Raises:
        CheckpointUnreadable: layers of one kind differ, or a number makes no sense.
        UnsupportedFamily: a layer overrides something else than its heads.
    """
    overrides = _overrides(source.metadata)
    found: dict[bool, Heads] = {}
    for layer, slides in enumerate(sliding):
        if source.dialect is Dialect.GGUF:
            heads = _counted(keys, layer, len(sliding), slides)
        else:
            heads = _published(keys, slides, _overriding(keys, overrides, layer))
        if slides not in found:
            _check(keys, heads, slides)
        if heads != found.setdefault(slides, heads):
            kind = "sliding" if slides else "full"
            raise keys.refusal(KV_HEADS, f"the same heads in all {kind} layers; {layer} differs")
    return found


def _counted(keys: FamilyKeys, layer: int, layer_count: int, slides: bool) -> Heads:
    length = keys.count(LENGTHS[False])
    return Heads(
        keys.layer_count(HEADS, layer, layer_count),
        keys.layer_count(KV_HEADS, layer, layer_count),
        keys.count(LENGTHS[True], length) if slides else length,
    )


def _published(keys: FamilyKeys, slides: bool, override: FamilyKeys | None) -> Heads:
    kv_count, length = keys.count(KV_HEADS), keys.count(LENGTHS[True])
    if override is not None:
        length = override.count("head_dim", length)
        kv_count = override.count("num_key_value_heads", kv_count)
    elif not slides:
        length = keys.count(LENGTHS[False])
        if keys.flag("keys_are_values", False):
            kv_count = keys.count(FULL_KV_HEADS, kv_count)
    return Heads(keys.count(HEADS), kv_count, length)


def _check(keys: FamilyKeys, heads: Heads, slides: bool) -> None:
    if heads.count % heads.kv_count:
        raise keys.refusal(KV_HEADS, f"a divisor of the {heads.count} heads")
    if heads.dim % 2:
        raise keys.refusal(LENGTHS[slides], "an even number of elements a head")
    if keys.count(VALUE_LENGTHS[slides], heads.dim) != heads.dim:
        raise keys.refusal(VALUE_LENGTHS[slides], f"the same as the key length, {heads.dim}")


def _overrides(config: Mapping[str, MetadataValue]) -> dict[int, dict[str, MetadataValue]]:
    """What single layers override, by layer; numbers that are none are left to the reader."""
    found: dict[int, dict[str, MetadataValue]] = {}
    for key, value in config.items():
        own = key.removeprefix(TEXT_PART)
        if own.startswith(OVERRIDES):
            layer, _, name = own.removeprefix(OVERRIDES).partition(".")
            if layer.isdecimal():
                found.setdefault(int(layer), {})[name] = value
    return found


def _overriding(
    keys: FamilyKeys, overrides: Mapping[int, Mapping[str, MetadataValue]], layer: int
) -> FamilyKeys | None:
    """The overrides of one layer; None where the config has none for any."""
    if not overrides:
        return None
    own = FamilyKeys(keys.file, f"{OVERRIDES}{layer}", overrides.get(layer, {}))
    for name in own.values:
        if name not in OVERRIDDEN:
            raise own.unsupported(name, "a layer with its own " + " or ".join(OVERRIDDEN))
    return own
