"""The torch executor against transformers, for every part that a spec can have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
import torch
from transformers import PreTrainedModel

from engine.models.spec import DeltaSpec, HeadOrder, ModelSpec
from tests.helpers.checkpoints.variants import make, random_ids, reference_logits
from tests.helpers.handmade.gemma4 import gemma4_spec
from tests.helpers.handmade.parts import arrays_of, source_of
from tests.helpers.handmade.qwen import qwen_spec
from tests.helpers.lone_model import LoneModel, relative_l2
from tests.helpers.memory_source import MemorySource

BUILDERS: dict[str, Callable[[PreTrainedModel], ModelSpec]] = {
    "qwen3_5": qwen_spec,
    "qwen3_5_moe": qwen_spec,
    "qwen3_next": qwen_spec,
    "gemma4 per layer": gemma4_spec,
    "gemma4 dense": gemma4_spec,
    "gemma4 experts": gemma4_spec,
}
PROMPT, STEPS = 300, 8
IDS = random_ids(PROMPT + STEPS)


@cache
def reference(name: str) -> tuple[PreTrainedModel, torch.Tensor]:
    """A model and its logits for ``IDS``."""
    model = make(name)
    return model, reference_logits(model, IDS)


@pytest.mark.parametrize("name", BUILDERS)
def test_prompts_and_steps_are_those_of_transformers(name: str) -> None:
    """Pages, states and slots that the model does not own are NaN all the while."""
    model, wanted = reference(name)
    with LoneModel(source_of(model), PROMPT + STEPS, spec=BUILDERS[name](model)) as lone:
        assert relative_l2(lone.all_logits(IDS[:PROMPT]), wanted[:PROMPT]) < 2e-5
        found = torch.stack([lone.step(token) for token in IDS[PROMPT:]])
    assert relative_l2(found, wanted[PROMPT:]) < 2e-5


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("rows", [1, 17, 64])
def test_short_prompts_and_their_next_token_are_those_of_transformers(name: str, rows: int) -> None:
    model, wanted = reference(name)
    with LoneModel(source_of(model), rows + 1, spec=BUILDERS[name](model)) as lone:
        assert relative_l2(lone.prompt(IDS[:rows]), wanted[rows - 1]) < 2e-5
        assert relative_l2(lone.step(IDS[rows]), wanted[rows]) < 2e-5


@pytest.mark.parametrize("name", BUILDERS)
def test_another_token_long_ago_is_seen(name: str) -> None:
    """The control: a comparison that only the newest rows decide would prove little."""
    model, wanted = reference(name)
    ids = [(IDS[0] + 1) % 1000, *IDS[1:64]]
    with LoneModel(source_of(model), 64, spec=BUILDERS[name](model)) as lone:
        assert relative_l2(lone.prompt(ids), wanted[63]) > 1e-3


def tiled(model: PreTrainedModel, spec: ModelSpec) -> tuple[MemorySource, ModelSpec]:
    """The same model with value heads in the order of GGUF files."""
    arrays = arrays_of(model)
    layers = []
    for layer in spec.layers:
        mixer = layer.mixer
        if isinstance(mixer, DeltaSpec):
            _tile(arrays, mixer)
            mixer = replace(mixer, order=HeadOrder.TILED)
        layers.append(replace(layer, mixer=mixer))
    return MemorySource("handmade", {}, arrays), replace(spec, layers=tuple(layers))


def _tile(arrays: dict[str, torch.Tensor], delta: DeltaSpec) -> None:
    """Value head h // r, h % r goes to place (h % r) * key heads + h // r."""
    keys, values, wide = delta.key_head_count, delta.value_head_count, delta.value_dim
    heads = torch.arange(values).view(keys, values // keys).t().flatten()
    rows = (heads.unsqueeze(1) * wide + torch.arange(wide)).flatten()
    skipped = 2 * keys * delta.key_dim
    mixed = torch.cat([torch.arange(skipped), skipped + rows])
    orders = {
        delta.mixed.weight: mixed,
        delta.convolution: mixed,
        delta.gate.weight: rows,
        delta.beta.weight: heads,
        delta.alpha.weight: heads,
        delta.decay: heads,
        delta.time_bias: heads,
    }
    for name, order in orders.items():
        arrays[name] = arrays[name][order.numpy()]
    arrays[delta.output.weight] = arrays[delta.output.weight][:, rows.numpy()]


@pytest.mark.parametrize("name", ["qwen3_5", "qwen3_5_moe"])
def test_tiled_value_heads_are_the_same_model(name: str) -> None:
    model, wanted = reference(name)
    source, spec = tiled(model, BUILDERS[name](model))
    with LoneModel(source, 100, spec=spec) as lone:
        assert relative_l2(lone.all_logits(IDS[:99]), wanted[:99]) < 2e-5
        assert relative_l2(lone.step(IDS[99]), wanted[99]) < 2e-5


def test_the_wrong_head_order_is_another_model() -> None:
    model, wanted = reference("qwen3_5")
    source, _ = tiled(model, qwen_spec(model))
    with LoneModel(source, 20, spec=qwen_spec(model)) as lone:
        assert relative_l2(lone.prompt(IDS[:20]), wanted[19]) > 1e-2
