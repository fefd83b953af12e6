"""Rows of logits: the best token, the cap, and candidates that a draw cannot tell from the row."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.sampling.keyed import DrawRule, draw
from kernels.checks import KernelShapeError
from kernels.draw.cases import CASES, DrawCase, build
from kernels.draw.launch import candidates, greedy
from kernels.draw.sizes import candidate_words
from tests.helpers.gpu.draw import ROOM, best, check, gathered

CPU = torch.device("cpu")


@pytest.mark.parametrize("case", [case for case in CASES if case.interpreted], ids=str)
def test_rows_of_logits_give_their_best_and_their_candidates(case: DrawCase) -> None:
    check(case, "cpu")


def test_the_lowest_id_wins_among_equals_and_both_zeros_are_equal() -> None:
    logits = torch.full((2, 5_000), -1.0)
    logits[0, 4_500], logits[0, 70] = 3.0, 3.0
    logits[1, 4_400], logits[1, 80] = 0.0, -0.0
    assert best(logits).tolist() == [70, 80]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_row_with_a_nan_has_no_best_token() -> None:
    logits = torch.zeros(3, 5_000)
    logits[1, 4_999], logits[2, 17] = torch.nan, torch.inf
    logits[1, 5] = torch.inf
    assert best(logits).tolist() == [0, -1, 17]


def test_a_row_of_nothing_but_excluded_tokens_has_the_first_one() -> None:
    assert best(torch.full((1, 40), -torch.inf)).tolist() == [0]


@pytest.mark.parametrize(
    "rule",
    [
        DrawRule(temperature=1.0, top_k=1_024, top_p=1.0, min_p=0.0, seed=7),
        DrawRule(temperature=0.7, top_k=40, top_p=0.95, min_p=0.05, seed=8),
        DrawRule(temperature=2.0, top_k=0, top_p=1.0, min_p=0.01, seed=9),
    ],
    ids=("top-k", "usual", "min-p"),
)
def test_a_draw_from_the_candidates_is_the_draw_from_the_row(rule: DrawRule) -> None:
    logits = build(DrawCase(rows=1, vocabulary=60_000), CPU, torch.Generator().manual_seed(4))
    found = gathered(logits)
    assert found.counts[0] <= ROOM
    ids = found.ids[0, : found.counts[0]].numpy()
    among = np.full(60_000, -np.inf, np.float32)
    among[ids] = found.values[0, : found.counts[0]].numpy()
    drawn = [draw(among, rule, position) for position in range(40)]
    assert drawn == [draw(logits[0].numpy(), rule, position) for position in range(40)]
    assert len(set(drawn)) > 1


def test_a_row_of_equals_has_more_candidates_than_room() -> None:
    assert gathered(torch.zeros(1, 20_000)).counts == [20_000]


def test_scratch_and_room_that_are_too_small_are_refused() -> None:
    logits, out = torch.zeros(1, 5_000), torch.zeros(1, dtype=torch.int32)
    with pytest.raises(KernelShapeError, match="keys are too few"):
        greedy(logits, torch.zeros(1, dtype=torch.int64), out)
    with pytest.raises(KernelShapeError, match="not read"):
        greedy(logits.double(), torch.zeros(9, dtype=torch.int64), out)
    ids = torch.zeros(1, ROOM, dtype=torch.int32)
    words = torch.zeros(candidate_words(1, 5_000), dtype=torch.int32)
    with pytest.raises(KernelShapeError, match="no room"):
        candidates(logits, ids[:, :9], ids[:, :9].float(), out, words)
    with pytest.raises(KernelShapeError, match="words are too few"):
        candidates(logits, ids, ids.float(), out, words[1:])
