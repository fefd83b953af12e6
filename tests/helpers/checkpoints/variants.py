"""Every family as a tiny random model of transformers, in float32 and with eager attention.

Weights are so large that attention, gates and routers are far from uniform; norms are away from
the value that does nothing; a recurrent head keeps between almost nothing and almost all of its
state a token, as trained ones do. transformers decides the mathematics, so these are the
references that every format of a family is compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    Gemma4ForCausalLM,
    Gemma4TextConfig,
    Gemma4UnifiedForCausalLM,
    Gemma4UnifiedTextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen3_5ForCausalLM,
    Qwen3_5MoeForCausalLM,
    Qwen3_5MoeTextConfig,
    Qwen3_5TextConfig,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3NextConfig,
    Qwen3NextForCausalLM,
)

from tests.helpers.checkpoints.shapes import CONTEXT, ODD, VOCABULARY, WINDOW, Widths

GEMMA = "gemma"
QWEN = "qwen"
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 512,
}


@dataclass(frozen=True)
class Variant:
    """One family, or one kind of a family that differs in its parts.

    Attributes:
        config: of the text model, for a set of widths.
        model: the class that computes it.
        tokenizer: GEMMA or QWEN, the kind of tokenizer that its checkpoints have.
        wrapper: model type and class name of the checkpoints with pictures that publish the
            family; their config and tensor names are another level deep. None: text alone.
        zero_centred: norm weights are stored less one.
        draft_layers: layers of the multi-token predictor that the checkpoint carries besides.
        unscaled: scores are not divided, so norm weights keep them small.
        in_gguf: False where no key of GGUF can say what this kind is.
    """

    config: Callable[[Widths], PreTrainedConfig]
    model: type[PreTrainedModel]
    tokenizer: str
    wrapper: tuple[str, str] | None = None
    zero_centred: bool = False
    draft_layers: int = 0
    unscaled: bool = False
    in_gguf: bool = True


def common(widths: Widths, layers: int) -> dict[str, Any]:
    """What every family's config calls the same."""
    return {
        "vocab_size": VOCABULARY,
        "hidden_size": widths.hidden,
        "intermediate_size": widths.feed_forward,
        "num_hidden_layers": layers,
        "num_attention_heads": widths.heads,
        "num_key_value_heads": widths.kv_heads,
        "head_dim": widths.head_dim,
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-6,
        "attn_implementation": "eager",
        "experts_implementation": "eager",
    }


def llama_config(widths: Widths) -> PreTrainedConfig:
    """Three layers, a head of their own, llama3 rope."""
    shared = common(widths, 3) | {"rms_norm_eps": 1e-5}
    return LlamaConfig(**shared, rope_parameters=dict(LLAMA3_ROPE), tie_word_embeddings=False)


def qwen3_config(widths: Widths) -> PreTrainedConfig:
    """Three layers, tied."""
    rope = {"rope_type": "default", "rope_theta": 1_000_000.0}
    return Qwen3Config(**common(widths, 3), rope_parameters=rope, tie_word_embeddings=True)


def delta_keys(widths: Widths, key_heads: int) -> dict[str, Any]:
    """The gated delta rule's sizes and the rope of the layers between."""
    turning = widths.head_dim // 8
    sections = [turning - 2 * (turning // 3), turning // 3, turning // 3]
    return {
        "linear_num_key_heads": key_heads,
        "linear_num_value_heads": 6,
        "linear_key_head_dim": widths.key_dim,
        "linear_value_head_dim": widths.value_dim,
        "linear_conv_kernel_dim": 4,
        "full_attention_interval": 4,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10_000_000.0,
            "partial_rotary_factor": 0.25,
            "mrope_section": sections,
            "mrope_interleaved": True,
        },
    }


def experts_keys(widths: Widths) -> dict[str, Any]:
    """Seven experts, three at work, and the shared one."""
    return {
        "num_experts": 7,
        "num_experts_per_tok": 3,
        "moe_intermediate_size": widths.expert,
        "shared_expert_intermediate_size": 2 * widths.expert,
    }


def qwen3_5_config(widths: Widths, tied: bool = True) -> PreTrainedConfig:
    """Five layers, the fourth with attention; three value heads a key head."""
    keys = common(widths, 5) | delta_keys(widths, 2)
    return Qwen3_5TextConfig(**keys, tie_word_embeddings=tied)


def qwen3_5_moe_config(widths: Widths) -> PreTrainedConfig:
    """Four layers, each with experts; two value heads a key head."""
    keys = common(widths, 4) | delta_keys(widths, 3) | experts_keys(widths)
    del keys["intermediate_size"]
    return Qwen3_5MoeTextConfig(**keys, tie_word_embeddings=False)


def qwen3_next_config(widths: Widths) -> PreTrainedConfig:
    """Four layers with experts, fused projections, no rope sections."""
    keys = common(widths, 4) | delta_keys(widths, 3) | experts_keys(widths)
    del keys["rope_parameters"]["mrope_section"], keys["rope_parameters"]["mrope_interleaved"]
    return Qwen3NextConfig(**keys, norm_topk_prob=True, tie_word_embeddings=False)


def gemma3_config(widths: Widths, more: int = 0) -> PreTrainedConfig:
    """Seven layers, the sixth attends to all, with linear rope scaling.

    Scores are divided by the root of ``head_dim + more``.
    """
    return Gemma3TextConfig(
        **common(widths, 7),
        query_pre_attn_scalar=widths.head_dim + more,
        sliding_window=WINDOW,
        layer_types=pattern(7, 6),
        rope_parameters={
            "full_attention": {"rope_type": "linear", "rope_theta": 1_000_000.0, "factor": 8.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
        },
    )


def gemma4_keys(
    widths: Widths, layer_types: list[str], full_kv_heads: int | None = None
) -> dict[str, Any]:
    """Heads that attend to all are twice as wide."""
    return common(widths, len(layer_types)) | {
        "num_global_key_value_heads": full_kv_heads,
        "layer_types": layer_types,
        "global_head_dim": 2 * widths.head_dim,
        "sliding_window": WINDOW,
        "final_logit_softcapping": 30.0,
    }


def gemma4_per_layer_config(widths: Widths) -> PreTrainedConfig:
    """As E2B: per-layer inputs; four of nine layers read others' keys, and are wider inside."""
    return Gemma4TextConfig(
        **gemma4_keys(widths, pattern(9, 3)),
        hidden_size_per_layer_input=widths.per_layer,
        vocab_size_per_layer_input=VOCABULARY,
        num_kv_shared_layers=4,
        use_double_wide_mlp=True,
    )


def gemma4_dense_config(widths: Widths) -> PreTrainedConfig:
    """As 31B: layers that attend to all have no values of their own, and fewer kv heads."""
    return Gemma4TextConfig(
        **gemma4_keys(widths, pattern(6, 3), full_kv_heads=1),
        hidden_size_per_layer_input=0,
        attention_k_eq_v=True,
        use_bidirectional_attention="vision",
    )


def gemma4_experts_config(widths: Widths) -> PreTrainedConfig:
    """As 26B-A4B: a dense branch and experts side by side."""
    return Gemma4TextConfig(
        **gemma4_keys(widths, pattern(4, 2), full_kv_heads=2),
        hidden_size_per_layer_input=0,
        attention_k_eq_v=True,
        use_bidirectional_attention="vision",
        enable_moe_block=True,
        num_experts=7,
        top_k_experts=3,
        moe_intermediate_size=widths.expert,
    )


def gemma4_unified_config(widths: Widths) -> PreTrainedConfig:
    """As 12B."""
    keys = gemma4_keys(widths, pattern(4, 2), full_kv_heads=1)
    return Gemma4UnifiedTextConfig(**keys, attention_k_eq_v=True)


def pattern(layers: int, every: int) -> list[str]:
    """Sliding layers, each ``every``-th attending to all."""
    return [
        "sliding_attention" if (index + 1) % every else "full_attention" for index in range(layers)
    ]


_GEMMA3 = partial(
    Variant,
    model=Gemma3ForCausalLM,
    tokenizer=GEMMA,
    wrapper=("gemma3", "Gemma3ForConditionalGeneration"),
    zero_centred=True,
)
_GEMMA4 = partial(
    Variant,
    tokenizer=GEMMA,
    wrapper=("gemma4", "Gemma4ForConditionalGeneration"),
    unscaled=True,
)
VARIANTS: Mapping[str, Variant] = MappingProxyType(
    {
        "llama": Variant(llama_config, LlamaForCausalLM, QWEN),
        "qwen3": Variant(qwen3_config, Qwen3ForCausalLM, QWEN),
        "qwen3_5": Variant(
            qwen3_5_config,
            Qwen3_5ForCausalLM,
            QWEN,
            ("qwen3_5", "Qwen3_5ForConditionalGeneration"),
            zero_centred=True,
            draft_layers=1,
        ),
        "qwen3_5_moe": Variant(
            qwen3_5_moe_config,
            Qwen3_5MoeForCausalLM,
            QWEN,
            ("qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration"),
            zero_centred=True,
            draft_layers=1,
        ),
        "qwen3_next": Variant(
            qwen3_next_config, Qwen3NextForCausalLM, QWEN, zero_centred=True, draft_layers=1
        ),
        "gemma3": _GEMMA3(gemma3_config),
        "gemma3 scaled": _GEMMA3(partial(gemma3_config, more=23), in_gguf=False),
        "gemma4 per layer": _GEMMA4(gemma4_per_layer_config, Gemma4ForCausalLM),
        "gemma4 dense": _GEMMA4(gemma4_dense_config, Gemma4ForCausalLM),
        "gemma4 experts": _GEMMA4(gemma4_experts_config, Gemma4ForCausalLM),
        "gemma4_unified": Variant(
            gemma4_unified_config,
            Gemma4UnifiedForCausalLM,
            GEMMA,
            ("gemma4_unified", "Gemma4UnifiedForConditionalGeneration"),
            unscaled=True,
        ),
    }
)


def make(name: str, widths: Widths = ODD, seed: int = 0) -> PreTrainedModel:
    """The reference model of a variant; the same bits for the same arguments."""
    return build(VARIANTS[name], widths, seed)


def build(variant: Variant, widths: Widths = ODD, seed: int = 0) -> PreTrainedModel:
    """The reference model of any variant; the same bits for the same arguments."""
    model = variant.model(variant.config(widths))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor_name, parameter in model.named_parameters():
            parameter.copy_(_drawn(tensor_name, parameter.shape, variant, generator))
        for tensor_name, buffer in model.named_buffers():
            if tensor_name.endswith("layer_scalar"):
                buffer.copy_(0.6 + 0.4 * torch.rand(1, generator=generator))
    model.train(False)
    return model


def _drawn(
    name: str, shape: torch.Size, variant: Variant, generator: torch.Generator
) -> torch.Tensor:
    """Numbers fit for what a tensor of this name does."""
    if name.endswith("A_log"):
        return torch.log(0.02 + 4 * torch.rand(shape, generator=generator))
    noise = torch.randn(shape, generator=generator)
    middle, size = _middle_and_size(name, shape, variant)
    return middle + size * noise


def _middle_and_size(name: str, shape: torch.Size, variant: Variant) -> tuple[float, float]:
    root: float = shape[-1] ** -0.5
    by_ending = {
        "dt_bias": (-2.0, 1.0),
        "conv1d.weight": (0.0, 0.7),
        "router.scale": (1.0, 0.3),
        "per_expert_scale": (1.0, 0.3),
        "linear_attn.norm.weight": (1.0, 0.25),
        "mlp.gate.weight": (0.0, 2.0 * root),
        "router.proj.weight": (0.0, 2.0),
    }
    if variant.unscaled:
        by_ending["q_norm.weight"] = (1.5 * root, 0.25 * root)
    by_ending["norm.weight"] = (0.0 if variant.zero_centred else 1.0, 0.25)
    by_ending["layernorm_1.weight"] = by_ending["layernorm_2.weight"] = by_ending["norm.weight"]
    found = (drawn for ending, drawn in by_ending.items() if name.endswith(ending))
    return next(found, (0.0, 1.3 * root))


@torch.inference_mode()
def reference_logits(model: PreTrainedModel, ids: list[int]) -> torch.Tensor:
    """[len(ids), vocabulary] float32."""
    logits: torch.Tensor = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]
    return logits


def random_ids(count: int, seed: int = 7) -> list[int]:
    """Token ids, the same for the same arguments."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, VOCABULARY, (count,), generator=generator).tolist()
