"""Gemma and llama kinds that no published size has, or that configs say in another way.

The other gate takes each family as it is published through all formats; here are the parts in
other company, saved by transformers and opened by the engine's own reader. A logit may differ by
float32 rounding only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    Gemma4ForCausalLM,
    Gemma4TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedConfig,
    PreTrainedModel,
    SmolLM3Config,
    SmolLM3ForCausalLM,
)

from engine.models.spec import AttentionSpec, ExpertsSpec, LayerSpec, ModelSpec
from tests.helpers.checkpoints.shapes import ODD, VOCABULARY, WINDOW
from tests.helpers.checkpoints.variants import (
    GEMMA,
    QWEN,
    Variant,
    build,
    common,
    gemma3_config,
    gemma4_keys,
    pattern,
    random_ids,
    reference_logits,
)
from tests.helpers.lone_model import LoneModel, relative_l2

LENGTHS = (1, 17, 64, 300)
STEPS = 32
LIMIT = 1e-5
YARN = {
    "rope_type": "yarn",
    "rope_theta": 10_000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 64,
}
PER_LAYER = {"hidden_size_per_layer_input": 14, "vocab_size_per_layer_input": VOCABULARY}
EXPERTS = {
    "enable_moe_block": True,
    "num_experts": 5,
    "top_k_experts": 2,
    "moe_intermediate_size": 38,
}


def llama(**changed: Any) -> Variant:
    keys = common(ODD, 2) | {"tie_word_embeddings": True} | changed
    return Variant(lambda _: LlamaConfig(**keys), LlamaForCausalLM, QWEN)


def smollm3() -> Variant:
    """Five layers, the fourth unturned."""
    keys = common(ODD, 5) | {"tie_word_embeddings": True, "pad_token_id": 3}
    return Variant(lambda _: SmolLM3Config(**keys), SmolLM3ForCausalLM, QWEN)


def gemma3(config: Callable[[], PreTrainedConfig]) -> Variant:
    return Variant(lambda _: config(), Gemma3ForCausalLM, GEMMA, zero_centred=True)


def gemma4(layers: int, every: int, **changed: Any) -> Variant:
    keys = gemma4_keys(ODD, pattern(layers, every)) | {"hidden_size_per_layer_input": 0} | changed
    return Variant(lambda _: Gemma4TextConfig(**keys), Gemma4ForCausalLM, GEMMA, unscaled=True)


def capped_gemma3() -> PreTrainedConfig:
    config = gemma3_config(ODD)
    config.final_logit_softcapping = 20.0
    return config


def bare_gemma3() -> PreTrainedConfig:
    """Nothing said of rope and layer types: the class has its own."""
    return Gemma3TextConfig(**common(ODD, 6), sliding_window=WINDOW)


VARIANTS: Mapping[str, Variant] = {
    "llama, linear rope": llama(rope_parameters=YARN | {"rope_type": "linear"}),
    "llama, yarn": llama(rope_parameters=YARN),
    "llama, yarn with all it can say": llama(
        rope_parameters=YARN
        | {"beta_fast": 16.0, "beta_slow": 2.0, "attention_factor": 1.3, "truncate": False}
    ),
    "llama, yarn with two scales": llama(
        rope_parameters=YARN | {"mscale": 1.0, "mscale_all_dim": 0.5}
    ),
    "llama, biases and heads of hidden over six": llama(
        head_dim=None, hidden_size=84, attention_bias=True, mlp_bias=True, num_key_value_heads=None
    ),
    "smollm3": smollm3(),
    "gemma3, capped": gemma3(capped_gemma3),
    "gemma3, nothing said": gemma3(bare_gemma3),
    "gemma4, an input a layer and nothing shared": gemma4(3, 3, **PER_LAYER),
    "gemma4, an input a layer, sharing and experts": gemma4(
        7, 3, **PER_LAYER, **EXPERTS, num_kv_shared_layers=3, final_logit_softcapping=None
    ),
    "gemma4, sharing without wider layers": gemma4(
        8,
        2,
        **PER_LAYER,
        num_kv_shared_layers=5,
        attention_k_eq_v=True,
        num_global_key_value_heads=2,
    ),
    "gemma4, kv heads of the full layers not used": gemma4(4, 2, num_global_key_value_heads=1),
    "gemma4, full layers turn whole": gemma4(
        4,
        2,
        rope_parameters={
            "full_attention": {"rope_type": "default", "rope_theta": 50_000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 500.0},
        },
    ),
    "gemma4, full layers only": gemma4(3, 1, attention_bias=True),
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def saved(name: str, folder: Path) -> PreTrainedModel:
    model = build(VARIANTS[name])
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize("name", VARIANTS)
def test_logits_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    """All rows of prompts of every length, and 32 rows after each."""
    ids = random_ids(max(LENGTHS) + STEPS)
    wanted = reference_logits(saved(name, tmp_path), ids)
    for length in LENGTHS:
        with LoneModel(tmp_path, length + STEPS) as model:
            assert relative_l2(model.all_logits(ids[:length]), wanted[:length]) <= LIMIT
            after = [model.step(token).clone() for token in ids[length:][:STEPS]]
            assert relative_l2(torch.stack(after), wanted[length:][:STEPS]) <= LIMIT


def changed_mixers(spec: ModelSpec, **changes: Any) -> ModelSpec:
    def changed(layer: LayerSpec) -> LayerSpec:
        assert isinstance(layer.mixer, AttentionSpec)
        return replace(layer, mixer=replace(layer.mixer, **changes))

    return replace(spec, layers=tuple(changed(layer) for layer in spec.layers))


def other_owners(spec: ModelSpec) -> ModelSpec:
    """Sharing layers read the first owner of their kind instead of the last."""

    def changed(layer: LayerSpec) -> LayerSpec:
        mixer = layer.mixer
        assert isinstance(mixer, AttentionSpec)
        return layer if mixer.owns_kv else replace(layer, mixer=replace(mixer, slot=0))

    return replace(spec, layers=tuple(changed(layer) for layer in spec.layers))


def cooler_router(spec: ModelSpec) -> ModelSpec:
    def changed(layer: LayerSpec) -> LayerSpec:
        dense, mixed = layer.branches
        assert isinstance(mixed.body, ExpertsSpec)
        body = replace(mixed.body, router_scale=0.9 * mixed.body.router_scale)
        return replace(layer, branches=(dense, replace(mixed, body=body)))

    return replace(spec, layers=tuple(changed(layer) for layer in spec.layers))


def test_what_is_easily_got_wrong_is_seen(tmp_path: Path) -> None:
    """Controls: each makes another model, far beyond the bound above."""
    ids = random_ids(300)
    wanted = reference_logits(saved("gemma4, an input a layer, sharing and experts", tmp_path), ids)
    with LoneModel(tmp_path, 1) as model:
        spec = model.spec
    assert spec.per_layer is not None
    others = {
        "as read": spec,
        "values without a norm": changed_mixers(spec, value_norm=None),
        "scores divided": changed_mixers(spec, scale=40**-0.5),
        "no layer scales": replace(
            spec, layers=tuple(replace(layer, scale=None) for layer in spec.layers)
        ),
        "another owner": other_owners(spec),
        "a cooler router": cooler_router(spec),
        "inputs without their root": replace(
            spec, per_layer=replace(spec.per_layer, embedding_scale=1.0)
        ),
        "capped": replace(spec, logit_cap=30.0),
    }
    distances = {}
    for name, other in others.items():
        with LoneModel(tmp_path, 300, spec=other) as model:
            distances[name] = relative_l2(model.all_logits(ids), wanted)
    assert distances.pop("as read") <= LIMIT
    assert {name: far for name, far in distances.items() if not far > 1e-3} == {}
