"""Published checkpoints: every tensor as stored, and what the small files beside them say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.checkpoint.open import model_files, open_checkpoint
from engine.checkpoint.source import Dialect, GenerationDefaults
from engine.errors import CheckpointError, CheckpointUnreadable, UnsupportedFormat
from engine.forward.weights import Weights
from engine.models import model_spec
from engine.models.spec import Linear
from tests.helpers.listed import checkpoint_facts
from tests.helpers.tiny_gguf import write_script
from tests.helpers.tiny_safetensors import (
    CONFIG,
    INDEX,
    Stored,
    bf16,
    file_bytes,
    llama_tensors,
    taken_apart,
    tensors_file,
    write_folder,
)

TYPES = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn),
    *(torch.int8, torch.int16, torch.int32, torch.int64),
)
PAIR: dict[str, Any] = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.arange(4, dtype=np.int16),
}


def write(folder: Path, name: str, value: object) -> None:
    (folder / name).write_text(value if isinstance(value, str) else json.dumps(value))


def open_files(folder: Path) -> int:
    """Mappings of files below a folder."""
    return Path("/proc/self/maps").read_text().count(str(folder))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "tiny", CONFIG, llama_tensors())


@pytest.mark.parametrize("shards", [1, 2, 7])
def test_every_value_is_the_stored_one_in_any_number_of_files(tmp_path: Path, shards: int) -> None:
    tensors = llama_tensors()
    folder = write_folder(tmp_path / "tiny", CONFIG, tensors, shards=shards)
    with open_checkpoint(folder) as source:
        assert len(source.files) == shards
        assert set(source.tensors) == set(tensors)
        weights = Weights(source)
        for name, value in tensors.items():
            assert np.array_equal(weights.whole(name).numpy(), value)
            assert bytes(source.tensor_bytes(name)) == value.tobytes()
        assert model_spec(source).hidden == 24


@pytest.mark.parametrize("dtype", TYPES)
def test_files_of_the_safetensors_library_read_the_same(tmp_path: Path, dtype: torch.dtype) -> None:
    """Odd sizes, a single number, and names beyond ASCII; their order is the library's."""
    draw = torch.Generator().manual_seed(3)
    values = torch.randn(7, 5, 3, generator=draw) * 9
    parts = {"w": values, "ein.größe": values[0, 0, 0], "z": values[0]}
    made = {name: part.clone().to(dtype) for name, part in parts.items()}
    write(tmp_path, "config.json", {"model_type": "llama"})
    save_file(made, tmp_path / "model.safetensors", {"format": "pt"})
    wanted = load_file(tmp_path / "model.safetensors")
    with open_checkpoint(tmp_path) as source:
        assert source.tensors["ein.größe"].shape == (1,)
        for name, value in wanted.items():
            found = Weights(source).whole(name).view(value.shape)
            assert torch.equal(found, value.float())


def test_runs_of_rows_come_in_the_order_asked_for(folder: Path) -> None:
    value = llama_tensors()["model.embed_tokens.weight"]
    runs = ((50, 3), (0, 1), (7, 2))
    rows = [50, 51, 52, 0, 7, 8]
    with open_checkpoint(folder) as source:
        weights = Weights(source)
        found = weights.linear(Linear("model.embed_tokens.weight", rows=runs))
        assert np.array_equal(found.numpy(), value[rows])
        assert np.array_equal(weights.rows("model.embed_tokens.weight", rows), value[rows])
        assert np.array_equal(weights.vector("model.norm.weight").shape, (24,))
        whole = weights.linear(Linear("model.embed_tokens.weight"))
        assert np.array_equal(whole.numpy(), value)


def test_bf16_tensors_are_as_precise_as_stored(tmp_path: Path) -> None:
    value = np.array([1.0, 1.00390625, -3.25], np.float32)
    folder = write_folder(tmp_path / "x", CONFIG, {"w": bf16(value)})
    with open_checkpoint(folder) as source:
        assert source.tensors["w"].format == "bf16"
        assert Weights(source).whole("w").tolist() == [1.0, 1.0, -3.25]


def test_what_closes_leaves_no_file_mapped(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "x", CONFIG, llama_tensors(), shards=3)
    source = open_checkpoint(folder)
    assert open_files(folder) == 3
    source.close()
    source.close()
    assert open_files(folder) == 0


def test_a_shard_opens_its_whole_set_and_one_file_itself(tmp_path: Path) -> None:
    many = write_folder(tmp_path / "many", CONFIG, PAIR, shards=2)
    with open_checkpoint(many / "model-00002-of-00002.safetensors") as source:
        assert (len(source.files), source.name) == (2, "many")
    (many / INDEX).unlink()
    with open_checkpoint(many / "model-00002-of-00002.safetensors") as source:
        assert len(source.files) == 2
    one = write_folder(tmp_path / "one", CONFIG, PAIR)
    (one / "model.safetensors").rename(one / "Any name.bin")
    with open_checkpoint(one / "Any name.bin") as source:
        assert (len(source.files), source.name) == (1, "Any name")


def test_files_beside_the_weights_of_a_folder_are_left_alone(folder: Path) -> None:
    """Consolidated copies and adapters lie beside the files that begin with "model"."""
    (folder / "consolidated.safetensors").write_bytes(tensors_file(PAIR))
    with open_checkpoint(folder) as source:
        assert "a" not in source.tensors
    (folder / "model.safetensors").unlink()
    with open_checkpoint(folder) as source:
        assert list(source.tensors) == ["a", "b"]


def test_a_config_is_flat_by_dots_with_arrays_as_tuples(tmp_path: Path) -> None:
    config = {
        "model_type": "x",
        "text_config": {"rope": {"theta": 1e6}, "layer_types": ["full", "slide"], "gone": None},
        "many": [[1, 2], [3]],
        "objects": [{"a": 1}, {"a": 2}],
        "with_null": [1, None],
        "tied": True,
    }
    with open_checkpoint(write_folder(tmp_path / "x", config, PAIR)) as source:
        assert source.metadata == {
            "model_type": "x",
            "text_config.rope.theta": 1e6,
            "text_config.layer_types": ("full", "slide"),
            "many": ((1, 2), (3,)),
            "objects.0.a": 1,
            "objects.1.a": 2,
            "tied": True,
        }


@pytest.mark.parametrize(
    ("config", "family"),
    [
        ({"model_type": "qwen3_5", "text_config": {"model_type": "qwen3_5_text"}}, "qwen3_5"),
        ({"architectures": ["LlamaForCausalLM"]}, "llama"),
        ({"architectures": ["Qwen3_5MoeForConditionalGeneration"]}, "qwen3_5_moe"),
    ],
)
def test_the_family_is_the_outer_type_else_the_class(
    tmp_path: Path, config: Mapping[str, Any], family: str
) -> None:
    with open_checkpoint(write_folder(tmp_path / "x", config, PAIR)) as source:
        assert source.architecture == family


def test_a_family_that_is_not_told_is_a_typed_error(tmp_path: Path) -> None:
    with (
        open_checkpoint(write_folder(tmp_path / "x", {"a": 1}, PAIR)) as source,
        pytest.raises(CheckpointError, match=r"config\.json has no model_type"),
    ):
        _ = source.architecture


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ({}, GenerationDefaults()),
        ({"temperature": 0.7, "top_k": 20, "top_p": 0.95, "min_p": 0}, (0.7, 20, 0.95, 0.0)),
        ({"do_sample": True, "temperature": 1}, (1.0, None, None, None)),
        ({"do_sample": False, "temperature": 0.6, "top_k": 50}, (0.0, None, None, None)),
        ({"temperature": "hot", "top_k": True, "top_p": 1.5, "min_p": -1}, GenerationDefaults()),
        ({"temperature": float("nan"), "top_k": -1, "top_p": 1e400}, GenerationDefaults()),
    ],
)
def test_recommended_sampling_is_what_the_file_says_and_makes_sense(
    folder: Path, words: Mapping[str, Any], wanted: Any
) -> None:
    write(folder, "generation_config.json", words)
    with open_checkpoint(folder) as source:
        found = source.generation_defaults
    if isinstance(wanted, tuple):
        wanted = GenerationDefaults(*wanted)
    assert found == wanted


def test_ids_that_are_never_drawn_lie_inside_the_vocabulary(folder: Path) -> None:
    write(folder, "generation_config.json", {"suppress_tokens": [7, 52, 53, -1, "x", True]})
    with open_checkpoint(folder) as source:
        assert source.generation_defaults.suppressed_ids == (7, 52)


def test_a_template_is_found_in_each_of_its_places(folder: Path) -> None:
    def template() -> str | None:
        with open_checkpoint(folder) as source:
            return source.chat_template

    assert template() is None
    named = [{"name": "tools", "template": "t"}, {"name": "default", "template": "d"}]
    write(folder, "tokenizer_config.json", {"chat_template": named})
    assert template() == "d"
    write(folder, "tokenizer_config.json", {"chat_template": "config"})
    assert template() == "config"
    write(folder, "chat_template.json", {"chat_template": "object"})
    assert template() == "object"
    write(folder, "chat_template.jinja", "{{ 'größe' }}")
    assert template() == "{{ 'größe' }}"


def test_the_digest_follows_headers_sizes_and_small_files(folder: Path) -> None:
    def digest() -> str:
        with open_checkpoint(folder) as source:
            return source.header_digest

    seen = [digest()]
    assert digest() == seen[0]
    write(folder, "tokenizer.json", {"a": 1})
    seen.append(digest())
    write(folder, "config.json", CONFIG | {"rope_theta": 5e5})
    seen.append(digest())
    (folder / "model.safetensors").write_bytes(tensors_file(llama_tensors(), {"format": "np"}))
    seen.append(digest())
    assert len(set(seen)) == 4
    write(folder, "README.md", "words")
    assert digest() == seen[-1]


def test_a_folder_of_the_hubs_cache_opens_through_its_links(tmp_path: Path) -> None:
    """Snapshots hold links to files named by their hash; the repository's name is further up."""
    repository = tmp_path / "models--maker--Tiny-1B"
    blobs, snapshot = repository / "blobs", repository / "snapshots" / "0123abcd"
    snapshot.mkdir(parents=True)
    write_folder(blobs, CONFIG, llama_tensors())
    for name in ("config.json", "model.safetensors"):
        (blobs / name).rename(blobs / f"hash-of-{name}")
        (snapshot / name).symlink_to(Path("../../blobs") / f"hash-of-{name}")
    with open_checkpoint(snapshot) as source:
        assert source.name == "Tiny-1B"
        assert model_spec(source).hidden == 24


def test_a_repository_of_the_hubs_cache_opens_at_its_newest_revision(tmp_path: Path) -> None:
    repository = tmp_path / "models--maker--Tiny-1B"
    for revision, theta in (("aa", 1e4), ("bb", 5e5)):
        folder = repository / "snapshots" / revision
        folder.mkdir(parents=True)
        write_folder(folder, CONFIG | {"rope_theta": theta}, llama_tensors())
    with pytest.raises(CheckpointUnreadable, match="holds 2 revisions"):
        open_checkpoint(repository)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("bb\n")
    with open_checkpoint(repository) as source:
        assert (source.name, source.metadata["rope_theta"]) == ("Tiny-1B", 5e5)
    (repository / "refs" / "main").write_text("../../elsewhere")
    with pytest.raises(CheckpointUnreadable, match="holds 2 revisions"):
        open_checkpoint(repository)


def test_a_picture_part_beside_a_gguf_model_does_not_hide_it(tmp_path: Path) -> None:
    write_script(tmp_path / "model.gguf", ["a"])
    writer = gguf.GGUFWriter(tmp_path / "mmproj-model.gguf", "clip")
    writer.add_tensor("v.x", np.zeros((2, 2), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert model_files(tmp_path) == (tmp_path / "model.gguf",)
    with open_checkpoint(tmp_path) as source:
        assert source.architecture == "llama"


def test_a_folder_with_both_kinds_of_weights_is_the_published_one(folder: Path) -> None:
    """The GGUF file has a name of its own."""
    write_script(folder / "model.gguf", ["a"])
    assert model_files(folder) == (folder / "model.gguf", folder)
    with open_checkpoint(folder) as source:
        assert source.dialect is Dialect.PUBLISHED
    with open_checkpoint(folder / "model.gguf") as source:
        assert source.dialect is Dialect.GGUF


@pytest.mark.parametrize("name", ["config.json", INDEX])
def test_a_small_file_named_for_the_model_points_to_its_folder(tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path / "tiny", CONFIG, llama_tensors(), shards=2)
    with pytest.raises(CheckpointError, match=f"{name}: this is a JSON text; name the folder"):
        open_checkpoint(folder / name)


@pytest.mark.parametrize("length", [123, 0x227B, 0x7D7B])
def test_a_header_whose_length_spells_a_bracket_is_no_json(tmp_path: Path, length: int) -> None:
    folder = write_folder(tmp_path / "tiny", CONFIG, {"w": np.ones(1, np.float32)})
    header, data = taken_apart((folder / "model.safetensors").read_bytes())
    text = json.dumps(header).encode().ljust(length)
    (folder / "model.safetensors").write_bytes(file_bytes(text, data))
    with open_checkpoint(folder / "model.safetensors") as source:
        assert list(source.tensors) == ["w"]


def test_vision_tensors_are_told_and_not_used(tmp_path: Path) -> None:
    tensors = llama_tensors() | {"vision_tower.w": np.ones((3, 3), np.float32)}
    with open_checkpoint(write_folder(tmp_path / "x", CONFIG, tensors)) as source:
        assert any("picture" in note for note in model_spec(source).notes)


def test_a_list_of_models_shows_numbers_from_headers_alone(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "Tiny", CONFIG, llama_tensors(), shards=2)
    write(folder, "chat_template.jinja", "x")
    found = checkpoint_facts(folder)
    elements = sum(
        value.size for value in llama_tensors().values() if isinstance(value, np.ndarray)
    )
    assert found.error is None
    assert (found.name, found.architecture, found.part_count) == ("Tiny", "llama", 2)
    assert (found.parameter_count, found.quantization) == (elements, "F32")
    assert (found.context_tokens, found.vocabulary, found.has_template) == (1024, 53, True)
    (folder / "model-00002-of-00002.safetensors").unlink()
    damaged = checkpoint_facts(folder)
    assert damaged.error is not None and "model-00002-of-00002" in damaged.error
    assert (damaged.name, damaged.architecture, damaged.context_tokens) == ("Tiny", "llama", 1024)


@pytest.mark.parametrize("dtype", ["BOOL", "U8", "U16", "U32", "U64", "F8_E5M2", "C64", "F9"])
def test_a_kind_of_element_that_is_not_read_is_named(tmp_path: Path, dtype: str) -> None:
    size = {"U16": 2, "U32": 4, "U64": 8, "C64": 8}.get(dtype, 1)
    folder = write_folder(tmp_path / "x", CONFIG, {"w": Stored(dtype, (3,), bytes(3 * size))})
    with pytest.raises(UnsupportedFormat) as caught:
        open_checkpoint(folder)
    for part in ("model.safetensors", "'w'", dtype):
        assert part in caught.value.sentence
