"""Attention of a prompt chunk: right against float64, the same bits however a prompt is cut."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.forward.attention import attend, row_blocks
from engine.forward.pages import LayerPages
from kernels.checks import KernelShapeError
from kernels.pages import Pages
from kernels.prompt_attention import launch
from kernels.prompt_attention.cases import CASES, Case, Inputs, build
from kernels.prompt_attention.launch import LARGE, SMALL, Tiles, prompt_attention
from tests.helpers.gpu.prompt_attention import check, expected, relative_error, rows_of, run

CPU = torch.device("cpu")
CHUNK = Case(2, 1, 32, 60, 80)


def inputs_of(case: Case = CHUNK) -> Inputs:
    return build(case, CPU, torch.Generator().manual_seed(3))


@pytest.mark.parametrize("case", [case for case in CASES if case.interpreted], ids=str)
def test_a_row_is_right_and_depends_on_nothing_but_its_own_keys(case: Case) -> None:
    check(case, CPU)


@pytest.mark.parametrize("window", [None, 100])
def test_the_reference_is_what_the_engine_computes_without_a_gpu(window: int | None) -> None:
    case = Case(4, 2, 32, 200, 90, torch.float16, window=window)
    inputs = inputs_of(case)
    table = np.asarray(inputs.table, dtype=np.int32)
    query = inputs.query.float().view(90, 2, 2, 32).permute(1, 0, 2, 3).reshape(2, 180, 32)
    blocks = row_blocks(table, range(200, 290), window, 2)
    mixed = attend(query.contiguous(), LayerPages(inputs.pages.stored), blocks, case.scale)
    by_row = mixed.view(2, 90, 2, 32).permute(1, 0, 2, 3).reshape(90, 128)
    assert relative_error(by_row, expected(case, inputs)) < 1e-5


def test_tiles_of_other_rows_change_no_bit_and_of_other_keys_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = replace(CHUNK, window=70)
    inputs = inputs_of(case)
    wide = run(case, inputs)
    monkeypatch.setattr(launch, "SMALL", {64: Tiles(32, SMALL[64].keys, 4, 2)})
    assert torch.equal(run(case, inputs), wide)
    monkeypatch.setattr(launch, "SMALL", {64: Tiles(32, 16, 4, 2)})
    assert not torch.equal(run(case, inputs), wide)


@pytest.mark.parametrize("side", [0, 1])
def test_a_key_changes_the_rows_from_its_own_on_and_none_before(side: int) -> None:
    inputs = inputs_of()
    before = run(CHUNK, inputs)
    stored = inputs.pages.stored.clone()
    stored[int(inputs.table[0]), side, 0, 90] += 1
    after = run(CHUNK, replace(inputs, pages=Pages(stored, None)))
    assert torch.equal(after[:30], before[:30])
    assert bool((after[30:] != before[30:]).any(1).all())


def test_an_image_is_seen_whole_by_its_rows_and_by_no_row_before() -> None:
    inputs = inputs_of()
    ends = torch.arange(60, 140, dtype=torch.int32)
    causal = run(CHUNK, inputs)
    assert torch.equal(run(CHUNK, replace(inputs, block_ends=ends)), causal)
    ends[10:50] = 60 + 49
    found = run(CHUNK, replace(inputs, block_ends=ends))
    changed = (found != causal).any(1)
    assert changed.nonzero().flatten().tolist() == list(range(10, 49))


def test_a_window_that_holds_all_keys_changes_no_bit_and_a_narrower_one_does() -> None:
    inputs = inputs_of()
    whole = run(CHUNK, inputs)
    assert torch.equal(run(replace(CHUNK, window=140), inputs), whole)
    narrow = run(replace(CHUNK, window=139), inputs)
    assert torch.equal(narrow[:-1], whole[:-1])
    assert not torch.equal(narrow[-1], whole[-1])


def test_there_are_tiles_for_every_head_dim() -> None:
    assert set(LARGE) == set(SMALL) == {64, 128, 256, 512}
    assert all(256 % tiles.keys == 0 for table in (LARGE, SMALL) for tiles in table.values())


@pytest.mark.parametrize(
    "change",
    [
        {"query": torch.zeros(80, 2, 32)},
        {"query": torch.zeros(80, 2, 16, dtype=torch.bfloat16)},
        {"table": torch.zeros(2, dtype=torch.int64)},
        {"gate": torch.zeros(80, 63, dtype=torch.bfloat16)},
        {"block_ends": torch.zeros(79, dtype=torch.int32)},
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(change: dict[str, torch.Tensor]) -> None:
    with pytest.raises(KernelShapeError):
        run(CHUNK, replace(inputs_of(), **change))  # type: ignore[arg-type]


def test_windows_without_the_row_and_results_of_another_shape_are_refused() -> None:
    inputs = rows_of(inputs_of(), 0, 1)
    with pytest.raises(KernelShapeError):
        run(replace(CHUNK, window=0), inputs)
    with pytest.raises(KernelShapeError):
        prompt_attention(
            inputs.query, inputs.pages.stored, None, inputs.table, 60,
            torch.zeros(1, 65, dtype=torch.bfloat16), window=None, scale=0.1,
        )  # fmt: skip
