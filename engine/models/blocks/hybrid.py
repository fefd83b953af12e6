"""Models whose layers have gated attention or a gated delta rule: all but their second halves.

A family gives the names of its published checkpoints, the order of value heads in its GGUF files,
and what follows the mixer of a layer. No torch here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from engine.checkpoint.source import CheckpointSource, Dialect, MetadataValue
from engine.errors import UnsupportedFamily
from engine.models import layers
from engine.models.attention import Kind, full_attention, gated_attention
from engine.models.blocks import delta
from engine.models.blocks.norms import stored_less
from engine.models.metadata import FamilyKeys, family_keys
from engine.models.published import COMMON_NAMES, Published
from engine.models.spec import (
    Branch,
    HeadOrder,
    LayerSpec,
    Mixer,
    ModelSpec,
    Norm,
    RopeStyle,
)
from engine.models.tensors import TensorNames

DEFAULT_INTERVAL = 4
RECURRENT_KEY = "attention.recurrent_layers"
HEAD_KEYS = ("attention.head_count", "attention.head_count_kv")
NAMES: Mapping[str, str] = MappingProxyType(
    {
        **COMMON_NAMES,
        **delta.NAMES,
        "blk.*.post_attention_norm": "layers.*.post_attention_layernorm",
    }
)
KEYS: Mapping[str, str] = MappingProxyType(
    {**delta.KEYS, "full_attention_interval": "full_attention_interval", "activation": "hidden_act"}
)
DEFAULTS: Mapping[str, MetadataValue] = MappingProxyType(
    {
        **delta.DEFAULTS,
        "attention.key_length": 256,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.partial_rotary_factor": 0.25,
    }
)
"""What transformers assumes where a config does not say."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A checkpoint of such a family while its spec is built.

    Attributes:
        recurrent: one a layer that runs: whether its mixer is a delta rule.
        norm_offset: what its norm weights are stored less.
    """

    keys: FamilyKeys
    tensors: TensorNames
    geometry: layers.Geometry
    recurrent: tuple[bool, ...]
    norm_offset: float
    attention: Kind
    rule: delta.DeltaRule

    def norm(self, stem: str) -> Norm:
        """A norm of the residual."""
        geometry = self.geometry
        return self.tensors.norm(stem, geometry.hidden, geometry.eps, self.norm_offset)


SecondHalf = Callable[[int, Norm], tuple[Branch, ...]]
"""The branches of a layer from its number and the norm of their input."""


def open_hybrid(source: CheckpointSource, published: Published, gguf_order: HeadOrder) -> Opened:
    """Read a checkpoint's keys and sizes.

    Raises:
        CheckpointUnreadable: a key or tensor is missing or has another type or shape.
        UnsupportedFamily: the file is a variant that does not run.
    """
    keys = family_keys(source, published)
    tensors = TensorNames(source, published.names)
    layers.refuse_other(keys, "activation", ("silu",))
    count = layers.trunk_layers(keys, tensors)
    _refuse_lone_draft(keys, tensors)
    recurrent = recurrent_layers(keys, count)
    keys = _of_attention(keys, recurrent)
    geometry = layers.read_geometry(keys, tensors, recurrent.index(False), query_parts=2)
    norms = [f"blk.{index}.attn_norm.weight" for index in range(count)]
    convolution = f"blk.{recurrent.index(True)}.ssm_conv1d.weight"
    in_gguf = source.dialect is Dialect.GGUF
    dims = layers.rotated_dims(keys, geometry.head_dim)
    return Opened(
        keys=keys,
        tensors=tensors,
        geometry=geometry,
        recurrent=recurrent,
        norm_offset=stored_less(source, tensors, norms, convolution),
        attention=full_attention(
            keys, geometry, layers.scaled_rope(keys, source, dims, RopeStyle.HALVES)
        ),
        rule=delta.read_delta_rule(
            keys, geometry, gguf_order if in_gguf else HeadOrder.GROUPED, decay_is_log=not in_gguf
        ),
    )


def hybrid_spec(family: str, opened: Opened, second_half: SecondHalf) -> ModelSpec:
    """The whole model, every tensor of the checkpoint accounted for."""
    keys, tensors, geometry = opened.keys, opened.tensors, opened.geometry
    spec = ModelSpec(
        family=family,
        vocabulary=geometry.vocabulary,
        hidden=geometry.hidden,
        context_tokens=geometry.context_tokens,
        embedding=tensors.name("token_embd.weight"),
        embedding_scale=1.0,
        layers=tuple(
            LayerSpec(
                opened.norm(f"blk.{index}.attn_norm"),
                _mixer(opened, index),
                second_half(index, opened.norm(f"blk.{index}.post_attention_norm")),
            )
            for index in range(geometry.layer_count)
        ),
        final_norm=opened.norm("output_norm"),
        head=layers.head_tensor(keys, tensors, geometry),
        groups=(opened.attention.pages(opened.recurrent.count(False)),),
        recurrent=opened.rule.recurrent(opened.recurrent.count(True)),
    )
    drafts = range(geometry.layer_count, keys.count("block_count"))
    return replace(spec, notes=tensors.leftovers(drafts))


def recurrent_layers(keys: FamilyKeys, layer_count: int) -> tuple[bool, ...]:
    """For each layer whether its mixer is a delta rule.

    A file says so layer by layer, or how often attention comes; there must be layers of both kinds.
    """
    key = next((key for key in ("layer_types", RECURRENT_KEY) if keys.has(key)), None)
    if key is None:
        key = "full_attention_interval"
        interval = keys.count(key, DEFAULT_INTERVAL)
        found = tuple((index + 1) % interval != 0 for index in range(layer_count))
    else:
        found = tuple(_stated_layers(keys, key, layer_count))
    if all(found) or not any(found):
        raise keys.refusal(key, f"layers of both kinds among the {layer_count}")
    return found


def _stated_layers(keys: FamilyKeys, key: str, layer_count: int) -> list[bool]:
    stated = keys.raw(key)
    blocks = keys.count("block_count")
    if not isinstance(stated, Sequence) or len(stated) not in (layer_count, blocks):
        raise keys.refusal(key, f"one entry for each of the {blocks} layers")
    known: Mapping[MetadataValue, bool] = (
        {"linear_attention": True, "full_attention": False}
        if key == "layer_types"
        else {True: True, False: False}
    )
    if not all(isinstance(kind, str | int) and kind in known for kind in stated):
        raise keys.refusal(key, "linear_attention or full_attention for each layer")
    return [known[kind] for kind in stated[:layer_count]]


def _of_attention(keys: FamilyKeys, recurrent: Sequence[bool]) -> FamilyKeys:
    """Head counts given layer by layer are kept of the layers that have attention alone."""
    values = dict(keys.values)
    for key in HEAD_KEYS:
        stated = values.get(key)
        if isinstance(stated, Sequence) and not isinstance(stated, str):
            # Entries past the layers that run are a draft's.
            pairs = zip(stated, recurrent, strict=False)
            values[key] = tuple(entry for entry, recurs in pairs if not recurs)
    return replace(keys, values=values)


def _mixer(opened: Opened, index: int) -> Mixer:
    tensors, geometry = opened.tensors, opened.geometry
    recurs = opened.recurrent[index]
    slot = opened.recurrent[:index].count(recurs)
    if recurs:
        return delta.delta_layer(tensors, index, slot, opened.rule)
    found = gated_attention(tensors, index, geometry.hidden, opened.attention, slot)
    query, key = (
        tensors.norm(
            f"blk.{index}.attn_{part}_norm", geometry.head_dim, geometry.eps, opened.norm_offset
        )
        for part in "qk"
    )
    return replace(found, query_norm=query, key_norm=key)


def _refuse_lone_draft(keys: FamilyKeys, tensors: TensorNames) -> None:
    if keys.has("nextn_predict_layers") and not tensors.has("blk.0.attn_norm.weight"):
        raise UnsupportedFamily(
            f"{keys.file} holds only the draft layer of a model (multi-token prediction); "
            "open the model's own file."
        )
