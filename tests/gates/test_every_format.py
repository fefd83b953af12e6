"""Every family in every format gives the logits of transformers in float32.

A tiny random model of odd sizes is saved as transformers saves it and as its makers publish it,
and the published folder goes through mlx-lm's converter and llama.cpp's. Each of the four is read
by the engine's own readers and computed by the float32 executor. Two numbers that differ by less
than rounding may change places, so the likeliest token counts where the first two are apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedModel

from engine.models.spec import AttentionSpec, DeltaSpec, HeadOrder, LayerSpec, ModelSpec
from tests.helpers.checkpoints.conversion import ToGguf, ToMlx, convert
from tests.helpers.checkpoints.saving import save_published, save_text
from tests.helpers.checkpoints.variants import VARIANTS, make, random_ids, reference_logits
from tests.helpers.lone_model import LoneModel, relative_l2

FORMATS = ("as transformers saves it", "as published", "MLX", "GGUF")
CASES = [
    (name, stored)
    for name, variant in VARIANTS.items()
    for stored in FORMATS
    if stored != "GGUF" or variant.in_gguf
]
LENGTHS = (1, 17, 64, 300)
STEPS = 32
LIMIT = 1e-4
APART = 1e-3


@dataclass(frozen=True)
class Saved:
    """One variant: what computes its reference, where its formats are, the reference's logits."""

    model: PreTrainedModel
    paths: Mapping[str, Path]
    ids: list[int]
    logits: torch.Tensor


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Saved]:
    """All variants, saved and converted at once: the converters' imports take most of the time."""
    found = {}
    ids = random_ids(max(LENGTHS) + STEPS)
    for name in VARIANTS:
        folder = tmp_path_factory.mktemp(name.replace(" ", "-"))
        model = make(name)
        places = [folder / "text", folder / "published", folder / "mlx", folder / "tiny.gguf"]
        save_text(name, model, places[0])
        save_published(name, model, places[1])
        paths = dict(zip(FORMATS, places, strict=True))
        found[name] = Saved(model, paths, ids, reference_logits(model, ids))
    published = {name: str(one.paths["as published"]) for name, one in found.items()}
    convert(
        [
            ToGguf(folder, str(found[name].paths["GGUF"]))
            for name, folder in published.items()
            if VARIANTS[name].in_gguf
        ],
        [ToMlx(folder, str(found[name].paths["MLX"])) for name, folder in published.items()],
    )
    return found


@pytest.mark.parametrize(("name", "stored"), CASES)
def test_logits_are_those_of_transformers(name: str, stored: str, saved: dict[str, Saved]) -> None:
    """All rows of prompts of every length, and 32 rows after each."""
    one = saved[name]
    for length in LENGTHS:
        with LoneModel(one.paths[stored], length + STEPS) as model:
            assert_same(model.all_logits(one.ids[:length]), one.logits[:length])
            assert_same(steps(model, one.ids[length:], STEPS), one.logits[length:][:STEPS])


@pytest.mark.parametrize("name", VARIANTS)
def test_a_prompt_may_end_anywhere_and_go_on_in_steps(name: str, saved: dict[str, Saved]) -> None:
    """600 rows, cut so that prompt and steps each cross from page to page."""
    one = saved[name]
    ids = random_ids(600, seed=8)
    wanted = reference_logits(one.model, ids)
    for prompt_rows in (250, 511, 512, 600):
        with LoneModel(one.paths["as published"], 600) as model:
            assert_same(model.prompt(ids[:prompt_rows]), wanted[prompt_rows - 1])
            if prompt_rows < 600:
                assert_same(steps(model, ids[prompt_rows:], 24), wanted[prompt_rows:][:24])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["llama", "qwen3_5_moe", "gemma4 per layer"])
def test_numbers_of_16_bits_are_those_of_the_file(
    name: str, dtype: torch.dtype, tmp_path: Path
) -> None:
    """The reference is the model rounded as the file is, and computed in float32."""
    model = make(name)
    save_published(name, model, tmp_path / "published", dtype)
    for value in model.state_dict().values():
        value.copy_(value.to(dtype))
    ids = random_ids(64)
    with LoneModel(tmp_path / "published", 64) as read:
        assert_same(read.all_logits(ids), reference_logits(model, ids))
    with LoneModel(tmp_path / "published", 64) as read:
        assert relative_l2(read.all_logits(ids), reference_logits(make(name), ids)) > 2 * LIMIT


def test_another_order_of_value_heads_is_seen(saved: dict[str, Saved]) -> None:
    """Control: GGUF's rows read in the order of published files are another model."""

    def other(layer: LayerSpec) -> LayerSpec:
        mixer = layer.mixer
        if not isinstance(mixer, DeltaSpec):
            return layer
        return replace(layer, mixer=replace(mixer, order=HeadOrder.GROUPED))

    one = saved["qwen3_5"]
    spec = read_spec(one.paths["GGUF"])
    changed = replace(spec, layers=tuple(other(layer) for layer in spec.layers))
    assert distance(one, "GGUF", spec) <= LIMIT
    assert distance(one, "GGUF", changed) > 1e-2


@pytest.mark.parametrize("stored", ["as published", "MLX"])
def test_norms_less_one_taken_for_plain_ones_are_seen(stored: str, saved: dict[str, Saved]) -> None:
    """Control: MLX files hold Qwen's norms plain, published ones less one."""
    one = saved["qwen3_5"]
    spec = read_spec(one.paths[stored])
    final = spec.final_norm
    changed = replace(spec, final_norm=replace(final, offset=1.0 - final.offset))
    assert distance(one, stored, spec) <= LIMIT
    assert distance(one, stored, changed) > 1e-2


def test_values_made_of_normed_keys_are_seen(saved: dict[str, Saved]) -> None:
    """Control: where values are keys, they are those before the norm and rotation."""

    def other(layer: LayerSpec) -> LayerSpec:
        mixer = layer.mixer
        if not isinstance(mixer, AttentionSpec) or mixer.value is not None:
            return layer
        return replace(layer, mixer=replace(mixer, value_norm=mixer.key_norm))

    one = saved["gemma4 dense"]
    spec = read_spec(one.paths["MLX"])
    changed = replace(spec, layers=tuple(other(layer) for layer in spec.layers))
    assert changed != spec
    assert distance(one, "MLX", spec) <= LIMIT
    assert distance(one, "MLX", changed) > 1e-3


def steps(model: LoneModel, ids: list[int], count: int) -> torch.Tensor:
    """[count, vocabulary] of generated rows."""
    return torch.stack([model.step(token).clone() for token in ids[:count]])


def assert_same(found: torch.Tensor, wanted: torch.Tensor) -> None:
    assert relative_l2(found, wanted) <= LIMIT
    first, second = wanted.topk(2).values.unbind(-1)
    apart = first - second > APART
    assert torch.equal(found.argmax(-1)[apart], wanted.argmax(-1)[apart])


def read_spec(path: Path) -> ModelSpec:
    with LoneModel(path, 1) as model:
        return model.spec


def distance(one: Saved, stored: str, spec: ModelSpec) -> float:
    with LoneModel(one.paths[stored], 300, spec=spec) as model:
        return relative_l2(model.all_logits(one.ids[:300]), one.logits[:300])
