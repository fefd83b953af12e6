"""The catalogue: published models at their true geometry, without a byte of weights.

Shapes and names are those of transformers' own classes on the meta device, so neither our readers
nor a file decides them; what is expected is written out, from the makers' configs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
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
    SmolLM3Config,
    SmolLM3ForCausalLM,
)

from engine.checkpoint.published.config import flattened
from engine.models import model_spec
from engine.models.spec import ModelSpec
from tests.helpers.shape_source import ShapeSource

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def qwen3_5(
    hidden: int, inner: int, layers: int, heads: tuple[int, int], values: int, *, tied: bool
) -> PreTrainedConfig:
    return Qwen3_5TextConfig(
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads[0],
        num_key_value_heads=heads[1],
        linear_num_value_heads=values,
        tie_word_embeddings=tied,
    )


def experts(layers: int, count: int, active: int) -> dict[str, Any]:
    return {
        "hidden_size": 2048,
        "num_hidden_layers": layers,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "linear_num_value_heads": 32,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
        "num_experts": count,
        "num_experts_per_tok": active,
        "tie_word_embeddings": False,
    }


def qwen3_next() -> PreTrainedConfig:
    return Qwen3NextConfig(**experts(48, 512, 10), vocab_size=151_936, head_dim=256)


def gemma4(
    hidden: int,
    inner: int,
    layers: int,
    every: int,
    heads: tuple[int, int, int | None],
    **more: Any,
) -> dict[str, Any]:
    return {
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads[0],
        "num_key_value_heads": heads[1],
        "num_global_key_value_heads": heads[2],
        "layer_types": pattern(layers, every),
        "head_dim": 256,
        "global_head_dim": 512,
        "sliding_window": 1024,
        "final_logit_softcapping": 30.0,
        "hidden_size_per_layer_input": 0,
        "attention_k_eq_v": heads[2] is not None,
        **more,
    }


def pattern(layers: int, every: int) -> list[str]:
    return [
        "sliding_attention" if (index + 1) % every else "full_attention" for index in range(layers)
    ]


PER_LAYER = {"hidden_size_per_layer_input": 256, "sliding_window": 512}
MIXTURE = {
    "enable_moe_block": True,
    "num_experts": 128,
    "top_k_experts": 8,
    "moe_intermediate_size": 704,
}


def gemma3(
    hidden: int, inner: int, layers: int, heads: tuple[int, int, int], window: int
) -> PreTrainedConfig:
    return Gemma3TextConfig(
        vocab_size=262_144 if layers < 30 else 262_208,
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads[0],
        num_key_value_heads=heads[1],
        head_dim=heads[2],
        sliding_window=window,
        layer_types=pattern(layers, 6),
        rope_parameters={
            "full_attention": {"rope_type": "default", "rope_theta": 1_000_000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
        },
    )


def qwen3(
    hidden: int, inner: int, layers: int, heads: int, kv_heads: int, *, tied: bool
) -> PreTrainedConfig:
    return Qwen3Config(
        vocab_size=151_936,
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=128,
        tie_word_embeddings=tied,
    )


def smollm2(hidden: int, inner: int, layers: int, heads: int, kv_heads: int) -> PreTrainedConfig:
    return LlamaConfig(
        vocab_size=49_152,
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=64,
        tie_word_embeddings=True,
    )


def smollm3() -> PreTrainedConfig:
    return SmolLM3Config(
        vocab_size=128_256,
        hidden_size=2048,
        intermediate_size=11_008,
        num_hidden_layers=36,
        num_attention_heads=16,
        num_key_value_heads=4,
        tie_word_embeddings=True,
        pad_token_id=None,
    )


@dataclass(frozen=True)
class Entry:
    """One row of the catalogue.

    Attributes:
        parameters, active: elements of the text model, and those that a token reads: of experts
            the active share, of an untied embedding and of per-layer embeddings nothing.
        q8_gb: 1e9 bytes a token at 34/32 bytes an element.
        full_kib, sliding_kib: K and V of a token in 16-bit numbers.
        cap_mib: the most that sliding layers hold.
        recurrent: (states, convolution tails) of a stream, MiB.
    """

    config: PreTrainedConfig
    model: type[PreTrainedModel]
    parameters: int
    active: int
    q8_gb: float
    full_kib: float
    sliding_kib: float = 0
    cap_mib: float = 0
    recurrent: tuple[float, float] = (0, 0)


QWEN, GEMMA3, GEMMA4 = Qwen3_5ForCausalLM, Gemma3ForCausalLM, Gemma4ForCausalLM
CATALOGUE = {
    "Qwen3.5-0.8B": Entry(
        qwen3_5(1024, 3584, 24, (8, 2), 16, tied=True),
        QWEN, 752_393_024, 752_393_024, 0.799, 12, recurrent=(18, 1.265625),
    ),
    "Qwen3.5-2B": Entry(
        qwen3_5(2048, 6144, 24, (8, 2), 16, tied=True),
        QWEN, 1_881_825_088, 1_881_825_088, 1.999, 12, recurrent=(18, 1.265625),
    ),
    "Qwen3.5-4B": Entry(
        qwen3_5(2560, 9216, 32, (16, 4), 32, tied=True),
        QWEN, 4_205_751_296, 4_205_751_296, 4.469, 32, recurrent=(48, 2.25),
    ),
    "Qwen3.5-9B": Entry(
        qwen3_5(4096, 12288, 32, (16, 4), 32, tied=False),
        QWEN, 8_953_803_264, 7_936_684_544, 8.433, 32, recurrent=(48, 2.25),
    ),
    "Qwen3.8-27B": Entry(
        qwen3_5(5120, 17408, 64, (24, 4), 48, tied=False),
        QWEN, 26_895_998_464, 25_624_600_064, 27.226, 64, recurrent=(144, 5.625),
    ),
    "Qwen3.5-35B-A3B": Entry(
        Qwen3_5MoeTextConfig(**experts(40, 256, 8)),
        Qwen3_5MoeForCausalLM, 34_660_610_688, 2_946_429_568, 3.131, 20, recurrent=(60, 2.8125),
    ),
    "Qwen3-Next-80B-A3B": Entry(
        qwen3_next(),
        Qwen3NextForCausalLM, 79_674_391_296, 3_563_764_480, 3.786, 24, recurrent=(72, 3.375),
    ),
    "Gemma-4-E2B": Entry(
        Gemma4TextConfig(
            **gemma4(1536, 6144, 35, 5, (8, 1, None))
            | PER_LAYER
            | {"num_kv_shared_layers": 20, "use_double_wide_mlp": True}
        ),
        GEMMA4, 4_628_569_344, 2_279_759_104, 2.422, 6, 12, 6,
    ),
    "Gemma-4-E4B": Entry(
        Gemma4TextConfig(
            **gemma4(2560, 10240, 42, 6, (8, 2, None)) | PER_LAYER | {"num_kv_shared_layers": 18}
        ),
        GEMMA4, 7_463_013_376, 4_644_441_088, 4.935, 16, 40, 20,
    ),
    "Gemma-4-12B": Entry(
        Gemma4UnifiedTextConfig(**gemma4(3840, 15360, 48, 6, (16, 8, 1))),
        Gemma4UnifiedForCausalLM, 11_907_350_272, 11_907_350_272, 12.652, 16, 320, 320,
    ),
    "Gemma-4-26B-A4B": Entry(
        Gemma4TextConfig(**gemma4(2816, 2112, 30, 6, (16, 8, 2)) | MIXTURE),
        GEMMA4, 25_233_141_760, 3_822_530_560, 4.061, 20, 200, 200,
    ),
    "Gemma-4-31B": Entry(
        Gemma4TextConfig(**gemma4(5376, 21504, 60, 6, (32, 16, 4))),
        GEMMA4, 30_697_345_280, 30_697_345_280, 32.616, 80, 800, 800,
    ),
    "Gemma-3-270m": Entry(
        gemma3(640, 2048, 18, (4, 1, 256), 512),
        GEMMA3, 268_098_176, 268_098_176, 0.285, 3, 15, 7.5,
    ),
    "Gemma-3-1b": Entry(
        gemma3(1152, 6912, 26, (4, 1, 256), 512),
        GEMMA3, 999_885_952, 999_885_952, 1.062, 4, 22, 11,
    ),
    "Gemma-3-4b": Entry(
        gemma3(2560, 10240, 34, (8, 4, 256), 1024),
        GEMMA3, 3_880_263_168, 3_880_263_168, 4.123, 20, 116, 116,
    ),
    "Gemma-3-12b": Entry(
        gemma3(3840, 15360, 48, (16, 8, 256), 1024),
        GEMMA3, 11_766_034_176, 11_766_034_176, 12.501, 64, 320, 320,
    ),
    "Gemma-3-27b": Entry(
        gemma3(5376, 21504, 62, (32, 16, 128), 1024),
        GEMMA3, 27_009_346_304, 27_009_346_304, 28.697, 80, 416, 416,
    ),
    "Qwen3-0.6B": Entry(
        qwen3(1024, 3072, 28, 16, 8, tied=True),
        Qwen3ForCausalLM, 596_049_920, 596_049_920, 0.633, 112,
    ),
    "Qwen3-8B": Entry(
        qwen3(4096, 12288, 36, 32, 8, tied=False),
        Qwen3ForCausalLM, 8_190_735_360, 7_568_405_504, 8.041, 144,
    ),
    "Qwen3-32B": Entry(
        qwen3(5120, 25600, 64, 64, 8, tied=False),
        Qwen3ForCausalLM, 32_762_123_264, 31_984_210_944, 33.983, 256,
    ),
    "Qwen3-1.7B": Entry(
        qwen3(2048, 6144, 28, 16, 8, tied=True),
        Qwen3ForCausalLM, 1_720_574_976, 1_720_574_976, 1.828, 112,
    ),
    "Qwen3-4B": Entry(
        qwen3(2560, 9728, 36, 32, 8, tied=True),
        Qwen3ForCausalLM, 4_022_468_096, 4_022_468_096, 4.274, 144,
    ),
    "Qwen3-14B": Entry(
        qwen3(5120, 17408, 40, 40, 8, tied=False),
        Qwen3ForCausalLM, 14_768_307_200, 13_990_394_880, 14.865, 160,
    ),
    "SmolLM2-360M": Entry(
        smollm2(960, 2560, 32, 15, 5),
        LlamaForCausalLM, 361_821_120, 361_821_120, 0.384, 40,
    ),
    "SmolLM3-3B": Entry(
        smollm3(),
        SmolLM3ForCausalLM, 3_075_098_624, 3_075_098_624, 3.267, 72,
    ),
    "SmolLM2-135M": Entry(
        smollm2(576, 1536, 30, 9, 3),
        LlamaForCausalLM, 134_515_008, 134_515_008, 0.143, 22.5,
    ),
    "SmolLM2-1.7B": Entry(
        smollm2(2048, 8192, 24, 32, 32),
        LlamaForCausalLM, 1_711_376_384, 1_711_376_384, 1.818, 192,
    ),
}  # fmt: skip


@cache
def sourced(name: str, format_name: str = "bf16") -> tuple[ModelSpec, ShapeSource]:
    """A catalogue entry as its published checkpoint would be, without a byte of weights."""
    entry = CATALOGUE[name]
    with torch.device("meta"):
        model = entry.model(entry.config)
    config = flattened(json.loads(entry.config.to_json_string()), "config.json")
    tied = {"lm_head.weight"} if entry.config.tie_word_embeddings else set()
    shapes = {
        key: tuple(value.shape) for key, value in model.state_dict().items() if key not in tied
    }
    architecture = str(config["model_type"])
    source = ShapeSource(architecture, config, shapes, format_name=format_name)
    return model_spec(source), source
