"""Every variant of a family gives the logits of transformers in float32.

Measured at 700 rows: relative L2 1.2e-6 to 3.7e-6 over all variants, the largest where angles are
largest: transformers rounds position times frequency to float32, we do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.models.spec import LayerSpec, ModelSpec, RopeStyle
from tests.helpers.lone_model import LoneModel, relative_l2
from tests.helpers.tiny_models import (
    TinyGemma3,
    TinyLlama,
    make_gemma3,
    make_llama,
    random_ids,
    reference_logits,
)

LENGTHS = (1, 17, 64, 300, 700)
ROPE = {"rope_theta": 10000.0}
LINEAR = ROPE | {"rope_type": "linear", "factor": 4.0}
YARN = ROPE | {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}
LLAMA3 = ROPE | {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 256,
}
GEMMA_LINEAR = {"rope_type": "linear", "rope_theta": 1_000_000.0, "factor": 8.0}
VARIANTS: dict[str, TinyLlama | TinyGemma3] = {
    "llama": TinyLlama(),
    "llama, a head of its own": TinyLlama(tied=False),
    "llama, biases": TinyLlama(biases=True),
    "llama, part of the head turns": TinyLlama(rotated_dims=12),
    "llama, linear rope": TinyLlama(rope=LINEAR),
    "llama, yarn rope": TinyLlama(rope=YARN),
    "llama, llama3 rope": TinyLlama(rope=LLAMA3),
    "gemma3, 7 layers": TinyGemma3(),
    "gemma3, 13 layers": TinyGemma3(layers=13),
    "gemma3, pattern 3": TinyGemma3(layers=13, pattern=3),
    "gemma3, long window": TinyGemma3(window=300),
    "gemma3, scale of its own": TinyGemma3(query_scalar=19),
    "gemma3, linear rope": TinyGemma3(full_rope=GEMMA_LINEAR),
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make(shape: TinyLlama | TinyGemma3, path: Path) -> Any:
    return make_llama(shape, path) if isinstance(shape, TinyLlama) else make_gemma3(shape, path)


@pytest.mark.parametrize("name", VARIANTS)
def test_logits_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    reference = make(VARIANTS[name], path)
    ids = random_ids(max(LENGTHS))
    for length in LENGTHS:
        wanted = reference_logits(reference, ids[:length])
        with LoneModel(path, length) as model:
            assert relative_l2(model.all_logits(ids[:length]), wanted) <= 1e-5
        with LoneModel(path, length) as model:
            assert relative_l2(model.prompt(ids[:length]), wanted[-1]) <= 1e-5


@pytest.mark.parametrize("name", VARIANTS)
def test_greedy_ids_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    """24 ids after a prompt that ends 10 rows before a page does, so steps cross into a new one."""
    path = tmp_path / "tiny.gguf"
    reference = make(VARIANTS[name], path)
    ids = random_ids(246)
    with LoneModel(path, 300) as model:
        found = model.greedy(ids, 24)
    for token in found:
        assert token == int(reference_logits(reference, ids)[-1].argmax())
        ids.append(token)


def with_layers(spec: ModelSpec, **attention: Any) -> ModelSpec:
    def changed(layer: LayerSpec) -> LayerSpec:
        return replace(layer, mixer=replace(layer.mixer, **attention))

    return replace(spec, layers=tuple(changed(layer) for layer in spec.layers))


def distance(path: Path, spec: ModelSpec, wanted: torch.Tensor, ids: list[int]) -> float:
    with LoneModel(path, len(ids), spec=spec) as model:
        return relative_l2(model.all_logits(ids), wanted)


def test_a_wrong_rope_style_scale_or_head_dimension_is_seen(tmp_path: Path) -> None:
    """Controls: the comparison above is sharp enough for what is easily got wrong."""
    path = tmp_path / "tiny.gguf"
    ids = random_ids(64)
    wanted = reference_logits(make_llama(TinyLlama(), path), ids)
    with LoneModel(path, 64) as model:
        spec = model.spec
    rope = spec.attentions[0].rope
    assert rope is not None
    halves = replace(rope, style=RopeStyle.HALVES)
    slower = replace(rope, frequencies=tuple(f * 0.999 for f in rope.frequencies))
    assert distance(path, spec, wanted, ids) <= 1e-5
    assert distance(path, with_layers(spec, rope=halves), wanted, ids) > 1e-2
    assert distance(path, with_layers(spec, rope=slower), wanted, ids) > 1e-4
    assert distance(path, with_layers(spec, scale=0.23), wanted, ids) > 1e-3


@pytest.mark.parametrize("window", [95, 97])
def test_a_window_off_by_one_is_seen(window: int, tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    ids = random_ids(300)
    wanted = reference_logits(make_gemma3(TinyGemma3(), path), ids)
    with LoneModel(path, 300) as model:
        spec = model.spec
    groups = tuple(replace(g, window=window) if g.window else g for g in spec.groups)
    assert distance(path, spec, wanted, ids) <= 1e-5
    assert distance(path, replace(spec, groups=groups), wanted, ids) > 1e-4


def test_a_wrong_sliding_pattern_is_seen(tmp_path: Path) -> None:
    """The file says nothing, the reference was built with 3: six is assumed and differs."""
    path = tmp_path / "tiny.gguf"
    other = tmp_path / "other.gguf"
    ids = random_ids(300)
    wanted = reference_logits(make_gemma3(TinyGemma3(pattern=3), other), ids)
    make_gemma3(TinyGemma3(), path)
    with LoneModel(path, 300) as model:
        assert relative_l2(model.all_logits(ids), wanted) > 1e-2
