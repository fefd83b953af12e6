"""The gemma3 family, text part: sandwich norms, query and key norms, sliding and full layers.

Norm weights in GGUF already hold the family's ``1 +``. The embedding is scaled by sqrt(hidden)
as a float32 number: that is what the float32 reference does (transformers casts the factor to the
model's dtype, which rounds only in bfloat16), and what llama.cpp does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.checkpoint.source import CheckpointSource
from engine.errors import UnsupportedFamily
from engine.models import layers, rope
from engine.models.metadata import FamilyKeys, family_keys
from engine.models.published import COMMON_NAMES, Published
from engine.models.spec import (
    Activation,
    AttentionSpec,
    Branch,
    LayerSpec,
    ModelSpec,
    PageGroupSpec,
    RopeSpec,
    RopeStyle,
)
from engine.models.tensors import TensorNames

DEFAULT_PATTERN = 6
SLIDING_ROPE_BASE = 10000.0
LARGEST_LAYER_COUNT = 62
PATTERN_KEY = "attention.sliding_window_pattern"
PUBLISHED = Published(
    names={
        **COMMON_NAMES,
        "blk.*.post_attention_norm": "layers.*.post_attention_layernorm",
        "blk.*.ffn_norm": "layers.*.pre_feedforward_layernorm",
        "blk.*.post_ffw_norm": "layers.*.post_feedforward_layernorm",
    }
)


@dataclass(frozen=True, slots=True)
class _Kind:
    """What sets sliding layers apart from full ones.

    Attributes:
        slot: of the next layer of this kind in its page group.
    """

    group: int
    window: int | None
    rope: RopeSpec
    slot: int = 0


def model_spec(source: CheckpointSource) -> ModelSpec:
    """Read a gemma3 checkpoint.

    Raises:
        CheckpointUnreadable: a key or tensor is missing or has another type or shape.
        UnsupportedFamily: the file is a variant that does not run.
    """
    keys = family_keys(source, PUBLISHED)
    tensors = TensorNames(source, PUBLISHED.names)
    layers.refuse_experts(keys)
    _refuse_softcap(keys)
    geometry = layers.read_geometry(keys, tensors)
    sliding = sliding_layers(keys, geometry.layer_count)
    kinds, groups = _kinds(keys, source, geometry, sliding)
    scale = attention_scale(keys, geometry)
    built = []
    for index, slides in enumerate(sliding):
        kind = kinds[slides]
        built.append(_layer(tensors, index, geometry, kind, scale))
        kinds[slides] = replace(kind, slot=kind.slot + 1)
    spec = ModelSpec(
        family="gemma3",
        vocabulary=geometry.vocabulary,
        hidden=geometry.hidden,
        context_tokens=geometry.context_tokens,
        embedding=tensors.name("token_embd.weight"),
        embedding_scale=float(geometry.hidden**0.5),
        layers=tuple(built),
        final_norm=tensors.norm("output_norm", geometry.hidden, geometry.eps),
        head=layers.head_tensor(keys, tensors, geometry),
        groups=groups,
    )
    return replace(spec, notes=tensors.leftovers())


def sliding_layers(keys: FamilyKeys, layer_count: int) -> tuple[bool, ...]:
    """Which layers slide: every one but each sixth, unless the file gives a pattern or no window.

    A pattern is either a number P (each P-th layer is full) or one truth value a layer.
    """
    if keys.count_or_zero("attention.sliding_window") == 0:
        return (False,) * layer_count
    stored = keys.raw(PATTERN_KEY)
    if isinstance(stored, Sequence) and not isinstance(stored, str):
        if len(stored) != layer_count or not all(entry in (0, 1) for entry in stored):
            raise keys.refusal(PATTERN_KEY, f"{layer_count} truth values, one a layer")
        return tuple(bool(entry) for entry in stored)
    pattern = keys.count(PATTERN_KEY, DEFAULT_PATTERN)
    return tuple((index + 1) % pattern != 0 for index in range(layer_count))


def attention_scale(keys: FamilyKeys, geometry: layers.Geometry) -> float:
    """``head_dim ** -0.5``; the 62-layer model alone uses the width of hidden over heads."""
    width = geometry.head_dim
    if geometry.layer_count == LARGEST_LAYER_COUNT:
        width = max(geometry.hidden // geometry.head_count, 1)
    return keys.positive("attention.scale", float(width**-0.5))


def _kinds(
    keys: FamilyKeys, source: CheckpointSource, geometry: layers.Geometry, sliding: Sequence[bool]
) -> tuple[dict[bool, _Kind], tuple[PageGroupSpec, ...]]:
    dims = layers.rotated_dims(keys, geometry.head_dim)
    kinds: dict[bool, _Kind] = {}
    groups: list[PageGroupSpec] = []
    for slides in (False, True):
        count = sum(entry is slides for entry in sliding)
        if not count:
            continue
        window = keys.count("attention.sliding_window") if slides else None
        turning = (
            _sliding_rope(keys, dims)
            if slides
            else layers.scaled_rope(keys, source, dims, RopeStyle.HALVES)
        )
        kinds[slides] = _Kind(len(groups), window, turning)
        groups.append(PageGroupSpec(window, count, geometry.kv_head_count, geometry.head_dim))
    return kinds, tuple(groups)


def _sliding_rope(keys: FamilyKeys, dims: int) -> RopeSpec:
    base = keys.positive("rope.freq_base_swa", SLIDING_ROPE_BASE)
    return layers.computable_rope(keys, lambda: RopeSpec(RopeStyle.HALVES, rope.plain(base, dims)))


def _layer(
    tensors: TensorNames, index: int, geometry: layers.Geometry, kind: _Kind, scale: float
) -> LayerSpec:
    stem = f"blk.{index}"
    query_width = geometry.head_count * geometry.head_dim
    kv_width = geometry.kv_head_count * geometry.head_dim
    hidden, eps = geometry.hidden, geometry.eps
    return LayerSpec(
        mixer_norm=tensors.norm(f"{stem}.attn_norm", hidden, eps),
        mixer=AttentionSpec(
            group=kind.group,
            slot=kind.slot,
            head_count=geometry.head_count,
            kv_head_count=geometry.kv_head_count,
            head_dim=geometry.head_dim,
            scale=scale,
            window=kind.window,
            rope=kind.rope,
            query=tensors.linear(f"{stem}.attn_q", query_width, hidden),
            key=tensors.linear(f"{stem}.attn_k", kv_width, hidden),
            value=tensors.linear(f"{stem}.attn_v", kv_width, hidden),
            output=tensors.linear(f"{stem}.attn_output", hidden, query_width),
            query_norm=tensors.norm(f"{stem}.attn_q_norm", geometry.head_dim, eps),
            key_norm=tensors.norm(f"{stem}.attn_k_norm", geometry.head_dim, eps),
        ),
        branches=(
            Branch(
                tensors.norm(f"{stem}.ffn_norm", hidden, eps),
                layers.feed_forward(tensors, index, geometry, Activation.GELU_TANH),
            ),
        ),
        mixer_post_norm=tensors.norm(f"{stem}.post_attention_norm", hidden, eps),
        branches_post_norm=tensors.norm(f"{stem}.post_ffw_norm", hidden, eps),
    )


def _refuse_softcap(keys: FamilyKeys) -> None:
    cap = keys.number("final_logit_softcapping", 0.0)
    if cap:
        sentence = (
            f"{keys.file} caps its logits at {cap}, which the gemma3 family here does not do."
        )
        raise UnsupportedFamily(sentence, final_logit_softcapping=cap)
