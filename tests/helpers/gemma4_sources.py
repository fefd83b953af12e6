"""Tiny gemma4 checkpoints in memory, in the names and keys of every dialect.

Names are written out here from the formats' descriptions; the numbers are zeros, for tests of what
is read and not of what is computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.checkpoint.source import Dialect, MetadataValue
from tests.helpers.memory_source import MemorySource

Shape = tuple[int, ...]
Array = NDArray[np.float32]
VOCABULARY, HIDDEN, INNER, WINDOW = 53, 24, 36, 96
HEADS, KV_HEADS, FULL_KV_HEADS = 6, 3, 2
HEAD_DIM, FULL_HEAD_DIM = 8, 16
EXPERTS, ACTIVE, WIDTH = 5, 2, 14
PER_LAYER = 10


@dataclass(frozen=True)
class Tiny:
    """Which parts a checkpoint has.

    Attributes:
        sliding: one letter a layer, S or F.
        shared: last layers that read others' K and V.
        bare: full layers have no values of their own.
        wide: the sharing layers' feed-forward has twice the width.
    """

    sliding: str = "SSFSF"
    shared: int = 0
    bare: bool = False
    mixture: bool = False
    per_layer: bool = False
    wide: bool = False

    def full(self, layer: int) -> bool:
        """Whether a layer attends to all."""
        return self.sliding[layer] == "F"

    def sharing(self, layer: int) -> bool:
        """Whether a layer owns no K and V."""
        return layer >= len(self.sliding) - self.shared

    def inner(self, layer: int) -> int:
        """The feed-forward's width of a layer."""
        return INNER * (2 if self.wide and self.sharing(layer) else 1)


LAYER_NAMES: Mapping[str, str] = {
    "attn_norm.weight": "input_layernorm.weight",
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "attn_q_norm.weight": "self_attn.q_norm.weight",
    "attn_k_norm.weight": "self_attn.k_norm.weight",
    "post_attention_norm.weight": "post_attention_layernorm.weight",
    "ffn_norm.weight": "pre_feedforward_layernorm.weight",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
    "post_ffw_norm.weight": "post_feedforward_layernorm.weight",
    "layer_output_scale.weight": "layer_scalar",
    "inp_gate.weight": "per_layer_input_gate.weight",
    "proj.weight": "per_layer_projection.weight",
    "post_norm.weight": "post_per_layer_input_norm.weight",
    "ffn_gate_inp.weight": "router.proj.weight",
    "ffn_gate_inp.scale": "router.scale",
    "ffn_down_exps.scale": "router.per_expert_scale",
    "ffn_gate_up_exps.weight": "experts.gate_up_proj",
    "ffn_down_exps.weight": "experts.down_proj",
    "post_ffw_norm_1.weight": "post_feedforward_layernorm_1.weight",
    "pre_ffw_norm_2.weight": "pre_feedforward_layernorm_2.weight",
    "post_ffw_norm_2.weight": "post_feedforward_layernorm_2.weight",
}
GLOBAL_NAMES: Mapping[str, str] = {
    "token_embd.weight": "embed_tokens.weight",
    "output_norm.weight": "norm.weight",
    "per_layer_token_embd.weight": "embed_tokens_per_layer.weight",
    "per_layer_model_proj.weight": "per_layer_model_projection.weight",
    "per_layer_proj_norm.weight": "per_layer_projection_norm.weight",
}
BODIES = {Dialect.PUBLISHED: "model.language_model.", Dialect.MLX: "language_model.model."}


def source(
    tiny: Tiny,
    dialect: Dialect = Dialect.PUBLISHED,
    *,
    arrays: Mapping[str, Array] | None = None,
    metadata: Mapping[str, MetadataValue] | None = None,
    without: tuple[str, ...] = (),
    name: str = "gemma4",
) -> MemorySource:
    """A checkpoint with tensors or keys replaced, added or left out by the dialect's own names.

    GGUF's keys are given without the family's prefix, published ones without ``text_config``.
    """
    shapes = gguf_shapes(tiny)
    keys = gguf_keys(tiny) if dialect is Dialect.GGUF else config(tiny)
    if dialect is not Dialect.GGUF:
        shapes = translated(shapes, dialect)
    tensors = {key: np.zeros(shape, np.float32) for key, shape in shapes.items()}
    if dialect is Dialect.GGUF:
        tensors["rope_freqs.weight"] = divisors()
    tensors |= dict(arrays or {})
    keys |= dict(metadata or {})
    keys = {key: value for key, value in keys.items() if key not in without}
    found = MemorySource(
        name, keys, {key: value for key, value in tensors.items() if key not in without}
    )
    found.dialect = dialect
    if dialect is not Dialect.GGUF:
        found.metadata = {f"text_config.{key}": value for key, value in keys.items()}
    return found


def divisors() -> Array:
    """A quarter of the pairs of a full layer's head turn; the others are slowed by 1e30."""
    return np.array([1.0] * 2 + [1e30] * 6, np.float32)


def gguf_shapes(tiny: Tiny) -> dict[str, Shape]:
    """What llama.cpp's converter writes."""
    count = len(tiny.sliding)
    found: dict[str, Shape] = {
        "token_embd.weight": (VOCABULARY, HIDDEN),
        "output_norm.weight": (HIDDEN,),
    }
    if tiny.per_layer:
        found["per_layer_token_embd.weight"] = (VOCABULARY, count * PER_LAYER)
        found["per_layer_model_proj.weight"] = (count * PER_LAYER, HIDDEN)
        found["per_layer_proj_norm.weight"] = (PER_LAYER,)
    for layer in range(count):
        part = _attention(tiny, layer) | _feed_forward(tiny, layer)
        if tiny.per_layer:
            part["inp_gate.weight"] = (PER_LAYER, HIDDEN)
            part["proj.weight"] = (HIDDEN, PER_LAYER)
            part["post_norm.weight"] = (HIDDEN,)
        found |= {f"blk.{layer}.{key}": shape for key, shape in part.items()}
    return found


def translated(shapes: Mapping[str, Shape], dialect: Dialect) -> dict[str, Shape]:
    """The same tensors by published names, or with the changes of mlx-lm's conversion."""
    body, found = BODIES[dialect], dict[str, Shape]()
    for name, shape in shapes.items():
        if not name.startswith("blk."):
            found[body + GLOBAL_NAMES[name]] = shape
            continue
        _, layer, key = name.split(".", 2)
        own = f"{body}layers.{layer}.{LAYER_NAMES[key]}"
        if dialect is Dialect.MLX and own.endswith("experts.gate_up_proj"):
            stem = own.replace("gate_up_proj", "switch_glu")
            half = (shape[0], shape[1] // 2, shape[2])
            found |= {f"{stem}.gate_proj.weight": half, f"{stem}.up_proj.weight": half}
        elif dialect is Dialect.MLX and own.endswith("experts.down_proj"):
            found[own.replace("down_proj", "switch_glu.down_proj.weight")] = shape
        else:
            found[own] = shape
    return found


def gguf_keys(tiny: Tiny) -> dict[str, MetadataValue]:
    """What llama.cpp's converter writes, without the family's prefix."""
    layers = range(len(tiny.sliding))
    return {
        "block_count": len(layers),
        "context_length": 1024,
        "embedding_length": HIDDEN,
        "feed_forward_length": [tiny.inner(layer) for layer in layers],
        "attention.head_count": HEADS,
        "attention.head_count_kv": [_kv_heads(tiny, layer) for layer in layers],
        "attention.key_length": FULL_HEAD_DIM,
        "attention.value_length": FULL_HEAD_DIM,
        "attention.key_length_swa": HEAD_DIM,
        "attention.value_length_swa": HEAD_DIM,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "attention.sliding_window": WINDOW,
        "attention.sliding_window_pattern": [not tiny.full(layer) for layer in layers],
        "attention.shared_kv_layers": tiny.shared,
        "rope.freq_base": 1e6,
        "rope.freq_base_swa": 1e4,
        "rope.dimension_count": FULL_HEAD_DIM,
        "rope.dimension_count_swa": HEAD_DIM,
        "final_logit_softcapping": 30.0,
        "embedding_length_per_layer_input": PER_LAYER if tiny.per_layer else 0,
        "expert_count": EXPERTS if tiny.mixture else 0,
        "expert_used_count": ACTIVE if tiny.mixture else 0,
    }


def config(tiny: Tiny) -> dict[str, MetadataValue]:
    """What the makers' config.json says of the text part, its keys joined by dots."""
    kinds = {"S": "sliding_attention", "F": "full_attention"}
    found: dict[str, MetadataValue] = {
        "hidden_size": HIDDEN,
        "num_hidden_layers": len(tiny.sliding),
        "intermediate_size": INNER,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "global_head_dim": FULL_HEAD_DIM,
        "attention_k_eq_v": tiny.bare,
        "layer_types": [kinds[letter] for letter in tiny.sliding],
        "sliding_window": WINDOW,
        "num_kv_shared_layers": tiny.shared,
        "use_double_wide_mlp": tiny.wide,
        "hidden_activation": "gelu_pytorch_tanh",
        "hidden_size_per_layer_input": PER_LAYER if tiny.per_layer else 0,
        "enable_moe_block": tiny.mixture,
        "final_logit_softcapping": 30.0,
        "max_position_embeddings": 1024,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": True,
        "rope_parameters.full_attention.rope_type": "proportional",
        "rope_parameters.full_attention.rope_theta": 1e6,
        "rope_parameters.full_attention.partial_rotary_factor": 0.25,
        "rope_parameters.sliding_attention.rope_type": "default",
        "rope_parameters.sliding_attention.rope_theta": 1e4,
    }
    if tiny.bare:
        found["num_global_key_value_heads"] = FULL_KV_HEADS
    if tiny.mixture:
        found |= {"num_experts": EXPERTS, "top_k_experts": ACTIVE, "moe_intermediate_size": WIDTH}
    return found


def _kv_heads(tiny: Tiny, layer: int) -> int:
    return FULL_KV_HEADS if tiny.bare and tiny.full(layer) else KV_HEADS


def _attention(tiny: Tiny, layer: int) -> dict[str, Shape]:
    head_dim = FULL_HEAD_DIM if tiny.full(layer) else HEAD_DIM
    query, kv = HEADS * head_dim, _kv_heads(tiny, layer) * head_dim
    found: dict[str, Shape] = {
        "attn_norm.weight": (HIDDEN,),
        "attn_q.weight": (query, HIDDEN),
        "attn_output.weight": (HIDDEN, query),
        "attn_q_norm.weight": (head_dim,),
        "post_attention_norm.weight": (HIDDEN,),
    }
    if tiny.sharing(layer):
        return found
    found |= {"attn_k.weight": (kv, HIDDEN), "attn_k_norm.weight": (head_dim,)}
    if not (tiny.bare and tiny.full(layer)):
        found["attn_v.weight"] = (kv, HIDDEN)
    return found


def _feed_forward(tiny: Tiny, layer: int) -> dict[str, Shape]:
    inner = tiny.inner(layer)
    found: dict[str, Shape] = {
        "ffn_norm.weight": (HIDDEN,),
        "ffn_gate.weight": (inner, HIDDEN),
        "ffn_up.weight": (inner, HIDDEN),
        "ffn_down.weight": (HIDDEN, inner),
        "post_ffw_norm.weight": (HIDDEN,),
        "layer_output_scale.weight": (1,),
    }
    if tiny.mixture:
        found |= {
            "ffn_gate_inp.weight": (EXPERTS, HIDDEN),
            "ffn_gate_inp.scale": (HIDDEN,),
            "ffn_gate_up_exps.weight": (EXPERTS, 2 * WIDTH, HIDDEN),
            "ffn_down_exps.weight": (EXPERTS, HIDDEN, WIDTH),
            "ffn_down_exps.scale": (EXPERTS,),
            "post_ffw_norm_1.weight": (HIDDEN,),
            "pre_ffw_norm_2.weight": (HIDDEN,),
            "post_ffw_norm_2.weight": (HIDDEN,),
        }
    return found
