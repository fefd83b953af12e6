"""The gemma3 family, text part: sandwich norms, query and key norms, sliding and full layers.

Norm weights in GGUF already hold the family's ``1 +``; published files and MLX store them less
one. The embedding is scaled by sqrt(hidden) as a float32 number: that is what the float32
reference does (transformers casts the factor to the model's dtype, which rounds only in
bfloat16), and what llama.cpp does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.checkpoint.source import CheckpointSource, Dialect
from engine.models import layers
from engine.models.attention import Kind, attention, kv_slots
from engine.models.blocks.sliding import sliding_layers, sliding_rope, sliding_window
from engine.models.metadata import FamilyKeys, family_keys
from engine.models.published import COMMON_NAMES, Published
from engine.models.spec import (
    Activation,
    Branch,
    LayerSpec,
    ModelSpec,
    PageGroupSpec,
    RopeSpec,
    RopeStyle,
)
from engine.models.tensors import TensorNames

LARGEST_LAYER_COUNT = 62
PUBLISHED = Published(
    names={
        **COMMON_NAMES,
        "blk.*.post_attention_norm": "layers.*.post_attention_layernorm",
        "blk.*.ffn_norm": "layers.*.pre_feedforward_layernorm",
        "blk.*.post_ffw_norm": "layers.*.post_feedforward_layernorm",
    },
    keys={
        "activation": "hidden_activation",
        "attention.scale_width": "query_pre_attn_scalar",
        "attention.sliding_window_pattern": "sliding_window_pattern",
        "attn_logit_softcapping": "attn_logit_softcapping",
        "sees_ahead": "use_bidirectional_attention",
    },
    defaults={
        "attention.head_count": 8,
        "attention.head_count_kv": 4,
        "attention.key_length": 256,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "attention.scale_width": 256,
        "attention.sliding_window": 4096,
        "block_count": 26,
        "context_length": 131_072,
        "embedding_length": 2304,
        "feed_forward_length": 9216,
        "rope.freq_base": 1_000_000.0,
        "tied": True,
    },
)


@dataclass(frozen=True, slots=True)
class _Reading:
    """What building one layer needs of the whole."""

    keys: FamilyKeys
    tensors: TensorNames
    geometry: layers.Geometry
    norm_offset: float


def model_spec(source: CheckpointSource) -> ModelSpec:
    """Read a gemma3 checkpoint.

    Raises:
        CheckpointUnreadable: a key or tensor is missing or has another type or shape.
        UnsupportedFamily: the file is a variant that does not run.
    """
    keys = family_keys(source, PUBLISHED)
    tensors = TensorNames(source, PUBLISHED.names)
    layers.refuse_experts(keys)
    layers.refuse_other(keys, "activation", ("gelu_pytorch_tanh",))
    layers.refuse_other(keys, "attn_logit_softcapping", (0.0,))
    layers.refuse_other(keys, "sees_ahead", (False,))
    geometry = layers.read_geometry(keys, tensors)
    offset = 0.0 if source.dialect is Dialect.GGUF else 1.0
    reading = _Reading(keys, tensors, geometry, offset)
    sliding = sliding_layers(keys, geometry.layer_count)
    kinds, groups = _kinds(reading, source, sliding)
    slots = kv_slots(sliding, geometry.layer_count)
    spec = ModelSpec(
        family="gemma3",
        vocabulary=geometry.vocabulary,
        hidden=geometry.hidden,
        context_tokens=geometry.context_tokens,
        embedding=tensors.name("token_embd.weight"),
        embedding_scale=float(geometry.hidden**0.5),
        layers=tuple(
            _layer(reading, index, kinds[slides], slots[index])
            for index, slides in enumerate(sliding)
        ),
        final_norm=tensors.norm("output_norm", geometry.hidden, geometry.eps, offset),
        head=layers.head_tensor(keys, tensors, geometry),
        groups=groups,
        logit_cap=layers.logit_cap(keys),
    )
    return replace(spec, notes=tensors.leftovers())


def attention_scale(keys: FamilyKeys, geometry: layers.Geometry) -> float:
    """``head_dim ** -0.5`` unless the file says otherwise.

    GGUF does not say it of the 62-layer model, which alone uses the width of hidden over heads.
    """
    width = float(geometry.head_dim)
    if keys.has("attention.scale_width"):
        width = keys.positive("attention.scale_width")
    elif geometry.layer_count == LARGEST_LAYER_COUNT:
        width = max(geometry.hidden // geometry.head_count, 1)
    return keys.positive("attention.scale", float(width**-0.5))


def _kinds(
    reading: _Reading, source: CheckpointSource, sliding: Sequence[bool]
) -> tuple[dict[bool, Kind], tuple[PageGroupSpec, ...]]:
    """The kinds by whether they slide, full ones first; only those that some layer is of."""
    keys, geometry = reading.keys, reading.geometry
    dims = layers.rotated_dims(keys, geometry.head_dim)
    kinds: dict[bool, Kind] = {}
    for slides in sorted(set(sliding)):
        rope: RopeSpec = (
            sliding_rope(keys, dims)
            if slides
            else layers.scaled_rope(keys, source, dims, RopeStyle.HALVES)
        )
        kinds[slides] = Kind(
            group=len(kinds),
            head_count=geometry.head_count,
            kv_head_count=geometry.kv_head_count,
            head_dim=geometry.head_dim,
            scale=attention_scale(keys, geometry),
            window=sliding_window(keys) if slides else None,
            rope=rope,
        )
    return kinds, tuple(kind.pages(sliding.count(slides)) for slides, kind in kinds.items())


def _layer(reading: _Reading, index: int, kind: Kind, slot: int) -> LayerSpec:
    stem = f"blk.{index}"
    tensors, geometry, offset = reading.tensors, reading.geometry, reading.norm_offset
    hidden, eps = geometry.hidden, geometry.eps
    width = layers.inner_width(reading.keys, index, geometry.layer_count)
    fed = layers.feed_forward(tensors, index, geometry, Activation.GELU_TANH, width)
    return LayerSpec(
        mixer_norm=tensors.norm(f"{stem}.attn_norm", hidden, eps, offset),
        mixer=replace(
            attention(tensors, index, hidden, kind, slot),
            query_norm=tensors.norm(f"{stem}.attn_q_norm", kind.head_dim, eps, offset),
            key_norm=tensors.norm(f"{stem}.attn_k_norm", kind.head_dim, eps, offset),
        ),
        branches=(Branch(tensors.norm(f"{stem}.ffn_norm", hidden, eps, offset), fed),),
        mixer_post_norm=tensors.norm(f"{stem}.post_attention_norm", hidden, eps, offset),
        branches_post_norm=tensors.norm(f"{stem}.post_ffw_norm", hidden, eps, offset),
    )
