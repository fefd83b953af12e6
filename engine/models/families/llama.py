"""The llama family (Llama, Mistral, SmolLM2) and SmolLM3: pre-norm, grouped queries, SiLU gate.

GGUF files of these architectures store query and key rows so that adjacent elements of a head
rotate together (rows are permuted once at conversion), hence ``RopeStyle.PAIRS`` on the weights
as stored; in published files the halves of a head do. SmolLM3 leaves some layers unturned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.checkpoint.source import CheckpointSource, Dialect
from engine.models import layers
from engine.models.attention import Kind, attention, full_attention
from engine.models.metadata import FamilyKeys, family_keys
from engine.models.published import COMMON_NAMES, Published
from engine.models.spec import Activation, Branch, LayerSpec, ModelSpec, RopeStyle
from engine.models.tensors import TensorNames

NAMES = {**COMMON_NAMES, "blk.*.ffn_norm": "layers.*.post_attention_layernorm"}
KEYS = {
    "activation": "hidden_act",
    "slides": "use_sliding_window",
    "rope.turning_layers": "no_rope_layers",
    "rope.still_interval": "no_rope_layer_interval",
}
LLAMA = Published(
    names=NAMES,
    keys=KEYS,
    defaults={
        "attention.layer_norm_rms_epsilon": 1e-6,
        "context_length": 2048,
        "rope.freq_base": 10_000.0,
        "tied": False,
    },
)
SMOLLM3 = Published(
    names=NAMES,
    keys=KEYS,
    defaults={
        "attention.head_count_kv": 4,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "context_length": 32_768,
        "rope.freq_base": 2_000_000.0,
        "tied": True,
    },
)
STILL_INTERVAL = 4
"""Of SmolLM3's layers each so manieth marks no positions, where the file does not say."""


def model_spec(source: CheckpointSource) -> ModelSpec:
    """Read a llama or SmolLM3 checkpoint.

    Raises:
        CheckpointUnreadable: a key or tensor is missing or has another type or shape.
        UnsupportedFamily: the file is a variant that does not run, such as one with experts.
    """
    family = "smollm3" if source.architecture == "smollm3" else "llama"
    published = SMOLLM3 if family == "smollm3" else LLAMA
    keys = family_keys(source, published)
    tensors = TensorNames(source, published.names)
    layers.refuse_experts(keys)
    layers.refuse_other(keys, "activation", ("silu", "swish"))
    layers.refuse_other(keys, "slides", (False,))
    geometry = layers.read_geometry(keys, tensors)
    turning = _kind(keys, source, tensors, geometry)
    still = replace(turning, rope=None)
    turns = _turning_layers(keys, geometry.layer_count) if family == "smollm3" else None
    built = [
        _layer(keys, tensors, index, geometry, turning if turns is None or turns[index] else still)
        for index in range(geometry.layer_count)
    ]
    spec = ModelSpec(
        family=family,
        vocabulary=geometry.vocabulary,
        hidden=geometry.hidden,
        context_tokens=geometry.context_tokens,
        embedding=tensors.name("token_embd.weight"),
        embedding_scale=1.0,
        layers=tuple(built),
        final_norm=tensors.norm("output_norm", geometry.hidden, geometry.eps),
        head=layers.head_tensor(keys, tensors, geometry),
        groups=(turning.pages(geometry.layer_count),),
    )
    return replace(spec, notes=tensors.leftovers())


def _kind(
    keys: FamilyKeys, source: CheckpointSource, tensors: TensorNames, geometry: layers.Geometry
) -> Kind:
    dims = layers.rotated_dims(keys, geometry.head_dim)
    style = RopeStyle.PAIRS if source.dialect is Dialect.GGUF else RopeStyle.HALVES
    rope = layers.scaled_rope(keys, source, dims, style)
    if tensors.has("rope_freqs.weight"):
        tensors.checked("rope_freqs.weight", (dims // 2,))
    return full_attention(keys, geometry, rope)


def _turning_layers(keys: FamilyKeys, layer_count: int) -> tuple[bool, ...]:
    """Whether each layer marks positions: all but each fourth, or as a list says."""
    key = "rope.turning_layers"
    stored = keys.raw(key)
    if stored is not None:
        wanted = f"0 or 1 for each of {layer_count} layers"
        if not isinstance(stored, Sequence) or isinstance(stored, str) or len(stored) < layer_count:
            raise keys.refusal(key, wanted)
        if not all(entry in (0, 1) for entry in stored):
            raise keys.refusal(key, wanted)
        return tuple(bool(entry) for entry in stored[:layer_count])
    interval = keys.count("rope.still_interval", STILL_INTERVAL)
    return tuple((index + 1) % interval != 0 for index in range(layer_count))


def _layer(
    keys: FamilyKeys, tensors: TensorNames, index: int, geometry: layers.Geometry, kind: Kind
) -> LayerSpec:
    hidden, eps = geometry.hidden, geometry.eps
    width = layers.inner_width(keys, index, geometry.layer_count)
    fed = layers.feed_forward(tensors, index, geometry, Activation.SILU, width)
    return LayerSpec(
        mixer_norm=tensors.norm(f"blk.{index}.attn_norm", hidden, eps),
        mixer=attention(tensors, index, hidden, kind, index),
        branches=(Branch(tensors.norm(f"blk.{index}.ffn_norm", hidden, eps), fed),),
    )
