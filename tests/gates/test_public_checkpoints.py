"""Cases that others got wrong, on published and MLX folders: heads, windows, shards, ends."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, Gemma3ForCausalLM, Gemma3TextConfig, PreTrainedModel

from engine.checkpoint.open import open_checkpoint
from engine.checkpoint.source import Dialect
from engine.config import Compute
from engine.errors import CheckpointUnreadable
from engine.models import model_spec
from engine.models.layers import NO_HEAD_NOTE, OWN_HEAD_NOTE
from engine.protocol import Sampling
from tests.helpers.checkpoints.saving import save_text
from tests.helpers.checkpoints.shapes import VOCABULARY, WINDOW, Widths
from tests.helpers.checkpoints.variants import (
    GEMMA,
    Variant,
    build,
    common,
    make,
    pattern,
    random_ids,
    reference_logits,
)
from tests.helpers.live_engine import LiveEngine
from tests.helpers.lone_model import LoneModel, relative_l2

FORMATS = {"pt": Dialect.PUBLISHED, "mlx": Dialect.MLX}
EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
ROOT = Path(__file__).resolve().parents[2]
IDS = random_ids(120)
POINTER = (
    b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 4683071234\n"
)
Tensors = dict[str, torch.Tensor]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def qwen3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tied model in one file, as transformers saves it."""
    folder = tmp_path_factory.mktemp("qwen3") / "model"
    save_text("qwen3", make("qwen3"), folder)
    return folder


def thirteen_layers(widths: Widths) -> Gemma3TextConfig:
    return Gemma3TextConfig(
        **common(widths, 13), query_pre_attn_scalar=widths.head_dim, sliding_window=WINDOW
    )


@pytest.fixture(scope="module")
def gemma3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gemma3") / "model"
    build(Variant(thirteen_layers, Gemma3ForCausalLM, GEMMA, zero_centred=True)).save_pretrained(
        folder
    )
    return folder


def changed(
    folder: Path,
    target: Path,
    config: dict[str, Any],
    change: Callable[[Tensors], object] = lambda _tensors: None,
    kind: str = "pt",
) -> Path:
    """A copy with other config keys (None takes one out), tensors, and writer's mark."""
    shutil.copytree(folder, target)
    kept = json.loads((target / "config.json").read_text("utf-8")) | config
    kept = {key: value for key, value in kept.items() if key not in config or value is not None}
    (target / "config.json").write_text(json.dumps(kept), "utf-8")
    tensors = load_file(target / "model.safetensors")
    change(tensors)
    save_file(tensors, target / "model.safetensors", metadata={"format": kind})
    return target


def shards(folder: Path, count: int = 2) -> list[Path]:
    """Deal the one file's tensors out into shards with an index; the file goes."""
    whole = folder / "model.safetensors"
    tensors = load_file(whole)
    with open_checkpoint(folder) as source:
        kind = "mlx" if source.dialect is Dialect.MLX else "pt"
    whole.unlink()
    names, places, paths = sorted(tensors), dict[str, str](), list[Path]()
    for number in range(count):
        paths.append(folder / f"model-{number + 1:05}-of-{count:05}.safetensors")
        own = names[number::count]
        save_file({name: tensors[name] for name in own}, paths[-1], metadata={"format": kind})
        places |= dict.fromkeys(own, paths[-1].name)
    index = {"metadata": {}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), "utf-8")
    return paths


def logits(folder: Path) -> torch.Tensor:
    with LoneModel(folder, len(IDS)) as model:
        return model.all_logits(IDS)


def reference(folder: Path) -> PreTrainedModel:
    found: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )
    found.train(False)
    return found


def refusal(folder: Path) -> str:
    with pytest.raises(CheckpointUnreadable) as caught, open_checkpoint(folder) as source:
        model_spec(source)
    return caught.value.sentence


def notes(folder: Path) -> tuple[str, ...]:
    with open_checkpoint(folder) as source:
        return model_spec(source).notes


def another_head(tensors: Tensors) -> None:
    tensors[HEAD] = tensors[EMBEDDING].flip(0).contiguous()


def the_same_head(tensors: Tensors) -> None:
    tensors[HEAD] = tensors[EMBEDDING].clone()


# The head and the embedding -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", FORMATS)
def test_a_head_beside_a_tied_embedding_counts_as_in_transformers(
    kind: str, qwen3: Path, tmp_path: Path
) -> None:
    tied = logits(qwen3)
    same = changed(qwen3, tmp_path / "same", {}, the_same_head, kind)
    other = changed(qwen3, tmp_path / "other", {}, another_head, kind)
    with open_checkpoint(other) as source:
        assert source.dialect is FORMATS[kind]
    assert torch.equal(logits(same), tied)
    assert relative_l2(logits(other), reference_logits(reference(other), IDS)) <= 1e-5
    assert relative_l2(logits(other), tied) > 0.1
    assert (OWN_HEAD_NOTE in notes(other), notes(qwen3)) == (True, ())


@pytest.mark.parametrize("kind", FORMATS)
def test_a_missing_head_is_named_and_one_no_word_is_lost_about_is_noted(
    kind: str, qwen3: Path, tmp_path: Path
) -> None:
    apart = changed(qwen3, tmp_path / "apart", {"tie_word_embeddings": False}, kind=kind)
    assert HEAD in refusal(apart)
    silent = changed(qwen3, tmp_path / "silent", {"tie_word_embeddings": None}, kind=kind)
    assert notes(silent) == (NO_HEAD_NOTE,)
    assert torch.equal(logits(silent), logits(qwen3))


# Which layers slide -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    ("said", "every"),
    [
        ({"layer_types": pattern(13, 4)}, 4),
        ({"sliding_window_pattern": 3}, 3),
        ({"_sliding_window_pattern": 3}, 6),
        ({}, 6),
        ({"layer_types": pattern(13, 4), "sliding_window_pattern": 4}, 4),
    ],
    ids=["types", "pattern", "underscore", "none", "both"],
)
def test_layers_slide_as_transformers_reads_each_spelling(
    kind: str, said: dict[str, Any], every: int, gemma3: Path, tmp_path: Path
) -> None:
    keys = ("layer_types", "sliding_window_pattern", "_sliding_window_pattern")
    folder = changed(gemma3, tmp_path / "m", dict.fromkeys(keys) | said, kind=kind)
    with open_checkpoint(folder) as source:
        full = [i for i, one in enumerate(model_spec(source).attentions) if one.window is None]
    assert full == [i for i in range(13) if (i + 1) % every == 0]
    if kind == "pt":
        model = reference(folder)
        assert [i for i, one in enumerate(model.config.layer_types) if one[0] == "f"] == full
        assert relative_l2(logits(folder), reference_logits(model, IDS)) <= 1e-5


@pytest.mark.parametrize("kind", FORMATS)
def test_a_pattern_at_odds_with_the_types_is_refused(
    kind: str, gemma3: Path, tmp_path: Path
) -> None:
    said = {"layer_types": pattern(13, 6), "sliding_window_pattern": 3}
    sentence = refusal(changed(gemma3, tmp_path / "m", said, kind=kind))
    assert "sliding_window_pattern = 3" in sentence and "layer_types" in sentence


# Shards -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FORMATS)
def test_a_stray_file_beside_the_shards_changes_nothing(
    kind: str, qwen3: Path, tmp_path: Path
) -> None:
    folder = changed(qwen3, tmp_path / "m", {}, kind=kind)
    alone = logits(folder)
    shards(folder)
    another = {EMBEDDING: torch.ones(VOCABULARY, 5), "model.strange.scales": torch.ones(3)}
    save_file(another, folder / "model.safetensors", metadata={"format": "mlx"})
    assert torch.equal(logits(folder), alone)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("case", ["one deleted", "stale index", "stale index beside one file"])
def test_a_shard_that_is_not_there_is_named_with_its_index(
    case: str, kind: str, qwen3: Path, tmp_path: Path
) -> None:
    folder = changed(qwen3, tmp_path / "m", {}, kind=kind)
    first, second = shards(folder)
    missing = second if case == "one deleted" else first
    if case == "one deleted":
        second.unlink()
    else:
        first.rename(folder / "model-00001-of-00003.safetensors")
    if case == "stale index beside one file":
        second.rename(folder / "model.safetensors")
    sentence = refusal(folder)
    assert missing.name in sentence and "model.safetensors.index.json" in sentence
    assert "is not there" in sentence


# What is no model ---------------------------------------------------------------------------------


def test_what_is_no_safetensors_file_has_a_sentence_of_its_own(qwen3: Path, tmp_path: Path) -> None:
    contents = {
        "other byte order": b"GGUF\0\0\0\3" + bytes(56),
        "old format": b"tjgg\1\0\0\0" + bytes(56),
        "4683071234 bytes was not fetched": POINTER,
        "empty": b"",
        "pickle": b"PK\3\4" + bytes(60),
    }
    for wanted, content in contents.items():
        path = tmp_path / "model.safetensors"
        path.write_bytes(content)
        assert wanted in refusal(path)
    shutil.copy(qwen3 / "config.json", tmp_path)
    (tmp_path / "model.safetensors").write_bytes(contents["other byte order"])
    assert "GGUF file under another name" in refusal(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    assert "weights are missing" in refusal(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(contents["pickle"])
    assert "pytorch_model.bin: this is a PyTorch pickle" in refusal(tmp_path)


# Ends of a turn -----------------------------------------------------------------------------------


def end_named(folder: Path, place: str, token: int, text: str) -> None:
    """Name one more end of a turn in one of the files that may do so."""
    if place == "tokenizer_config.json":
        said: dict[str, Any] = {"eos_token": text}
    else:
        said = {"eos_token_id": [5, token] if place == "generation_config.json" else token}
    path = folder / place
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | said), "utf-8")


def test_a_reply_stops_at_an_end_that_any_file_names(qwen3: Path, tmp_path: Path) -> None:
    with open_checkpoint(qwen3) as source:
        tokens = source.tokenizer.tokens
    limits = Sampling(temperature=0.0, max_tokens=12)
    with LiveEngine(Compute.FLOAT32) as engine:
        engine.load(qwen3, streams=1)
        whole = engine.ask("one two", limits).finished()
        at = next(i for i in range(3, 11) if whole.ids[i] not in (5, *whole.ids[:i]))
        end = whole.ids[at]
        for place in ("config.json", "generation_config.json", "tokenizer_config.json"):
            folder = changed(qwen3, tmp_path / place, {})
            end_named(folder, place, end, tokens[end])
            engine.load(folder, streams=1)
            found = engine.ask("one two", limits).finished()
            assert (found.ids, found.stop_reason) == (whole.ids[: at + 1], "end-of-turn")
            assert len(found.text) < len(whole.text) and whole.text.startswith(found.text)


def test_the_command_says_what_a_folder_lacks(qwen3: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for wanted in ("holds no model", "weights are missing", "was not fetched"):
        if wanted == "weights are missing":
            shutil.copy(qwen3 / "config.json", folder)
        if wanted == "was not fetched":
            (folder / "model.safetensors").write_bytes(POINTER)
        places = ["--data-directory", str(tmp_path / "d"), "--model", str(folder)]
        ended = subprocess.run(
            [sys.executable, "-m", "app", "ask", *places, "hi"],
            capture_output=True, check=False, cwd=ROOT, encoding="utf-8", timeout=60,
        )  # fmt: skip
        assert (ended.returncode, ended.stdout) == (1, "")
        assert wanted in ended.stderr and ended.stderr.count("\n") == 1
