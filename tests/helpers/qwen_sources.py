"""Tiny Qwen checkpoints in memory: published, and as each converter would have changed them.

The changes are written here anew, from the formats' descriptions, so that a reader which takes a
checkpoint of one dialect as it takes another's computes other numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from engine.checkpoint.source import Dialect, MetadataValue
from tests.helpers.memory_source import MemorySource

Array = NDArray[np.float32]
Arrays = dict[str, Array]
VOCABULARY, HIDDEN, INNER = 53, 24, 36
HEADS, KV_HEADS, HEAD_DIM = 6, 3, 16
KEY_HEADS, VALUE_HEADS, KEY_DIM, VALUE_DIM, KERNEL = 2, 6, 8, 10, 4
EXPERTS, ACTIVE, WIDTH, SHARED = 5, 2, 14, 22
LAYERS = ("linear_attention", "full_attention", "linear_attention")
KEY_ROWS, VALUE_ROWS = KEY_HEADS * KEY_DIM, VALUE_HEADS * VALUE_DIM
CHANNELS = 2 * KEY_ROWS + VALUE_ROWS
DENSE, MIXED, NEXT = "qwen3_5", "qwen3_5_moe", "qwen3_next"
FAMILIES = (DENSE, MIXED, NEXT)
GGUF_NAMES = {DENSE: "qwen35", MIXED: "qwen35moe", NEXT: "qwen3next"}


def config(family: str) -> dict[str, MetadataValue]:
    """What config.json says, its keys joined by dots."""
    found: dict[str, MetadataValue] = {
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "num_hidden_layers": len(LAYERS),
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "max_position_embeddings": 1024,
        "rms_norm_eps": 1e-6,
        "layer_types": LAYERS,
        "linear_num_key_heads": KEY_HEADS,
        "linear_num_value_heads": VALUE_HEADS,
        "linear_key_head_dim": KEY_DIM,
        "linear_value_head_dim": VALUE_DIM,
        "linear_conv_kernel_dim": KERNEL,
        "rope_parameters.rope_type": "default",
        "rope_parameters.rope_theta": 1e7,
        "rope_parameters.partial_rotary_factor": 0.25,
        "tie_word_embeddings": False,
    }
    if family == DENSE:
        return found | {"intermediate_size": INNER}
    return found | {
        "num_experts": EXPERTS,
        "num_experts_per_tok": ACTIVE,
        "moe_intermediate_size": WIDTH,
        "shared_expert_intermediate_size": SHARED,
    }


def published_arrays(family: str, seed: int = 3) -> Arrays:
    """Every tensor by its published name; experts stacked, gate over up."""
    draw = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {
        "embed_tokens.weight": (VOCABULARY, HIDDEN),
        "norm.weight": (HIDDEN,),
    }
    for index, kind in enumerate(LAYERS):
        part = _delta(family) if kind == "linear_attention" else _attention()
        part |= _feed_forward() if family == DENSE else _experts()
        part |= {"input_layernorm.weight": (HIDDEN,), "post_attention_layernorm.weight": (HIDDEN,)}
        shapes |= {f"layers.{index}.{name}": shape for name, shape in part.items()}
    body = "model." if family == NEXT else "model.language_model."
    named = {f"{body}{name}": shape for name, shape in shapes.items()}
    named["lm_head.weight"] = (VOCABULARY, HIDDEN)
    return {name: _drawn(draw, name, shape) for name, shape in named.items()}


def source(
    family: str,
    dialect: Dialect = Dialect.PUBLISHED,
    *,
    arrays: Mapping[str, Array] | None = None,
    metadata: Mapping[str, MetadataValue] | None = None,
    without: tuple[str, ...] = (),
) -> MemorySource:
    """A checkpoint of a dialect with tensors or keys replaced, added or left out by their names.

    GGUF's keys are given without the family's prefix.
    """
    tensors, keys = published_arrays(family), config(family)
    name = family
    match dialect:
        case Dialect.GGUF:
            name, tensors, keys = (
                GGUF_NAMES[family],
                gguf_arrays(family, tensors),
                gguf_keys(family),
            )
        case Dialect.MLX:
            tensors = mlx_arrays(tensors)
        case Dialect.PUBLISHED:
            pass
    tensors = {n: a for n, a in (tensors | dict(arrays or {})).items() if n not in without}
    keys = {k: v for k, v in (keys | dict(metadata or {})).items() if k not in without}
    found = MemorySource(name, keys, tensors)
    found.dialect = dialect
    if dialect is not Dialect.GGUF:
        found.metadata = keys
    return found


def gguf_keys(family: str) -> dict[str, MetadataValue]:
    """What llama.cpp's converter writes, without the family's prefix."""
    found: dict[str, MetadataValue] = {
        "block_count": len(LAYERS),
        "context_length": 1024,
        "embedding_length": HIDDEN,
        "attention.head_count": HEADS,
        "attention.head_count_kv": KV_HEADS,
        "attention.key_length": HEAD_DIM,
        "attention.value_length": HEAD_DIM,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "attention.recurrent_layers": tuple(kind == "linear_attention" for kind in LAYERS),
        "full_attention_interval": 4,
        "rope.freq_base": 1e7,
        "rope.dimension_count": HEAD_DIM // 4,
        "ssm.conv_kernel": KERNEL,
        "ssm.state_size": KEY_DIM,
        "ssm.group_count": KEY_HEADS,
        "ssm.time_step_rank": VALUE_HEADS,
        "ssm.inner_size": VALUE_ROWS,
    }
    if family != NEXT:
        found["rope.dimension_sections"] = (1, 1, 0, 0)
    if family == DENSE:
        return found | {"feed_forward_length": INNER}
    return found | {
        "expert_count": EXPERTS,
        "expert_used_count": ACTIVE,
        "expert_feed_forward_length": WIDTH,
        "expert_shared_feed_forward_length": SHARED,
    }


def gguf_arrays(family: str, published: Mapping[str, Array]) -> Arrays:
    """llama.cpp's names and changes: norms whole, the decay itself, value heads in tiles."""
    found: Arrays = {}
    for name, array in published.items():
        found |= _in_gguf(family, name, array)
    return found


def mlx_arrays(published: Mapping[str, Array]) -> Arrays:
    """mlx-lm's names and changes: norms whole, the convolution's last axes exchanged."""
    found: Arrays = {}
    for name, array in published.items():
        own = name.replace("model.language_model.", "language_model.model.")
        if own == "lm_head.weight" and "model.embed_tokens.weight" not in published:
            own = "language_model.lm_head.weight"
        if "experts.gate_up_proj" in name:
            stem = own.replace("experts.gate_up_proj", "switch_mlp")
            found[f"{stem}.gate_proj.weight"] = array[:, :WIDTH]
            found[f"{stem}.up_proj.weight"] = array[:, WIDTH:]
        elif "experts.down_proj" in name:
            found[own.replace("experts.down_proj", "switch_mlp.down_proj.weight")] = array
        elif "conv1d" in name:
            found[own] = array.swapaxes(1, 2)
        else:
            found[own] = array + 1 if _zero_centred(name) else array
    return {name: np.ascontiguousarray(array) for name, array in found.items()}


def one_by_one(published: Mapping[str, Array]) -> Arrays:
    """The same experts as older checkpoints have them: three tensors each."""
    found: Arrays = {}
    for name, array in published.items():
        stem = name.rpartition(".")[0]
        for expert in range(EXPERTS):
            if name.endswith("experts.gate_up_proj"):
                found[f"{stem}.{expert}.gate_proj.weight"] = array[expert, :WIDTH]
                found[f"{stem}.{expert}.up_proj.weight"] = array[expert, WIDTH:]
            elif name.endswith("experts.down_proj"):
                found[f"{stem}.{expert}.down_proj.weight"] = array[expert]
            else:
                found[name] = array
    return {name: np.ascontiguousarray(array) for name, array in found.items()}


def _attention() -> dict[str, tuple[int, ...]]:
    return {
        "self_attn.q_proj.weight": (2 * HEADS * HEAD_DIM, HIDDEN),
        "self_attn.k_proj.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
        "self_attn.v_proj.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
        "self_attn.o_proj.weight": (HIDDEN, HEADS * HEAD_DIM),
        "self_attn.q_norm.weight": (HEAD_DIM,),
        "self_attn.k_norm.weight": (HEAD_DIM,),
    }


def _delta(family: str) -> dict[str, tuple[int, ...]]:
    apart: dict[str, tuple[int, ...]] = {
        "in_proj_qkv.weight": (CHANNELS, HIDDEN),
        "in_proj_z.weight": (VALUE_ROWS, HIDDEN),
        "in_proj_b.weight": (VALUE_HEADS, HIDDEN),
        "in_proj_a.weight": (VALUE_HEADS, HIDDEN),
    }
    fused: dict[str, tuple[int, ...]] = {
        "in_proj_qkvz.weight": (CHANNELS + VALUE_ROWS, HIDDEN),
        "in_proj_ba.weight": (2 * VALUE_HEADS, HIDDEN),
    }
    own = {
        "conv1d.weight": (CHANNELS, 1, KERNEL),
        "A_log": (VALUE_HEADS,),
        "dt_bias": (VALUE_HEADS,),
        "norm.weight": (VALUE_DIM,),
        "out_proj.weight": (HIDDEN, VALUE_ROWS),
    }
    parts = (fused if family == NEXT else apart) | own
    return {f"linear_attn.{name}": shape for name, shape in parts.items()}


def _feed_forward() -> dict[str, tuple[int, ...]]:
    return {
        "mlp.gate_proj.weight": (INNER, HIDDEN),
        "mlp.up_proj.weight": (INNER, HIDDEN),
        "mlp.down_proj.weight": (HIDDEN, INNER),
    }


def _experts() -> dict[str, tuple[int, ...]]:
    return {
        "mlp.gate.weight": (EXPERTS, HIDDEN),
        "mlp.experts.gate_up_proj": (EXPERTS, 2 * WIDTH, HIDDEN),
        "mlp.experts.down_proj": (EXPERTS, HIDDEN, WIDTH),
        "mlp.shared_expert.gate_proj.weight": (SHARED, HIDDEN),
        "mlp.shared_expert.up_proj.weight": (SHARED, HIDDEN),
        "mlp.shared_expert.down_proj.weight": (HIDDEN, SHARED),
        "mlp.shared_expert_gate.weight": (1, HIDDEN),
    }


def _zero_centred(name: str) -> bool:
    return "norm" in name and "linear_attn" not in name


def _drawn(draw: np.random.Generator, name: str, shape: tuple[int, ...]) -> Array:
    noise = draw.standard_normal(shape)
    if len(shape) > 1:
        noise *= 1.5 / np.sqrt(shape[-1] if "conv1d" not in name else 2)
    elif "norm" in name:
        noise = 0.2 * noise + (0 if _zero_centred(name) else 1)
    return noise.astype(np.float32)


_GGUF_STEMS = {
    "embed_tokens": "token_embd",
    "norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "post_attention_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "linear_attn.in_proj_qkv": "attn_qkv",
    "linear_attn.in_proj_z": "attn_gate",
    "linear_attn.in_proj_b": "ssm_beta",
    "linear_attn.in_proj_a": "ssm_alpha",
    "linear_attn.in_proj_ba": "ssm_ba",
    "linear_attn.conv1d": "ssm_conv1d",
    "linear_attn.norm": "ssm_norm",
    "linear_attn.out_proj": "ssm_out",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.gate": "ffn_gate_inp",
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp",
    "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp",
}


def _in_gguf(family: str, name: str, array: Array) -> Arrays:
    own = name.removeprefix("model.").removeprefix("language_model.").removesuffix(".weight")
    before = ""
    if own.startswith("layers."):
        _, number, own = own.split(".", 2)
        before = f"blk.{number}."
    if family != NEXT:
        array = _tiled(own, array)
    special: dict[str, Callable[[], Arrays]] = {
        "linear_attn.A_log": lambda: {"ssm_a": -np.exp(array)},
        "linear_attn.dt_bias": lambda: {"ssm_dt.bias": array},
        "linear_attn.conv1d": lambda: {"ssm_conv1d.weight": array[:, 0]},
        "linear_attn.in_proj_qkvz": lambda: _parted(array),
        "mlp.experts.gate_up_proj": lambda: {
            "ffn_gate_exps.weight": array[:, :WIDTH],
            "ffn_up_exps.weight": array[:, WIDTH:],
        },
        "mlp.experts.down_proj": lambda: {"ffn_down_exps.weight": array},
        "mlp.shared_expert_gate": lambda: {"ffn_gate_inp_shexp.weight": array[0]},
    }
    if own in special:
        parts = special[own]()
    else:
        whole = array + 1 if _zero_centred(name) else array
        parts = {f"{_GGUF_STEMS[own]}.weight": whole}
    return {before + part: np.ascontiguousarray(value) for part, value in parts.items()}


def _tiled(part: str, array: Array) -> Array:
    """Value head h of a group of r moves from ``g * r + h`` to ``h * groups + g``."""
    match part.removeprefix("linear_attn."):
        case "in_proj_qkv" | "conv1d":
            return np.concatenate((array[: 2 * KEY_ROWS], _heads(array[2 * KEY_ROWS :], 0)))
        case "in_proj_z" | "in_proj_b" | "in_proj_a" | "A_log" | "dt_bias":
            return _heads(array, 0)
        case "out_proj":
            return _heads(array, 1)
        case _:
            return array


def _heads(array: Array, axis: int) -> Array:
    parts = np.split(array, VALUE_HEADS, axis)
    shared = VALUE_HEADS // KEY_HEADS
    order = [group * shared + head for head in range(shared) for group in range(KEY_HEADS)]
    return np.concatenate([parts[index] for index in order], axis)


def _parted(fused: Array) -> Arrays:
    """q | k | v and the gate out of a projection that has all four for each key head."""
    shared = VALUE_ROWS // KEY_HEADS
    cuts = (KEY_DIM, 2 * KEY_DIM, 2 * KEY_DIM + shared)
    blocks = [np.split(block, cuts) for block in np.split(fused, KEY_HEADS)]
    q, k, v, z = (np.concatenate(part) for part in zip(*blocks, strict=True))
    return {"attn_qkv.weight": np.concatenate((q, k, v)), "attn_gate.weight": z}
