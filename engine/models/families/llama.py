"""The llama family (Llama, Mistral, SmolLM2): pre-norm, grouped queries, SiLU gate.

GGUF files of this architecture store query and key rows so that adjacent elements of a head
rotate together (rows are permuted once at conversion), hence ``RopeStyle.PAIRS`` on the weights
as stored.
"""

from __future__ import annotations

from dataclasses import replace

from engine.checkpoint.source import CheckpointSource, Dialect
from engine.models import layers
from engine.models.metadata import family_keys
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

PUBLISHED = Published(names={**COMMON_NAMES, "blk.*.ffn_norm": "layers.*.post_attention_layernorm"})


def model_spec(source: CheckpointSource) -> ModelSpec:
    """Read a llama checkpoint.

    Raises:
        CheckpointUnreadable: a key or tensor is missing or has another type or shape.
        UnsupportedFamily: the file is a variant that does not run, such as one with experts.
    """
    keys = family_keys(source, PUBLISHED)
    tensors = TensorNames(source, PUBLISHED.names)
    layers.refuse_experts(keys)
    geometry = layers.read_geometry(keys, tensors)
    dims = layers.rotated_dims(keys, geometry.head_dim)
    # Files of the published layout were not permuted: there halves of a head rotate together.
    style = RopeStyle.PAIRS if source.dialect is Dialect.GGUF else RopeStyle.HALVES
    rope = layers.scaled_rope(keys, source, dims, style)
    if tensors.has("rope_freqs.weight"):
        tensors.checked("rope_freqs.weight", (dims // 2,))
    scale = keys.positive("attention.scale", geometry.head_dim**-0.5)
    spec = ModelSpec(
        family="llama",
        vocabulary=geometry.vocabulary,
        hidden=geometry.hidden,
        context_tokens=geometry.context_tokens,
        embedding=tensors.name("token_embd.weight"),
        embedding_scale=1.0,
        layers=tuple(
            _layer(tensors, index, geometry, rope, scale) for index in range(geometry.layer_count)
        ),
        final_norm=tensors.norm("output_norm", geometry.hidden, geometry.eps),
        head=layers.head_tensor(keys, tensors, geometry),
        groups=(
            PageGroupSpec(None, geometry.layer_count, geometry.kv_head_count, geometry.head_dim),
        ),
    )
    return replace(spec, notes=tensors.leftovers())


def _layer(
    tensors: TensorNames, index: int, geometry: layers.Geometry, rope: RopeSpec, scale: float
) -> LayerSpec:
    stem = f"blk.{index}"
    query_width = geometry.head_count * geometry.head_dim
    kv_width = geometry.kv_head_count * geometry.head_dim
    return LayerSpec(
        mixer_norm=tensors.norm(f"{stem}.attn_norm", geometry.hidden, geometry.eps),
        mixer=AttentionSpec(
            group=0,
            slot=index,
            head_count=geometry.head_count,
            kv_head_count=geometry.kv_head_count,
            head_dim=geometry.head_dim,
            scale=scale,
            window=None,
            rope=rope,
            query=tensors.linear(f"{stem}.attn_q", query_width, geometry.hidden),
            key=tensors.linear(f"{stem}.attn_k", kv_width, geometry.hidden),
            value=tensors.linear(f"{stem}.attn_v", kv_width, geometry.hidden),
            output=tensors.linear(f"{stem}.attn_output", geometry.hidden, query_width),
        ),
        branches=(
            Branch(
                tensors.norm(f"{stem}.ffn_norm", geometry.hidden, geometry.eps),
                layers.feed_forward(tensors, index, geometry, Activation.SILU),
            ),
        ),
    )
