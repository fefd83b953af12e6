"""gemma4 by hand."""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedModel

from engine.models.spec import (
    Activation,
    AttentionSpec,
    Branch,
    ExpertsSpec,
    LayerSpec,
    ModelSpec,
    Norm,
    PageGroupSpec,
    PerLayerInputs,
    PerLayerSpec,
)
from tests.helpers.handmade.parts import EPS, gated, linear, rope_of, stacked


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
