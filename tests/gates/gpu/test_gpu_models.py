"""Whole models on the GPU's kernels in Triton's interpreter: near float32, a row by itself.

The same is checked compiled, at more lengths and for every family, by ``python -m tests.bench
gpu_models`` on a card. Here the widths are the least that the kernels take, for a program of the
interpreter costs milliseconds.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import kernels.step_product.launch
from engine.cache.lane import Lane
from engine.checkpoint.open import open_checkpoint
from engine.checkpoint.source import CheckpointSource
from kernels.step_product.configuration import Configuration, dense_configuration
from tests.helpers.checkpoints.saving import save_published
from tests.helpers.checkpoints.shapes import Widths
from tests.helpers.checkpoints.variants import make, random_ids
from tests.helpers.gpu_checks import same_bits
from tests.helpers.gpu_model import GpuSide
from tests.helpers.native_model import TorchSide

LEAST = Widths(
    32, 32, head_dim=32, key_dim=16, value_dim=32, expert=32, per_layer=32, heads=2, kv_heads=1
)
ROWS, CUT = 66, 64
LIMIT = 4e-2
"""Of logits' relative L2; rows, products and pages are bfloat16."""


@pytest.fixture(scope="module", params=["qwen3_5"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model as its makers publish it."""
    found = tmp_path_factory.mktemp(request.param) / "published"
    save_published(request.param, make(request.param, LEAST), found)
    return found


@pytest.fixture(autouse=True)
def large_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows of a weight a program, which changes no bit and saves minutes here."""

    def chosen(weight_rows: int) -> Configuration:
        return replace(dense_configuration(weight_rows), tile=64)

    monkeypatch.setattr(kernels.step_product.launch, "dense_configuration", chosen)


def test_a_row_has_its_own_bits_in_any_cut_and_company(folder: Path) -> None:
    """One prompt whole and in two chunks, then its next row alone and beside another stream."""
    ids = random_ids(ROWS)
    with open_checkpoint(folder) as source:
        wanted = exact_rows(source, ids)
        with GpuSide(source, ROWS + 2, streams=2, lanes=3) as gpu:
            whole, cut, other = (gpu.lane() for _ in range(3))
            with whole, cut, other:
                first = read(gpu, whole, ids, [ROWS])
                assert same_bits(read(gpu, cut, ids, [CUT, ROWS]), first)
                assert not same_bits(read(gpu, other, ids[1:6], [5]), first)
                alone = step(gpu, [whole], 7)[0].clone()
                together = step(gpu, [cut, other], 7)
                assert same_bits(together[0], alone)
                assert not same_bits(together[1], alone)
    for found, exact in zip((first, alone), wanted, strict=True):
        assert bool(found.isfinite().all())
        assert float((found - exact).norm() / exact.norm()) <= LIMIT


def exact_rows(source: CheckpointSource, ids: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Float32's logits of the prompt's last row and of the row after it."""
    exact = TorchSide(source, ROWS + 2)
    with exact.lane() as lane:
        lane.extend(len(ids))
        last = exact.runner.prompt_chunk(lane, ids, 0)
        lane.extend(1)
        found = last, exact.runner.step([lane], [7], [len(ids)])[0].clone()
    exact.close()
    return found


def read(gpu: GpuSide, lane: Lane, ids: list[int], ends: list[int]) -> torch.Tensor:
    """The logits of a prompt's last row, cut at ``ends``."""
    first, found = 0, torch.empty(0)
    for end in ends:
        lane.extend(end - first)
        found = gpu.runner.prompt_chunk(lane, ids[first:end], first)
        first = end
    return found


def step(gpu: GpuSide, lanes: list[Lane], token: int) -> torch.Tensor:
    """One more row for each lane."""
    for lane in lanes:
        lane.extend(1)
    return gpu.runner.step(lanes, [token] * len(lanes), [lane.length - 1 for lane in lanes])
