"""qwen3_5, qwen3_5_moe and qwen3_next by hand."""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedModel

from engine.models.spec import (
    Activation,
    AttentionSpec,
    Branch,
    DeltaSpec,
    ExpertsSpec,
    HeadOrder,
    LayerSpec,
    Linear,
    Mixer,
    ModelSpec,
    Norm,
    PageGroupSpec,
    RecurrentSpec,
)
from tests.helpers.handmade.parts import EPS, SHIFTED, alternating, gated, linear, rope_of, stacked


def qwen_spec(model: PreTrainedModel) -> ModelSpec:
    """qwen3_5, qwen3_5_moe and qwen3_next."""
    config = model.config
    layers = []
    counts = {"linear_attention": 0, "full_attention": 0}
    for index, kind in enumerate(config.layer_types):
        stem, slot = f"model.layers.{index}", counts[kind]
        counts[kind] += 1
        mixer: Mixer
        if kind == "linear_attention":
            mixer = _delta(config, f"{stem}.linear_attn", slot)
        else:
            mixer = _gated_attention(config, f"{stem}.self_attn", slot)
        norm = Norm(f"{stem}.post_attention_layernorm.weight", EPS, SHIFTED)
        branches = _qwen_branches(config, f"{stem}.mlp", norm)
        before = Norm(f"{stem}.input_layernorm.weight", EPS, SHIFTED)
        layers.append(LayerSpec(before, mixer, branches))
    values = config.linear_num_value_heads * config.linear_value_head_dim
    channels = 2 * config.linear_num_key_heads * config.linear_key_head_dim + values
    group = PageGroupSpec(
        None, counts["full_attention"], config.num_key_value_heads, config.head_dim
    )
    return ModelSpec(
        family=config.model_type,
        vocabulary=config.vocab_size,
        hidden=config.hidden_size,
        context_tokens=config.max_position_embeddings,
        embedding="model.embed_tokens.weight",
        embedding_scale=1.0,
        layers=tuple(layers),
        final_norm=Norm("model.norm.weight", EPS, SHIFTED),
        head="model.embed_tokens.weight" if config.tie_word_embeddings else "lm_head.weight",
        groups=(group,),
        recurrent=RecurrentSpec(
            counts["linear_attention"],
            (
                config.linear_num_value_heads,
                config.linear_key_head_dim,
                config.linear_value_head_dim,
            ),
            (config.linear_conv_kernel_dim - 1, channels),
        ),
    )


def _delta(config: Any, stem: str, slot: int) -> DeltaSpec:
    keys, values = config.linear_num_key_heads, config.linear_num_value_heads
    key_dim, value_dim = config.linear_key_head_dim, config.linear_value_head_dim
    if config.model_type == "qwen3_next":
        mixed, gate, beta, alpha = _fused(stem, keys, values // keys, key_dim, value_dim)
    else:
        mixed, gate = linear(f"{stem}.in_proj_qkv"), linear(f"{stem}.in_proj_z")
        beta, alpha = linear(f"{stem}.in_proj_b"), linear(f"{stem}.in_proj_a")
    return DeltaSpec(
        slot=slot,
        key_head_count=keys,
        value_head_count=values,
        key_dim=key_dim,
        value_dim=value_dim,
        kernel=config.linear_conv_kernel_dim,
        order=HeadOrder.GROUPED,
        mixed=mixed,
        gate=gate,
        beta=beta,
        alpha=alpha,
        convolution=f"{stem}.conv1d.weight",
        decay=f"{stem}.A_log",
        decay_is_log=True,
        time_bias=f"{stem}.dt_bias",
        norm=Norm(f"{stem}.norm.weight", EPS),
        output=linear(f"{stem}.out_proj"),
    )


def _fused(
    stem: str, keys: int, serves: int, key_dim: int, value_dim: int
) -> tuple[Linear, Linear, Linear, Linear]:
    """A block a key head: q | k | its v | its z, and its b | its a."""
    wide = serves * value_dim
    block = 2 * key_dim + 2 * wide
    query = alternating(0, key_dim, block, keys)
    key = alternating(key_dim, key_dim, block, keys)
    value = alternating(2 * key_dim, wide, block, keys)
    gate = alternating(2 * key_dim + wide, wide, block, keys)
    return (
        linear(f"{stem}.in_proj_qkvz", *query, *key, *value),
        linear(f"{stem}.in_proj_qkvz", *gate),
        linear(f"{stem}.in_proj_ba", *alternating(0, serves, 2 * serves, keys)),
        linear(f"{stem}.in_proj_ba", *alternating(serves, serves, 2 * serves, keys)),
    )


def _gated_attention(config: Any, stem: str, slot: int) -> AttentionSpec:
    heads, dim = config.num_attention_heads, config.head_dim
    return AttentionSpec(
        group=0,
        slot=slot,
        head_count=heads,
        kv_head_count=config.num_key_value_heads,
        head_dim=dim,
        scale=dim**-0.5,
        window=None,
        rope=rope_of(config.rope_parameters["rope_theta"], dim // 4),
        query=linear(f"{stem}.q_proj", *alternating(0, dim, 2 * dim, heads)),
        key=linear(f"{stem}.k_proj"),
        value=linear(f"{stem}.v_proj"),
        output=linear(f"{stem}.o_proj"),
        query_norm=Norm(f"{stem}.q_norm.weight", EPS, SHIFTED),
        key_norm=Norm(f"{stem}.k_norm.weight", EPS, SHIFTED),
        gate=linear(f"{stem}.q_proj", *alternating(dim, dim, 2 * dim, heads)),
    )


def _qwen_branches(config: Any, stem: str, norm: Norm) -> tuple[Branch, ...]:
    if config.model_type == "qwen3_5_text":
        return (Branch(norm, gated(stem, config.intermediate_size)),)
    experts = stacked(
        f"{stem}.experts",
        config.num_experts,
        config.moe_intermediate_size,
        config.hidden_size,
        Activation.SILU,
    )
    shared = gated(f"{stem}.shared_expert", config.shared_expert_intermediate_size)
    return (
        Branch(norm, ExpertsSpec(config.num_experts_per_tok, linear(f"{stem}.gate"), experts)),
        Branch(norm, shared, gate=linear(f"{stem}.shared_expert_gate")),
    )
