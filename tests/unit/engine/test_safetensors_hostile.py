"""Damaged and lying published checkpoints: a typed error each, and nothing stays behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.checkpoint.open import open_checkpoint
from engine.config import EngineConfig
from engine.errors import CheckpointError
from engine.loading.loader import CheckpointLoader
from engine.memory.ledger import Ledger
from engine.memory.pools import RAM
from engine.models import model_spec
from engine.protocol import Load
from tests.helpers.safetensors_damage import HEADER, LFS, NORM, SET, Case, Damage, Q
from tests.helpers.safetensors_edit import (
    ONE,
    Folder,
    fp8,
    mlx,
    one_file,
    two_files,
)
from tests.helpers.tiny_safetensors import bf16


def config_folder(folder: Folder) -> None:
    (folder.path / "config.json").unlink()
    (folder.path / "config.json").mkdir()


def mxfp4(folder: Folder, **tensors: Any) -> None:
    folder.config(quantization={"mode": "mxfp4"})
    folder.tensors(**tensors)


CONFIG_FILE: dict[str, Case] = {
    "no config": (lambda f: (f.path / "config.json").unlink(), ("tiny", "no config.json")),
    "config a folder": (config_folder, ("config.json",)),
    "config empty": (lambda f: (f.path / "config.json").write_bytes(b""), ("config.json", "empty")),
    "config not utf-8": (
        lambda f: (f.path / "config.json").write_bytes(b'{"a": "\xff"}'),
        ("config.json", "not UTF-8 at byte 7"),
    ),
    "config no JSON": (
        lambda f: (f.path / "config.json").write_text('{"a": 1,}'),
        ("config.json", "line 1, column 9"),
    ),
    "config an array": (
        lambda f: f.json("config.json", lambda _: [1, 2]),
        ("config.json", "an array of 2, not an object"),
    ),
    "config too large": (
        lambda f: f.config(words="x" * (5 << 20)),
        ("config.json", "at most 4194304"),
    ),
    "config of too many values": (
        lambda f: f.config(ids=list(range(200_000))),
        ("config.json", "values; at most 200000"),
    ),
    "config too deep": (
        lambda f: f.config(a=json.loads("[" * 20 + "]" * 20)),
        ("config.json", "more than 16 deep"),
    ),
    "config with a key twice": (
        lambda f: (f.path / "config.json").write_text('{"a": 1, "a": 2}'),
        ("config.json", "'a' twice"),
    ),
    "config with one key in two ways": (
        lambda f: f.config(**{"a.b": 1, "a": {"b": 2}}),
        ("config.json", "'a.b' twice"),
    ),
    "config with half a surrogate": (
        lambda f: f.config(a="\ud800"),
        ("config.json", "'a'", "no Unicode"),
    ),
    "config beyond 64 bits": (
        lambda f: f.config(hidden_size=10**30),
        ("config.json", "hidden_size", "1e+30", "whole number"),
    ),
    "config a link out": (lambda f: f.link_out("config.json"), ("config.json", "outside")),
    "config of LFS": (
        lambda f: (f.path / "config.json").write_bytes(LFS),
        ("config.json", "Git LFS pointer"),
    ),
    "packed by gptq": (
        lambda f: f.config(quantization_config={"quant_method": "gptq"}),
        ("config.json", "'gptq'", "fp8"),
    ),
    "packing a text": (
        lambda f: f.config(quantization_config="fp8"),
        ("config.json", "the text 'fp8'", "quantization_config"),
    ),
}
MLX: dict[str, Case] = {
    "7 bits": (
        lambda f: f.config(quantization={"bits": 7, "group_size": 64}),
        ("config.json", "7 bits", "2, 3, 4, 5, 6 and 8"),
    ),
    "groups of 48": (
        lambda f: f.config(quantization={"bits": 4, "group_size": 48}),
        ("config.json", "groups of 48"),
    ),
    "true bits": (
        lambda f: f.config(quantization={"bits": True, "group_size": 64}),
        ("config.json", "true bits"),
    ),
    "an unknown mode": (
        lambda f: f.config(quantization={"mode": "int4"}),
        ("config.json", "'int4'", "mxfp4"),
    ),
    "quantization a list": (
        lambda f: f.config(quantization=[4, 64]),
        ("config.json", "an array of 2"),
    ),
    "a module of 9 bits": (
        lambda f: f.config(quantization={"bits": 4, "group_size": 64, "m": {"bits": 9}}),
        ("config.json", "'m'", "9 bits"),
    ),
    "no scales": (lambda f: f.tensors(scales=None), (ONE, "'m.weight'", "no 'm.scales'")),
    "no biases": (lambda f: f.tensors(biases=None), (ONE, "'m.weight'", "no 'm.biases'")),
    "scales of whole numbers": (
        lambda f: f.tensors(scales=np.ones((4, 2), np.int32)),
        (ONE, "'m.scales'", "I32", "BF16"),
    ),
    "scales of too few rows": (
        lambda f: f.tensors(scales=np.ones((3, 2), np.float32)),
        (ONE, "'m.scales'", "[3, 2]", "[4, 2]"),
    ),
    "scales of three groups": (
        lambda f: f.tensors(scales=np.ones((4, 3), np.float32)),
        (ONE, "'m.weight'", "16 words and 3 scales", "4 bits in groups of 64"),
    ),
    "biases of another shape": (
        lambda f: f.tensors(biases=np.ones((2, 4), np.float32)),
        (ONE, "'m.biases'", "[2, 4]", "[4, 2]"),
    ),
    "codes of floats": (
        lambda f: f.tensors(weight=np.zeros((4, 16), np.float32)),
        (ONE, "'m.weight'", "F32", "U32"),
    ),
    "codes in one row": (
        lambda f: f.tensors(weight=np.zeros(16, np.uint32)),
        (ONE, "'m.weight'", "no matrix"),
    ),
    "a group that does not divide": (
        lambda f: f.tensors(weight=np.zeros((4, 15), np.uint32)),
        (ONE, "'m.weight'", "15 words", "nothing would fit"),
    ),
    "minima in a mode without": (
        lambda f: mxfp4(f, scales=np.ones((4, 4), np.uint8)),
        (ONE, "'m.biases'", "mxfp4"),
    ),
    "float scales in a mode of bytes": (
        lambda f: mxfp4(f, scales=np.ones((4, 4), np.float32), biases=None),
        (ONE, "'m.scales'", "F32", "U8"),
    ),
    "codes of a module that is declared whole": (
        lambda f: f.config(quantization={"bits": 4, "group_size": 64, "m": False}),
        (ONE, "'m.weight'", "does not say that it is packed"),
    ),
}
FP8: dict[str, Case] = {
    "fp8 without scales": (
        lambda f: f.tensors(weight_scale_inv=None),
        (ONE, "'m.weight'", "no 'm.weight_scale_inv'"),
    ),
    "fp8 scales of another shape": (
        lambda f: f.tensors(weight_scale_inv=np.ones((2, 2), np.float32)),
        (ONE, "'m.weight_scale_inv'", "[2, 2]", "[4, 200]", "[128, 128]"),
    ),
    "fp8 scales of whole numbers": (
        lambda f: f.tensors(weight_scale_inv=np.ones((1, 2), np.int64)),
        (ONE, "'m.weight_scale_inv'", "I64"),
    ),
    "fp8 in blocks of nothing": (
        lambda f: f.config(
            quantization_config={"quant_method": "fp8", "weight_block_size": [0, 1]}
        ),
        ("config.json", "an array of 2 as weight_block_size"),
    ),
    "fp8 in blocks of text": (
        lambda f: f.config(quantization_config={"quant_method": "fp8", "weight_block_size": "x"}),
        ("config.json", "the text 'x' as weight_block_size"),
    ),
}
MODEL: dict[str, Case] = {
    "a config that lies about the width": (
        lambda f: f.config(hidden_size=32),
        (ONE, "model.embed_tokens.weight", "(53, 24)", "32"),
    ),
    "a config with a layer too many": (
        lambda f: f.config(num_hidden_layers=3),
        (ONE, "model.layers.2", "no tensor"),
    ),
    "a config with a layer too few": (
        lambda f: f.config(num_hidden_layers=1),
        (ONE, "model.layers.1", "no place"),
    ),
    "a config of a billion layers": (
        lambda f: f.config(num_hidden_layers=10**9),
        ("config.json", "num_hidden_layers", str(10**9)),
    ),
    "a config of other heads": (
        lambda f: f.config(num_attention_heads=5, num_key_value_heads=5),
        (ONE, "q_proj.weight", "(30, 24)", "50"),
    ),
    "a config of no heads": (
        lambda f: f.config(num_attention_heads=0),
        ("config.json", "num_attention_heads", "0"),
    ),
    "a config of heads in words": (
        lambda f: f.config(num_attention_heads="three"),
        ("config.json", "num_attention_heads", "'three'"),
    ),
    "a config of a family that is unknown": (
        lambda f: f.config(model_type="nonesuch"),
        (ONE, "'nonesuch'", "llama"),
    ),
    "a config of no family": (
        lambda f: f.config(model_type=None, architectures=None),
        ("config.json", "model_type"),
    ),
    "an eps without end": (
        lambda f: f.config(rms_norm_eps=float("inf")),
        ("config.json", "rms_norm_eps", "inf"),
    ),
    "a tensor of another shape": (
        lambda f: f.entry(Q, shape=[24, 30]),
        (ONE, Q, "(24, 30)", "(30, 24)"),
    ),
    "a tensor of another name": (
        lambda f: f.header(lambda h: h.update({"model.strange": h.pop(NORM)})),
        (ONE, NORM),
    ),
}
GROUPS: tuple[tuple[Callable[[Path], Folder], dict[str, Case]], ...] = (
    (one_file, HEADER),
    (two_files, SET),
    (one_file, CONFIG_FILE),
    (mlx, MLX),
    (fp8, FP8),
    (one_file, MODEL),
)
CASES = [
    pytest.param(base, *case, id=name) for base, group in GROUPS for name, case in group.items()
]


def mapped(folder: Path) -> list[str]:
    """Files below a folder that this process has mapped."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return [line for line in lines if str(folder) in line]


def silent(_phase: str, _done: int, _total: int) -> None:
    """Take no notice of progress."""


def test_there_are_more_than_sixty_cases() -> None:
    assert len(CASES) == len({case.id for case in CASES}) > 100


@pytest.mark.parametrize(("base", "damage", "parts"), CASES)
def test_damage_is_told_by_file_tensor_and_numbers_and_leaves_nothing(
    tmp_path: Path, base: Callable[[Path], Folder], damage: Damage, parts: tuple[str, ...]
) -> None:
    folder = base(tmp_path / "tiny")
    damage(folder)
    ledger = Ledger({RAM: 1 << 40})
    config = EngineConfig(data_directory=tmp_path, threads=1)
    with pytest.raises(CheckpointError) as caught:
        CheckpointLoader(config, ledger).load(Load(request=1, path=str(folder.path)), silent)
    for part in parts:
        assert part in caught.value.sentence, caught.value.sentence
    assert len(caught.value.sentence) < 700
    assert mapped(tmp_path) == []
    assert all(pool.held_bytes == 0 for pool in ledger.census())
    ledger.close()


@pytest.mark.parametrize("base", [one_file, two_files])
def test_what_is_not_damaged_reads_as_a_model(
    tmp_path: Path, base: Callable[[Path], Folder]
) -> None:
    """The control: each case above fails for its damage alone."""
    with open_checkpoint(base(tmp_path / "tiny").path) as source:
        assert model_spec(source).hidden == 24
        assert len(mapped(tmp_path)) == len(source.files)


@pytest.mark.parametrize("base", [mlx, fp8])
def test_packed_modules_that_are_not_damaged_open(
    tmp_path: Path, base: Callable[[Path], Folder]
) -> None:
    folder = base(tmp_path / "tiny")
    with open_checkpoint(folder.path) as source:
        assert list(source.tensors) == ["m.weight"]
    folder.tensors(**({"scales": bf16(np.ones((4, 2)))} if base is mlx else {}))
    if base is mlx:
        with open_checkpoint(folder.path) as source:
            assert source.tensors["m.weight"].scales is not None
