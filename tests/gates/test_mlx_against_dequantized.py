"""Quantized MLX checkpoints give the logits of their own dequantized weights.

mlx-lm quantizes and decodes; transformers computes what it decoded in float32. Every number of bits
and every size of group goes through some family, routers keep the 8 bits that mlx-lm gives them,
and one recipe mixes bits by layer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from tests.helpers.checkpoints.conversion import ToMlx, to_mlx
from tests.helpers.checkpoints.dequantized import dequantized_mlx, numbered
from tests.helpers.checkpoints.saving import save_published
from tests.helpers.checkpoints.shapes import BLOCKS_OF_64, BLOCKS_OF_256, Widths
from tests.helpers.checkpoints.variants import make, random_ids, reference_logits
from tests.helpers.lone_model import LoneModel, relative_l2

LIMIT = 1e-4
PROMPT_ROWS, ROWS = 270, 290


@dataclass(frozen=True)
class Asked:
    """A family, its widths, and what mlx-lm is asked for."""

    name: str
    bits: int | None
    group: int
    widths: Widths = BLOCKS_OF_64
    recipe: str | None = None


ASKED = {
    "llama, 4 bits by 128": Asked("llama", 4, 128, BLOCKS_OF_256),
    "llama, 3 and 6 bits": Asked("llama", None, 64, recipe="mixed_3_6"),
    "qwen3, 5 bits by 32": Asked("qwen3", 5, 32),
    "qwen3_5, 4 bits by 64": Asked("qwen3_5", 4, 64),
    "qwen3_5_moe, 6 bits by 64": Asked("qwen3_5_moe", 6, 64),
    "qwen3_next, 8 bits by 32": Asked("qwen3_next", 8, 32),
    "gemma3, 2 bits by 32": Asked("gemma3", 2, 32),
    "gemma4 per layer, 3 bits by 64": Asked("gemma4 per layer", 3, 64),
    "gemma4 dense, 4 bits by 32": Asked("gemma4 dense", 4, 32),
    "gemma4 experts, 4 bits by 64": Asked("gemma4 experts", 4, 64),
    "gemma4_unified, 8 bits by 64": Asked("gemma4_unified", 8, 64),
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """For each case a folder with the parts ``packed``, ``decoded`` and ``numbers``."""
    found = {}
    orders = []
    for title, asked in ASKED.items():
        folder = tmp_path_factory.mktemp("mlx")
        found[title] = folder
        save_published(asked.name, make(asked.name, asked.widths), folder / "saved")
        save_published(asked.name, numbered(asked.name, asked.widths), folder / "counted")
        packed = str(folder / "packed")
        orders += [
            ToMlx(str(folder / "saved"), packed, asked.bits, asked.group, asked.recipe),
            ToMlx(packed, str(folder / "decoded"), back=True),
            ToMlx(str(folder / "counted"), str(folder / "numbers")),
        ]
    to_mlx(orders)
    return found


@pytest.mark.parametrize("title", ASKED)
def test_logits_are_those_of_the_dequantized_weights(
    title: str, folders: Mapping[str, Path]
) -> None:
    """A prompt over two pages and the rows after it."""
    asked, folder = ASKED[title], folders[title]
    ids = random_ids(ROWS)
    reference = dequantized_mlx(asked.name, asked.widths, folder / "decoded", folder / "numbers")
    wanted = reference_logits(reference, ids)
    with LoneModel(folder / "packed", ROWS) as model:
        found = model.all_logits(ids[:PROMPT_ROWS])
        assert relative_l2(found, wanted[:PROMPT_ROWS]) <= LIMIT
        steps = torch.cat([model.step(token)[None].clone() for token in ids[PROMPT_ROWS:]])
        assert relative_l2(steps, wanted[PROMPT_ROWS:]) <= LIMIT


def test_the_cases_cover_every_number_of_bits_and_group_and_overrides(
    folders: Mapping[str, Path],
) -> None:
    assert {asked.bits for asked in ASKED.values()} == {None, 2, 3, 4, 5, 6, 8}
    assert {asked.group for asked in ASKED.values()} == {32, 64, 128}
    routers = json.loads((folders["qwen3_5_moe, 6 bits by 64"] / "packed/config.json").read_text())
    assert {"bits": 8, "group_size": 64} in routers["quantization"].values()


def test_weights_before_quantization_are_seen_as_others(folders: Mapping[str, Path]) -> None:
    """Control: the reference is of the decoded weights, not of those that were packed."""
    ids = random_ids(ROWS)
    before = reference_logits(make("qwen3", BLOCKS_OF_64), ids[:PROMPT_ROWS])
    with LoneModel(folders["qwen3, 5 bits by 32"] / "packed", ROWS) as model:
        assert relative_l2(model.all_logits(ids[:PROMPT_ROWS]), before) > 1e-2
