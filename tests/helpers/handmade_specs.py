"""A ``ModelSpec`` for transformers' own tensors, written by hand from a model's config.

So the executors can be held against transformers without any reader of checkpoints between. Names
are those of the model's ``state_dict``; nothing is permuted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from transformers import PreTrainedModel

from engine.models.spec import (
    Activation,
    AttentionSpec,
    Branch,
    DeltaSpec,
    ExpertsSpec,
    FeedForwardSpec,
    HeadOrder,
    LayerSpec,
    Linear,
    Mixer,
    ModelSpec,
    Norm,
    PageGroupSpec,
    PerLayerInputs,
    PerLayerSpec,
    RecurrentSpec,
    RopeSpec,
    RopeStyle,
    RowRuns,
)
from tests.helpers.memory_source import MemorySource

EPS = 1e-6
SHIFTED = 1.0


def arrays_of(model: PreTrainedModel) -> dict[str, Any]:
    """Every tensor of a model by its own name, float32."""
    return {
        name: np.ascontiguousarray(value.detach().float().numpy())
        for name, value in model.state_dict().items()
    }


def source_of(model: PreTrainedModel) -> MemorySource:
    """The model's tensors as a checkpoint; its metadata are empty."""
    return MemorySource("handmade", {}, arrays_of(model))


def linear(stem: str, *runs: tuple[int, int]) -> Linear:
    """``stem.weight``, or some runs of its rows."""
    return Linear(f"{stem}.weight", None, runs or None)


def alternating(first: int, count: int, every: int, blocks: int) -> RowRuns:
    """``count`` rows from ``first`` on in each of ``blocks`` blocks of ``every`` rows."""
    return tuple((block * every + first, count) for block in range(blocks))


def rope_of(theta: float, dims: int, over: int | None = None) -> RopeSpec:
    """Halves; ``over`` is what exponents are divided by, and how far the pairs are apart."""
    over = over or dims
    turning = tuple(theta ** (-2 * pair / over) for pair in range(dims // 2))
    return RopeSpec(RopeStyle.HALVES, turning + (0.0,) * ((over - dims) // 2))


def gated(stem: str, width: int, activation: Activation = Activation.SILU) -> FeedForwardSpec:
    """A gated feed-forward under ``stem``."""
    return FeedForwardSpec(
        width,
        linear(f"{stem}.gate_proj"),
        linear(f"{stem}.up_proj"),
        linear(f"{stem}.down_proj"),
        activation,
    )


def stacked(
    stem: str, count: int, width: int, hidden: int, activation: Activation
) -> tuple[FeedForwardSpec, ...]:
    """Experts in stacks: gate over up, then down."""
    both, down = f"{stem}.gate_up_proj", f"{stem}.down_proj"
    return tuple(
        FeedForwardSpec(
            width,
            Linear(both, None, ((2 * expert * width, width),)),
            Linear(both, None, (((2 * expert + 1) * width, width),)),
            Linear(down, None, ((expert * hidden, hidden),)),
            activation,
        )
        for expert in range(count)
    )


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


def gemma4_spec(model: PreTrainedModel) -> ModelSpec:
    """gemma4 of every kind: per-layer inputs, shared keys, keys as values, experts."""
    config = model.config
    kinds = ("sliding_attention", "full_attention")
    owned: dict[str, int] = dict.fromkeys(kinds, 0)
    layers = []
    for index, kind in enumerate(config.layer_types):
        owns = config.kv_sharing_modes[index] != "reuse"
        owned[kind] += owns
        mixer = _gemma4_attention(config, index, kinds.index(kind), owned[kind] - 1, owns)
        layers.append(_gemma4_layer(config, f"model.layers.{index}", mixer, owns))
    groups = tuple(
        PageGroupSpec(
            config.sliding_window if kind == "sliding_attention" else None,
            owned[kind],
            *_gemma4_heads(config, config.layer_types.index(kind)),
        )
        for kind in kinds
    )
    width = config.hidden_size_per_layer_input
    return ModelSpec(
        family=config.model_type,
        vocabulary=config.vocab_size,
        hidden=config.hidden_size,
        context_tokens=config.max_position_embeddings,
        embedding="model.embed_tokens.weight",
        embedding_scale=config.hidden_size**0.5,
        layers=tuple(layers),
        final_norm=Norm("model.norm.weight", EPS),
        head="model.embed_tokens.weight",
        groups=groups,
        per_layer=_gemma4_inputs(config.hidden_size, width) if width else None,
        logit_cap=config.final_logit_softcapping,
    )


def _gemma4_inputs(hidden: int, width: int) -> PerLayerInputs:
    return PerLayerInputs(
        width=width,
        embedding="model.embed_tokens_per_layer.weight",
        embedding_scale=width**0.5,
        projection=linear("model.per_layer_model_projection"),
        projection_scale=hidden**-0.5,
        norm=Norm("model.per_layer_projection_norm.weight", EPS),
        scale=2**-0.5,
    )


def _gemma4_heads(config: Any, index: int) -> tuple[int, int]:
    own = config.per_layer_config[index]
    return own.num_key_value_heads, own.head_dim


def _gemma4_attention(config: Any, index: int, group: int, slot: int, owns: bool) -> AttentionSpec:
    stem = f"model.layers.{index}.self_attn"
    full = config.layer_types[index] == "full_attention"
    kv_heads, dim = _gemma4_heads(config, index)
    has_values = owns and not (config.attention_k_eq_v and full)
    return AttentionSpec(
        group=group,
        slot=slot,
        head_count=config.num_attention_heads,
        kv_head_count=kv_heads,
        head_dim=dim,
        scale=1.0,
        window=None if full else config.sliding_window,
        # A quarter of the pairs turns, rounded down; the rest have frequency 0.
        rope=rope_of(1e6, 2 * (dim // 8), dim) if full else rope_of(1e4, dim),
        query=linear(f"{stem}.q_proj"),
        key=linear(f"{stem}.k_proj") if owns else None,
        value=linear(f"{stem}.v_proj") if has_values else None,
        output=linear(f"{stem}.o_proj"),
        query_norm=Norm(f"{stem}.q_norm.weight", EPS),
        key_norm=Norm(f"{stem}.k_norm.weight", EPS) if owns else None,
        value_norm=Norm(None, EPS) if owns else None,
    )


def _gemma4_layer(config: Any, stem: str, mixer: AttentionSpec, owns: bool) -> LayerSpec:
    def norm(name: str) -> Norm:
        return Norm(f"{stem}.{name}.weight", EPS)

    gelu, experts = Activation.GELU_TANH, config.enable_moe_block
    wide = 2 if config.use_double_wide_mlp and not owns else 1
    dense = gated(f"{stem}.mlp", wide * config.intermediate_size, gelu)
    post = norm("post_feedforward_layernorm_1") if experts else None
    branches = [Branch(norm("pre_feedforward_layernorm"), dense, post)]
    if experts:
        inner = stacked(
            f"{stem}.experts",
            config.num_experts,
            config.moe_intermediate_size,
            config.hidden_size,
            gelu,
        )
        mixture = ExpertsSpec(
            config.top_k_experts,
            linear(f"{stem}.router.proj"),
            inner,
            router_norm=Norm(f"{stem}.router.scale", EPS),
            router_scale=config.hidden_size**-0.5,
            scales=f"{stem}.router.per_expert_scale",
        )
        before, after = (norm(f"{at}_feedforward_layernorm_2") for at in ("pre", "post"))
        branches.append(Branch(before, mixture, after))
    per_layer = None
    if config.hidden_size_per_layer_input:
        per_layer = PerLayerSpec(
            linear(f"{stem}.per_layer_input_gate"),
            linear(f"{stem}.per_layer_projection"),
            norm("post_per_layer_input_norm"),
            gelu,
        )
    return LayerSpec(
        mixer_norm=norm("input_layernorm"),
        mixer=mixer,
        branches=tuple(branches),
        mixer_post_norm=norm("post_attention_layernorm"),
        branches_post_norm=norm("post_feedforward_layernorm"),
        per_layer=per_layer,
        scale=f"{stem}.layer_scalar",
    )
