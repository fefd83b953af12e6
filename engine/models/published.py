"""Published checkpoints (config.json) read by the keys and names of GGUF.

A family file asks for ``attention.head_count`` and ``blk.0.attn_q`` whatever the checkpoint's
format; the tables here say what those are called in a published one. Pure, no torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from engine.checkpoint.source import MetadataValue

TIED = "tie_word_embeddings"
COMMON_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "block_count": "num_hidden_layers",
        "context_length": "max_position_embeddings",
        "embedding_length": "hidden_size",
        "feed_forward_length": "intermediate_size",
        "attention.head_count": "num_attention_heads",
        "attention.head_count_kv": "num_key_value_heads",
        "attention.key_length": "head_dim",
        "attention.layer_norm_rms_epsilon": "rms_norm_eps",
        "attention.sliding_window": "sliding_window",
        "final_logit_softcapping": "final_logit_softcapping",
        "expert_count": "num_experts",
        "expert_used_count": "num_experts_per_tok",
        "expert_feed_forward_length": "moe_intermediate_size",
        "layer_types": "layer_types",
        "tied": TIED,
    }
)
COMMON_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "token_embd": "embed_tokens",
        "output_norm": "norm",
        "output": "lm_head",
        "blk.*.attn_norm": "layers.*.input_layernorm",
        "blk.*.attn_q": "layers.*.self_attn.q_proj",
        "blk.*.attn_k": "layers.*.self_attn.k_proj",
        "blk.*.attn_v": "layers.*.self_attn.v_proj",
        "blk.*.attn_output": "layers.*.self_attn.o_proj",
        "blk.*.attn_q_norm": "layers.*.self_attn.q_norm",
        "blk.*.attn_k_norm": "layers.*.self_attn.k_norm",
        "blk.*.ffn_gate": "layers.*.mlp.gate_proj",
        "blk.*.ffn_up": "layers.*.mlp.up_proj",
        "blk.*.ffn_down": "layers.*.mlp.down_proj",
    }
)
OTHER_SPELLINGS: Mapping[str, str] = MappingProxyType({"num_experts": "num_local_experts"})
"""What some configs call a key instead."""
TEXT_PART = "text_config."
_ROPE_KEYS = {
    "rope_theta": "freq_base",
    "type": "scaling.type",
    "rope_type": "scaling.type",
    "factor": "scaling.factor",
    "original_max_position_embeddings": "scaling.original_context_length",
    "low_freq_factor": "scaling.low_freq_factor",
    "high_freq_factor": "scaling.high_freq_factor",
    "beta_fast": "scaling.yarn_beta_fast",
    "beta_slow": "scaling.yarn_beta_slow",
    "attention_factor": "scaling.yarn_attn_factor",
    "mscale": "scaling.mscale",
    "mscale_all_dim": "scaling.mscale_all_dim",
    "truncate": "scaling.truncate",
    "partial_rotary_factor": "partial_rotary_factor",
    "mrope_section": "dimension_sections",
}
_ROPE_PLACES = {
    "rope_scaling.": "rope.",
    "rope_parameters.": "rope.",
    "rope_parameters.full_attention.": "rope.",
    "rope_parameters.sliding_attention.": "rope.sliding.",
}
"""Where a config has rotary numbers, the later place counting more, and what they are called here:
``rope.freq_base``, and ``rope.sliding.freq_base`` for the layers that slide."""


@dataclass(frozen=True, slots=True)
class Published:
    """How a family's published checkpoints spell things.

    Attributes:
        names: tensor stems or whole names, ``*`` for the layer, as ``TensorNames`` reads them.
        keys: GGUF key to config key, beside ``COMMON_KEYS``.
        defaults: by GGUF key, what transformers assumes where a config does not say.
    """

    names: Mapping[str, str] = field(default_factory=lambda: COMMON_NAMES)
    keys: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, MetadataValue] = field(default_factory=dict)


def published_values(
    config: Mapping[str, MetadataValue], published: Published
) -> tuple[dict[str, MetadataValue], dict[str, str]]:
    """The config's values by GGUF key, and by GGUF key how the config spells it.

    Keys of the text part count before those of the whole, but for ``tied``, where either may say
    so: the head is a part of the whole, and each maker writes only one of them with care.
    """
    values: dict[str, MetadataValue] = dict(published.defaults)
    spelled: dict[str, str] = {}
    for key, name in {**COMMON_KEYS, **published.keys}.items():
        spelled[key] = name
        own = [n for n in (OTHER_SPELLINGS.get(name), name) if n is not None]
        for full in (*own, *(TEXT_PART + n for n in own)):
            if full in config:
                values[key], spelled[key] = config[full], full
    if config.get(TIED) is True:
        values["tied"], spelled["tied"] = True, TIED
    for key, full in _rope_places(config):
        values[key], spelled[key] = config[full], full
    for key in ("rope.scaling.type", "rope.sliding.scaling.type"):
        if values.get(key) == "default":
            values[key] = "none"
    return values, spelled


def _rope_places(config: Mapping[str, MetadataValue]) -> list[tuple[str, str]]:
    found = []
    for part in ("", TEXT_PART):
        top = {"rope.freq_base": "rope_theta", "rope.sliding.freq_base": "rope_local_base_freq"}
        top["rope.partial_rotary_factor"] = "partial_rotary_factor"
        found += [(key, part + name) for key, name in top.items()]
        for place, prefix in _ROPE_PLACES.items():
            found += [(prefix + key, part + place + name) for name, key in _ROPE_KEYS.items()]
    return [(key, full) for key, full in found if full in config]
