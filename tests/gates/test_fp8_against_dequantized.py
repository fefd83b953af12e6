"""Block-scaled fp8 checkpoints give the logits of transformers over the same numbers in float32.

Every projection of a published Qwen checkpoint is stored in e4m3 with one scale a block of 128 by
128; the reference gets code times scale, computed here. Experts lie one by one, as such
checkpoints have them, or in stacks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from transformers import PreTrainedModel

from tests.helpers.checkpoints.shapes import ODD
from tests.helpers.checkpoints.variants import make, random_ids, reference_logits
from tests.helpers.lone_model import LoneModel, relative_l2

BLOCK = 128
LARGEST = 448.0
PLAIN = ("in_proj_a", "in_proj_b", "conv1d")
"""What published fp8 checkpoints leave in floats beside norms, routers and embeddings."""
LIMIT = 1e-4
WIDTHS = replace(ODD, hidden=200, expert=BLOCK)
"""Blocks at the edges are cut; experts are whole ones, so that gate and up come apart."""
Stored = dict[str, torch.Tensor]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("name", "stacked"),
    [("qwen3", False), ("qwen3_5", False), ("qwen3_5_moe", True), ("qwen3_next", False)],
)
def test_logits_are_those_of_code_times_scale(name: str, stacked: bool, tmp_path: Path) -> None:
    model = make(name, WIDTHS)
    ids = random_ids(20)
    exact = reference_logits(model, ids)
    _save(model, tmp_path, stacked=stacked)
    wanted = reference_logits(model, ids)
    with LoneModel(tmp_path, len(ids)) as lone:
        found = lone.all_logits(ids)
    assert relative_l2(found, wanted) < LIMIT
    assert relative_l2(found, exact) > 100 * LIMIT, "the control: fp8 shows"


@torch.no_grad()
def _save(model: PreTrainedModel, folder: Path, *, stacked: bool) -> None:
    """Write the folder; the model's own weights become what the codes stand for."""
    tensors: Stored = {}
    for name, weight in model.named_parameters():
        if weight.dim() == 3 and "experts" in name:
            tensors |= _experts(name, weight, stacked=stacked)
        elif weight.dim() == 2 and "proj" in name and not any(part in name for part in PLAIN):
            codes, scales = _packed(weight)
            tensors |= {name: codes, f"{name}_scale_inv": scales}
        else:
            tensors[name] = weight.clone()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads(model.config.to_json_string())
    config["quantization_config"] = {
        "quant_method": "fp8",
        "activation_scheme": "dynamic",
        "fmt": "e4m3",
        "weight_block_size": [BLOCK, BLOCK],
    }
    (folder / "config.json").write_text(json.dumps(config), "utf-8")


def _experts(name: str, stack: torch.Tensor, *, stacked: bool) -> Stored:
    packed = [_packed(weight) for weight in stack]
    if stacked:
        codes, scales = (torch.stack(part) for part in zip(*packed, strict=True))
        return {name: codes, f"{name}_scale_inv": scales}
    found: Stored = {}
    stem, _, kind = name.rpartition(".")
    parts = ("gate_proj", "up_proj") if kind == "gate_up_proj" else ("down_proj",)
    for expert, pair in enumerate(packed):
        for suffix, both in zip(("weight", "weight_scale_inv"), pair, strict=True):
            for part, rows in zip(parts, both.chunk(len(parts)), strict=True):
                found[f"{stem}.{expert}.{part}.{suffix}"] = rows.contiguous()
    return found


def _packed(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes and scales of a matrix, which becomes their product."""
    rows, columns = weight.shape
    tiles = (-(-rows // BLOCK), -(-columns // BLOCK))
    padded = torch.zeros(tiles[0] * BLOCK, tiles[1] * BLOCK)
    padded[:rows, :columns] = weight
    blocks = padded.view(tiles[0], BLOCK, tiles[1], BLOCK)
    scales = blocks.abs().amax((1, 3)).clamp(min=1e-12) / LARGEST
    codes = (blocks / scales[:, None, :, None]).to(torch.float8_e4m3fn)
    whole = (codes.float() * scales[:, None, :, None]).view_as(padded)
    weight.copy_(whole[:rows, :columns])
    return codes.view(padded.shape)[:rows, :columns].contiguous(), scales
