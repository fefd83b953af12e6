"""Saving a tiny model as its family is published, and as transformers saves it alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import PreTrainedModel

from tests.helpers.checkpoints import vocabularies
from tests.helpers.checkpoints.variants import GEMMA, VARIANTS, Variant

SHARD_BYTES = 1_000_000
BODY = "model.language_model."
GEMMA3_BODY = "language_model.model."
PICTURE_PARTS = {
    "qwen3_5": ("model.visual.patch_embed.proj.bias",),
    "qwen3_5_moe": ("model.visual.patch_embed.proj.bias",),
    "gemma3": ("vision_tower.vision_model.post_layernorm.bias",),
    "gemma4": ("model.vision_tower.std_bias", "model.embed_vision.embedding_projection.weight"),
    "gemma4_unified": ("model.embed_vision.embedding_projection.weight",),
}
OLDER = ("llama", "qwen3", "qwen3_next", "gemma3_text")
"""Model types whose makers' configs are older than ``rope_parameters`` and ``layer_types``."""
FULL_ATTENTION_LAYER = "model.layers.3."


def save_text(name: str, model: PreTrainedModel, folder: Path) -> None:
    """As transformers saves a text model: one file."""
    model.save_pretrained(folder)
    _write_words(VARIANTS[name], folder)


def save_published(
    name: str, model: PreTrainedModel, folder: Path, dtype: torch.dtype = torch.float32
) -> None:
    """As the makers publish the family, in shards.

    Its numbers are rounded to ``dtype``. Where the family sees pictures: its config and names a
    level deeper, and some tensors of the other parts; where it has a multi-token predictor: that.
    """
    variant = VARIANTS[name]
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {key: value.contiguous() for key, value in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        tensors.pop("lm_head.weight", None)
    if model.config.model_type == "qwen3_next":
        tensors = _one_by_one(tensors)
    if variant.draft_layers:
        tensors |= _draft(tensors, model.config.hidden_size)
    config = _flat(variant, model) | {"dtype": str(dtype).removeprefix("torch.")}
    if variant.wrapper is not None:
        config = _wrapped(variant.wrapper, config)
        tensors = {_inner_name(variant, key): value for key, value in tensors.items()}
        tensors |= {part: torch.ones(8, 8) for part in PICTURE_PARTS[variant.wrapper[0]]}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    _save_shards({key: value.to(dtype) for key, value in tensors.items()}, folder)
    _write_words(variant, folder)


def _flat(variant: Variant, model: PreTrainedModel) -> dict[str, Any]:
    """The config with the keys that makers write: geometry by kind of layer, not by layer."""
    config: dict[str, Any] = json.loads(model.config.to_json_string(use_diff=False))
    for layer in config.pop("per_layer_config", {}).values():
        config["global_head_dim"] = layer["head_dim"]
        config["num_global_key_value_heads"] = layer.get("num_key_value_heads")
    if variant.draft_layers and variant.wrapper:
        config["mtp_num_hidden_layers"] = variant.draft_layers
    if "linear_num_key_heads" in config:
        config["full_attention_interval"] = 4
    if model.config.model_type in OLDER:
        config |= _older_rope(config.pop("rope_parameters"))
        config.pop("layer_types", None)
    if variant.wrapper and variant.wrapper[0] == "gemma4_unified":
        config |= {"moe_intermediate_size": None, "hidden_size_per_layer_input": 0}
    config["architectures"] = [type(model).__name__]
    return config


def _older_rope(rope: dict[str, Any]) -> dict[str, Any]:
    """The rotary keys of configs from before ``rope_parameters``."""
    whole = dict(rope.get("full_attention", rope))
    found = {"rope_theta": whole.pop("rope_theta")}
    if "partial_rotary_factor" in whole:
        found["partial_rotary_factor"] = whole.pop("partial_rotary_factor")
    if "sliding_attention" in rope:
        found["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        found["sliding_window_pattern"] = 6
    return found | {"rope_scaling": None if whole["rope_type"] == "default" else whole}


def _wrapped(wrapper: tuple[str, str], text: dict[str, Any]) -> dict[str, Any]:
    model_type, architecture = wrapper
    del text["architectures"]
    return {
        "model_type": model_type,
        "architectures": [architecture],
        "text_config": text,
        "tie_word_embeddings": text["tie_word_embeddings"],
        "vocab_size": text["vocab_size"],
        "dtype": text["dtype"],
        "image_token_id": 7,
        "vision_config": {"model_type": f"{model_type}_vision", "hidden_size": 8},
    }


def _inner_name(variant: Variant, name: str) -> str:
    assert variant.wrapper is not None
    body = GEMMA3_BODY if variant.wrapper[0] == "gemma3" else BODY
    return body + name.removeprefix("model.") if name.startswith("model.") else name


def _one_by_one(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Each expert's projections as tensors of their own."""
    found = {}
    for name, value in tensors.items():
        stem, _, part = name.rpartition(".experts.")
        if not stem:
            found[name] = value
            continue
        for index, expert in enumerate(value):
            halves = expert.chunk(2) if part == "gate_up_proj" else (expert,)
            parts = ("gate_proj", "up_proj") if part == "gate_up_proj" else (part,)
            for half, one in zip(halves, parts, strict=True):
                found[f"{stem}.experts.{index}.{one}.weight"] = half.contiguous()
    return found


def _draft(tensors: Mapping[str, torch.Tensor], hidden: int) -> dict[str, torch.Tensor]:
    """A multi-token predictor: one layer with attention, and what joins it to the model."""
    layer = {
        f"mtp.layers.0.{key.removeprefix(FULL_ATTENTION_LAYER)}": value.clone()
        for key, value in tensors.items()
        if key.startswith(FULL_ATTENTION_LAYER)
    }
    norms = ("norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden")
    return layer | {
        "mtp.fc.weight": torch.ones(hidden, 2 * hidden),
        **{f"mtp.{norm}.weight": torch.zeros(hidden) for norm in norms},
    }


def _save_shards(tensors: Mapping[str, torch.Tensor], folder: Path) -> None:
    shards: list[dict[str, torch.Tensor]] = [{}]
    for name, value in tensors.items():
        if sum(held.nbytes for held in shards[-1].values()) + value.nbytes > SHARD_BYTES:
            shards.append({})
        shards[-1][name] = value
    index: dict[str, str] = {}
    for number, shard in enumerate(shards, 1):
        file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        save_file(shard, folder / file, metadata={"format": "pt"})
        index |= dict.fromkeys(shard, file)
    total = sum(value.nbytes for value in tensors.values())
    written = {"metadata": {"total_size": total}, "weight_map": index}
    (folder / "model.safetensors.index.json").write_text(json.dumps(written), "utf-8")


def _write_words(variant: Variant, folder: Path) -> None:
    write = vocabularies.write_gemma if variant.tokenizer == GEMMA else vocabularies.write_qwen
    generation = write(folder)
    (folder / "generation_config.json").write_text(json.dumps(generation), "utf-8")
