"""What running a published model takes follows from its metadata alone, at the true geometry.

Shapes and names are those of transformers' own classes on the meta device, so neither our readers
nor a file decides them; what is expected is written out, from the makers' configs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
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

from engine.cache.formats import KvFormat
from engine.checkpoint.published.config import flattened
from engine.forward.products import linears
from engine.loading.footprint import footprint
from engine.loading.inspection import ModelCosts, model_costs
from engine.loading.reads import decoded_elements, model_elements, step_reads
from engine.memory.placement import Geometry, Machine, Plan, Room, Wish, plan_placement
from engine.models import model_spec
from engine.models.spec import ModelSpec
from engine.native import StoredWeights, native_sizes
from kernels.cpu.library import Library, Pool
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


def costs(name: str) -> ModelCosts:
    return model_costs(*sourced(name))


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_model_of_the_catalogue_has_its_figures(name: str) -> None:
    """At 2 bytes an element a token reads exactly twice what is active."""
    entry, (spec, source) = CATALOGUE[name], sourced(name)
    found = costs(name)
    # Gemma 4 stores one scale a layer, which transformers does not count among the parameters.
    scales = sum(layer.scale is not None for layer in spec.layers)
    assert model_elements(spec, source.tensors) == entry.parameters + scales
    assert step_reads(spec, source.tensors).element_count == entry.active + scales
    assert found.step_bytes == 2 * (entry.active + scales)
    assert found.kv_token_bytes == entry.full_kib * KIB
    assert found.sliding_token_bytes == entry.sliding_kib * KIB
    assert found.sliding_bytes == entry.cap_mib * MIB
    assert found.recurrent_bytes == sum(entry.recurrent) * MIB
    assert entry.active * 34 / 32 / 1e9 == pytest.approx(entry.q8_gb, abs=6e-4)


def test_what_is_decoded_counts_each_tensor_once_and_no_row_that_is_looked_up() -> None:
    """Untied embeddings and per-layer ones stay in the file; all experts are decoded."""
    for name, left in {
        "Qwen3.5-0.8B": 0,
        "Qwen3.8-27B": 248_320 * 5120,
        "Qwen3.5-35B-A3B": 248_320 * 2048,
        "Gemma-4-E2B": 262_144 * 35 * 256,
        "Gemma-4-31B": 0,
    }.items():
        spec, source = sourced(name)
        scales = sum(layer.scale is not None for layer in spec.layers)
        wanted = CATALOGUE[name].parameters + scales - left
        assert decoded_elements(spec, source.tensors) == wanted
        assert footprint(source, spec, wide=True).weight_bytes == 4 * wanted


@dataclass(frozen=True)
class Vector:
    """One test vector of section 3; pages hold whole chunks, so a plan has a little more.

    Attributes:
        full, sliding: bytes by the formula.
        extra_rows: rows of the sliding group beyond the window: a chunk, filled up to whole pages
            wherever the window begins in one.
    """

    name: str
    context: int
    full: float
    sliding: float = 0
    extra_rows: int = 0


VECTORS = (
    Vector("Qwen3.8-27B", 32_768, 2.0 * GIB),
    Vector("Qwen3.5-35B-A3B", 131_072, 2.5 * GIB),
    Vector("Gemma-4-31B", 131_072, 10.0 * GIB, 800 * MIB, 512),
    Vector("Gemma-4-E4B", 131_072, 2.0 * GIB, 20 * MIB, 512),
    Vector("SmolLM2-135M", 8192, 180 * MIB),
)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: str(vector.name))
def test_the_planner_s_vectors(vector: Vector) -> None:
    """One chat: the formula's bytes for full layers, for sliding ones those of whole pages."""
    spec, source = sourced(vector.name)
    found = costs(vector.name)
    assert found.kv_token_bytes * vector.context == vector.full
    assert found.sliding_bytes == vector.sliding
    geometry = Geometry(spec.groups, vector.context, 256, KvFormat.FP16, spec.recurrent)
    machine = Machine(Room("ram", 1 << 40))
    plan = plan_placement(
        machine, footprint(source, spec, wide=False), geometry, Wish(vector.context, 1)
    )
    assert isinstance(plan, Plan)
    by_owner = {line.owner: line.bytes for line in plan.lines}
    beyond = found.sliding_token_bytes * vector.extra_rows
    assert by_owner["KV pages"] == vector.full + vector.sliding + beyond
    states = sum(CATALOGUE[vector.name].recurrent) * MIB
    assert by_owner.get("recurrent states", 0) == plan.slot_count * states


@pytest.mark.parametrize("name", CATALOGUE)
def test_no_executor_reserves_more_than_is_planned(name: str) -> None:
    """Arena, copies and scratch of the native library for the whole model, from shapes alone."""
    spec, source = sourced(name, "q8_0")
    taken, context = footprint(source, spec, wide=False), 16_384
    with Pool(Library(), 8) as pool:
        weights = StoredWeights(source, Library(), pool)
        multiplied = linears(spec)
        used = weights.arena_bytes(multiplied) + weights.copied_bytes(multiplied)
        planned = taken.workspace(context, 4, 256) + taken.logits(4)
        assert native_sizes(spec, context, 4, pool).total_bytes <= planned
    stored = sum(facts.stored_bytes for facts in source.tensors.values())
    assert used <= taken.weight_bytes <= 1.06 * stored


def test_layers_that_share_k_and_v_own_no_pages() -> None:
    for name, own in {"Gemma-4-E2B": (3, 12), "Gemma-4-E4B": (4, 20)}.items():
        spec, _ = sourced(name)
        assert tuple(group.layer_count for group in spec.groups) == own
        owners = [layer.group for layer in spec.attentions if layer.owns_kv]
        assert [owners.count(group) for group in range(2)] == list(own)
        assert len(spec.attentions) > sum(own)


def test_a_model_in_eight_bits_reads_the_catalogue_s_bytes() -> None:
    for name in ("Qwen3.8-27B", "Gemma-4-E4B", "Qwen3.5-35B-A3B"):
        found = model_costs(*sourced(name, "q8_0"))
        assert found.step_bytes / 1e9 == pytest.approx(CATALOGUE[name].q8_gb, abs=6e-4)
