"""Qwen models of every odd kind give the logits of transformers in float32.

What a config may ask for beside the sizes that the published models share: as many value heads as
key heads, twice or three times as many; another convolution; biases; YaRN; attention in another
order; layers without experts among those that have them. Saved by transformers, read by the
engine's own reader, computed by the float32 executor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    PreTrainedConfig,
    Qwen3_5ForCausalLM,
    Qwen3_5MoeForCausalLM,
    Qwen3_5MoeTextConfig,
    Qwen3_5TextConfig,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
    Qwen3NextConfig,
    Qwen3NextForCausalLM,
)

from tests.helpers.checkpoints.shapes import ODD, Widths
from tests.helpers.checkpoints.variants import (
    QWEN,
    Variant,
    build,
    common,
    delta_keys,
    experts_keys,
    random_ids,
    reference_logits,
)
from tests.helpers.lone_model import LoneModel, relative_l2

LENGTHS = (1, 17, 64, 300)
STEPS = 32
LIMIT = 1e-4
"""Of a relative distance that is mostly below 1e-5: where a row's output before the gated norm is
near nothing, transformers computing that row alone is 2e-5 from itself computing it among others.
"""
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}


def _qwen3(widths: Widths, **changed: Any) -> PreTrainedConfig:
    keys = common(widths, 3) | {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}
    return Qwen3Config(**keys | changed)


def _qwen3_moe(widths: Widths, **changed: Any) -> PreTrainedConfig:
    keys = common(widths, 4) | experts_keys(widths) | {"norm_topk_prob": True}
    del keys["shared_expert_intermediate_size"]
    return Qwen3MoeConfig(**keys | changed)


def _qwen3_5(widths: Widths, key_heads: int, **changed: Any) -> PreTrainedConfig:
    return Qwen3_5TextConfig(**_hybrid(common(widths, 4) | delta_keys(widths, key_heads), changed))


def _qwen3_5_moe(widths: Widths, key_heads: int, **changed: Any) -> PreTrainedConfig:
    keys = common(widths, 4) | delta_keys(widths, key_heads) | experts_keys(widths)
    del keys["intermediate_size"]
    return Qwen3_5MoeTextConfig(**_hybrid(keys, changed))


def _qwen3_next(widths: Widths, key_heads: int, **changed: Any) -> PreTrainedConfig:
    keys = common(widths, 4) | delta_keys(widths, key_heads) | experts_keys(widths)
    rope = {k: v for k, v in keys["rope_parameters"].items() if not k.startswith("mrope")}
    return Qwen3NextConfig(**_hybrid(keys | {"rope_parameters": rope}, changed))


def _hybrid(keys: dict[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
    rope = keys["rope_parameters"] | changed.pop("rope", {})
    return keys | changed | {"rope_parameters": rope}


KINDS = ["full_attention", "linear_attention", "linear_attention", "full_attention"]
Config = Callable[[Widths], PreTrainedConfig]
CASES: dict[str, tuple[Config, type]] = {
    "qwen3, a head of its own": (_qwen3, Qwen3ForCausalLM),
    "qwen3, biases": (lambda w: _qwen3(w, attention_bias=True), Qwen3ForCausalLM),
    "qwen3, yarn": (
        lambda w: _qwen3(w, rope_parameters=YARN | {"rope_theta": 1e6}),
        Qwen3ForCausalLM,
    ),
    "qwen3 with experts": (_qwen3_moe, Qwen3MoeForCausalLM),
    "qwen3 with experts in every other layer": (
        lambda w: _qwen3_moe(w, decoder_sparse_step=2),
        Qwen3MoeForCausalLM,
    ),
    "one value head a key head": (lambda w: _qwen3_5(w, 6), Qwen3_5ForCausalLM),
    "two value heads a key head": (lambda w: _qwen3_5(w, 3), Qwen3_5ForCausalLM),
    "three value heads a key head, a shorter convolution": (
        lambda w: _qwen3_5(w, 2, linear_conv_kernel_dim=3),
        Qwen3_5ForCausalLM,
    ),
    "all value heads at one key head": (lambda w: _qwen3_5(w, 1), Qwen3_5ForCausalLM),
    "attention first and last": (lambda w: _qwen3_5(w, 2, layer_types=KINDS), Qwen3_5ForCausalLM),
    "gates with biases": (lambda w: _qwen3_5(w, 2, attention_bias=True), Qwen3_5ForCausalLM),
    "yarn on part of a head": (lambda w: _qwen3_5(w, 2, rope=YARN), Qwen3_5ForCausalLM),
    "experts, three value heads a key head": (
        lambda w: _qwen3_5_moe(w, 2),
        Qwen3_5MoeForCausalLM,
    ),
    "experts, one value head a key head": (lambda w: _qwen3_5_moe(w, 6), Qwen3_5MoeForCausalLM),
    "fused projections, one value head a key head": (
        lambda w: _qwen3_next(w, 6),
        Qwen3NextForCausalLM,
    ),
    "fused projections, three value heads a key head": (
        lambda w: _qwen3_next(w, 2),
        Qwen3NextForCausalLM,
    ),
    "some layers without experts": (
        lambda w: _qwen3_next(w, 3, mlp_only_layers=[1, 3]),
        Qwen3NextForCausalLM,
    ),
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", CASES)
def test_logits_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    config, kind = CASES[name]
    zero_centred = kind not in (Qwen3ForCausalLM, Qwen3MoeForCausalLM)
    model = build(Variant(config, kind, QWEN, zero_centred=zero_centred), ODD)
    model.save_pretrained(tmp_path)
    ids = random_ids(max(LENGTHS) + STEPS)
    wanted = reference_logits(model, ids)
    for length in LENGTHS:
        with LoneModel(tmp_path, len(ids)) as lone:
            assert relative_l2(lone.all_logits(ids[:length]), wanted[:length]) < LIMIT
            if length != max(LENGTHS):
                continue
            for position in range(length, len(ids)):
                found = lone.step(ids[position])
                assert relative_l2(found, wanted[position]) < LIMIT, position


def test_a_changed_weight_shows(tmp_path: Path) -> None:
    """The control: the distance that is measured is one that a wrong reader would pass."""
    config, kind = CASES["two value heads a key head"]
    model = build(Variant(config, kind, QWEN, zero_centred=True), ODD)
    ids = random_ids(17)
    wanted = reference_logits(model, ids)
    with torch.no_grad():
        model.get_parameter("model.layers.0.linear_attn.A_log").add_(0.05)
    model.save_pretrained(tmp_path)
    with LoneModel(tmp_path, 17) as lone:
        assert relative_l2(lone.all_logits(ids), wanted) > LIMIT
