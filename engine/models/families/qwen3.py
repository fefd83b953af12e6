"""The dense Qwen3 family: as llama with norms on queries and keys, and halves that rotate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from engine.checkpoint.source import CheckpointSource
from engine.models import layers
from engine.models.attention import Kind, attention, full_attention
from engine.models.metadata import FamilyKeys, family_keys
from engine.models.published import COMMON_NAMES, Published
from engine.models.spec import Activation, Branch, LayerSpec, ModelSpec, Norm, RopeStyle
from engine.models.tensors import TensorNames

NAMES = {**COMMON_NAMES, "blk.*.ffn_norm": "layers.*.post_attention_layernorm"}
KEYS = {"activation": "hidden_act", "sliding": "use_sliding_window"}
DEFAULTS = {"attention.key_length": 128, "attention.layer_norm_rms_epsilon": 1e-6}
"""What transformers assumes where a config does not say."""
PUBLISHED = Published(names=NAMES, keys=KEYS, defaults=DEFAULTS)


@dataclass(frozen=True, slots=True)
class Opened:
    """A checkpoint of the family while its spec is built."""

    keys: FamilyKeys
    tensors: TensorNames
    geometry: layers.Geometry
    attention: Kind


def model_spec(source: CheckpointSource) -> ModelSpec:
    """Read a dense Qwen3 checkpoint.

    Raises:
        CheckpointUnreadable: a key or tensor is missing or has another type or shape.
        UnsupportedFamily: the file is a variant that does not run.
    """
    opened = open_qwen3(source, PUBLISHED)
    layers.refuse_experts(opened.keys)
    return qwen3_spec("qwen3", opened, lambda index, norm: (dense_branch(opened, index, norm),))


def open_qwen3(source: CheckpointSource, published: Published) -> Opened:
    """Read a checkpoint's keys and sizes; see ``model_spec`` for what it raises."""
    keys = family_keys(source, published)
    tensors = TensorNames(source, published.names)
    layers.refuse_other(keys, "activation", ("silu",))
    layers.refuse_other(keys, "sliding", (False,))
    geometry = layers.read_geometry(keys, tensors)
    dims = layers.rotated_dims(keys, geometry.head_dim)
    rope = layers.scaled_rope(keys, source, dims, RopeStyle.HALVES)
    return Opened(keys, tensors, geometry, full_attention(keys, geometry, rope))


def qwen3_spec(
    family: str, opened: Opened, second_half: Callable[[int, Norm], tuple[Branch, ...]]
) -> ModelSpec:
    """The whole model; ``second_half`` gives a layer's branches from the norm of their input."""
    tensors, geometry = opened.tensors, opened.geometry
    spec = ModelSpec(
        family=family,
        vocabulary=geometry.vocabulary,
        hidden=geometry.hidden,
        context_tokens=geometry.context_tokens,
        embedding=tensors.name("token_embd.weight"),
        embedding_scale=1.0,
        layers=tuple(_layer(opened, index, second_half) for index in range(geometry.layer_count)),
        final_norm=tensors.norm("output_norm", geometry.hidden, geometry.eps),
        head=layers.head_tensor(opened.keys, tensors, geometry),
        groups=(opened.attention.pages(geometry.layer_count),),
    )
    return replace(spec, notes=tensors.leftovers())


def dense_branch(opened: Opened, index: int, norm: Norm) -> Branch:
    """The plain feed-forward of block ``index``."""
    geometry = opened.geometry
    width = layers.inner_width(opened.keys, index, geometry.layer_count)
    body = layers.feed_forward(opened.tensors, index, geometry, Activation.SILU, width)
    return Branch(norm, body)


def _layer(
    opened: Opened, index: int, second_half: Callable[[int, Norm], tuple[Branch, ...]]
) -> LayerSpec:
    tensors, geometry = opened.tensors, opened.geometry
    stem, eps = f"blk.{index}", geometry.eps
    mixer = replace(
        attention(tensors, index, geometry.hidden, opened.attention, index),
        query_norm=tensors.norm(f"{stem}.attn_q_norm", geometry.head_dim, eps),
        key_norm=tensors.norm(f"{stem}.attn_k_norm", geometry.head_dim, eps),
    )
    return LayerSpec(
        mixer_norm=tensors.norm(f"{stem}.attn_norm", geometry.hidden, eps),
        mixer=mixer,
        branches=second_half(index, tensors.norm(f"{stem}.ffn_norm", geometry.hidden, eps)),
    )
