"""Tiny random checkpoints: a transformers model in float32 and the GGUF file of the same weights.

The sizes are odd on purpose (widths that are no power of two, a head dimension unlike hidden over
heads), the weights large enough that attention is far from uniform. Written by gguf-py with the
rules of GGUF conversion stated here: query and key rows of llama are interleaved, norms of gemma
gain one, llama3 scaling becomes a tensor of divisors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import gguf
import numpy as np
import torch
from torch import nn
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
)

Model = TypeVar("Model", bound=nn.Module)

VOCABULARY = 131
CONTEXT = 2048
COMMON_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
}
LLAMA_NAMES = COMMON_NAMES | {"post_attention_layernorm": "ffn_norm"}
GEMMA_NAMES = COMMON_NAMES | {
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}


@dataclass(frozen=True)
class TinyLlama:
    """A llama variant; ``rope`` is transformers' ``rope_parameters``.

    ``rotated_dims`` below ``head_dim`` leaves the rest of each head unturned.
    """

    layers: int = 3
    hidden: int = 90
    heads: int = 6
    kv_heads: int = 2
    head_dim: int = 20
    feed_forward: int = 116
    tied: bool = True
    biases: bool = False
    rotated_dims: int | None = None
    rope: Mapping[str, Any] = field(
        default_factory=lambda: {"rope_type": "default", "rope_theta": 10000.0}
    )


@dataclass(frozen=True)
class TinyGemma3:
    """A gemma3 text variant; ``pattern`` None leaves the key out, as many real files do."""

    layers: int = 7
    hidden: int = 76
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 28
    feed_forward: int = 108
    window: int = 96
    pattern: int | None = None
    query_scalar: int = 28
    full_rope: Mapping[str, Any] = field(
        default_factory=lambda: {"rope_type": "default", "rope_theta": 1_000_000.0}
    )


def make_llama(shape: TinyLlama, path: Path, seed: int = 0) -> LlamaForCausalLM:
    """Write the GGUF to ``path``; returns the reference."""
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=shape.hidden,
        intermediate_size=shape.feed_forward,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        max_position_embeddings=CONTEXT,
        rms_norm_eps=1e-5,
        rope_parameters=dict(shape.rope),
        tie_word_embeddings=shape.tied,
        attention_bias=shape.biases,
        mlp_bias=shape.biases,
    )
    model = _randomized(LlamaForCausalLM(config), seed, norm_offset=1.0)
    if shape.rotated_dims is not None:
        _rotate_partly(model, shape)
    writer = gguf.GGUFWriter(path, "llama")
    _write_common_keys(writer, config, shape.head_dim)
    _write_rope(writer, "llama", shape.rope)
    writer.add_rope_dimension_count(shape.rotated_dims or shape.head_dim)
    if shape.rope["rope_type"] == "llama3":
        divisors = _llama3_divisors(shape.rope, shape.head_dim)
        writer.add_tensor("rope_freqs.weight", divisors)
    for name, value in _gguf_tensors(model, LLAMA_NAMES).items():
        head_count = {"attn_q": shape.heads, "attn_k": shape.kv_heads}.get(_stem(name))
        writer.add_tensor(name, value if head_count is None else _interleaved(value, head_count))
    _finish(writer)
    return model


def make_gemma3(shape: TinyGemma3, path: Path, seed: int = 0) -> Gemma3ForCausalLM:
    """Write the GGUF to ``path``; returns the reference."""
    config = Gemma3TextConfig(
        vocab_size=VOCABULARY,
        hidden_size=shape.hidden,
        intermediate_size=shape.feed_forward,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        max_position_embeddings=CONTEXT,
        query_pre_attn_scalar=shape.query_scalar,
        sliding_window=shape.window,
        layer_types=[
            "sliding_attention" if (index + 1) % (shape.pattern or 6) else "full_attention"
            for index in range(shape.layers)
        ],
        rope_parameters={
            "full_attention": dict(shape.full_rope),
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        },
    )
    model = _randomized(Gemma3ForCausalLM(config), seed, norm_offset=0.0)
    writer = gguf.GGUFWriter(path, "gemma3")
    _write_common_keys(writer, config, shape.head_dim)
    _write_rope(writer, "gemma3", shape.full_rope)
    writer.add_sliding_window(shape.window)
    if shape.pattern is not None:
        writer.add_uint32("gemma3.attention.sliding_window_pattern", shape.pattern)
    if shape.query_scalar != shape.head_dim:
        writer.add_float32("gemma3.attention.scale", shape.query_scalar**-0.5)
    for name, value in _gguf_tensors(model, GEMMA_NAMES).items():
        writer.add_tensor(name, value + 1.0 if "norm" in name else value)
    _finish(writer)
    return model


@torch.inference_mode()
def reference_logits(model: PreTrainedModel, ids: list[int]) -> torch.Tensor:
    """[len(ids), vocabulary] float32 of the transformers model, eager attention."""
    logits: torch.Tensor = model(input_ids=torch.tensor([ids])).logits[0]
    return logits


def random_ids(count: int, vocabulary: int = VOCABULARY, seed: int = 7) -> list[int]:
    """Token ids, the same for the same arguments."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, vocabulary, (count,), generator=generator).tolist()


def _randomized(model: Model, seed: int, norm_offset: float) -> Model:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if "norm" in name:
                parameter.copy_(norm_offset + 0.2 * noise)
            elif name.endswith("bias"):
                parameter.copy_(0.3 * noise)
            else:
                parameter.copy_(noise * 1.3 * parameter.shape[-1] ** -0.5)
    return model.eval()


def _rotate_partly(model: LlamaForCausalLM, shape: TinyLlama) -> None:
    """Frequency 0 turns nothing: pairs past ``rotated_dims`` pass, the others turn as in a head
    of that many elements.
    """
    dims = shape.rotated_dims or shape.head_dim
    frequencies = torch.zeros(shape.head_dim // 2)
    exponents = torch.arange(0, dims, 2, dtype=torch.float64) / dims
    frequencies[: dims // 2] = (shape.rope["rope_theta"] ** -exponents).float()
    model.model.rotary_emb.inv_freq = frequencies


def _write_common_keys(
    writer: gguf.GGUFWriter, config: LlamaConfig | Gemma3TextConfig, head_dim: int
) -> None:
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads or config.num_attention_heads)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)


def _write_rope(writer: gguf.GGUFWriter, family: str, rope: Mapping[str, Any]) -> None:
    writer.add_rope_freq_base(rope["rope_theta"])
    kind = rope["rope_type"]
    if kind not in ("linear", "yarn"):
        return
    writer.add_string(f"{family}.rope.scaling.type", kind)
    writer.add_float32(f"{family}.rope.scaling.factor", rope["factor"])
    if kind == "yarn":
        original = rope["original_max_position_embeddings"]
        writer.add_uint32(f"{family}.rope.scaling.original_context_length", original)


def _llama3_divisors(rope: Mapping[str, Any], head_dim: int) -> np.ndarray[Any, Any]:
    """How much each pair is slowed down, by its wavelength against the original context."""
    divisors = []
    for pair in range(head_dim // 2):
        turns = (
            rope["original_max_position_embeddings"]
            * rope["rope_theta"] ** (-2 * pair / head_dim)
            / (2 * math.pi)
        )
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        share = min(max((turns - low) / (high - low), 0.0), 1.0)
        divisors.append(1.0 / (share + (1.0 - share) / rope["factor"]))
    return np.array(divisors, np.float32)


def _gguf_tensors(
    model: PreTrainedModel, names: Mapping[str, str]
) -> dict[str, np.ndarray[Any, Any]]:
    found = {}
    for name, value in model.state_dict().items():
        if name == "lm_head.weight" and model.config.tie_word_embeddings:
            continue
        found[_gguf_name(name, names)] = value.numpy()
    return found


def _gguf_name(name: str, names: Mapping[str, str]) -> str:
    stem, _, kind = name.rpartition(".")
    top = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    if stem in top:
        return f"{top[stem]}.{kind}"
    _, _, layer, part = stem.split(".", 3)
    return f"blk.{layer}.{names[part]}.{kind}"


def _stem(name: str) -> str:
    return name.split(".")[-2]


def _interleaved(value: np.ndarray[Any, Any], head_count: int) -> np.ndarray[Any, Any]:
    """Rows (half, pair) of each head become (pair, half)."""
    shape = value.shape
    halves = value.reshape(head_count, 2, shape[0] // head_count // 2, *shape[1:])
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(shape)


def _finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
