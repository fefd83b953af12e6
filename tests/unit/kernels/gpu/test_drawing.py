"""What a draw reads of a step's logits on a GPU: candidates, and rows when asked for."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.gpu.drawing import DeviceLogits, find_candidates
from engine.gpu.names import BOUNDS, CANDIDATES
from engine.gpu.sizes import CANDIDATES as ROOM
from engine.gpu.sizes import candidate_room
from engine.gpu.workspace import Workspace
from engine.sampling.keyed import DrawRule, draw, draw_among
from kernels.draw.sizes import candidate_words


def found_in(logits: torch.Tensor) -> DeviceLogits:
    """What a step of these logits leaves."""
    rows, vocabulary = logits.shape
    sizes = {
        CANDIDATES: 4 * candidate_room(rows),
        BOUNDS: 4 * candidate_words(rows, vocabulary),
    }
    with Workspace(sizes, torch.device("cpu")) as scratch:
        find_candidates(logits, scratch)
        words = scratch.view(CANDIDATES, (candidate_room(rows),), torch.int32).clone()
    return DeviceLogits(logits, words, torch.clone)


@pytest.mark.parametrize("vocabulary", [300, 20_001])
def test_candidates_are_what_the_row_has_from_their_bound_on(vocabulary: int) -> None:
    logits = 4.0 * torch.randn(2, vocabulary, generator=torch.Generator().manual_seed(1))
    found = found_in(logits)
    for row in (0, 1):
        whole, high = found.whole(row), found.candidates(row)
        assert high is not None
        assert np.array_equal(whole, logits[row].numpy())
        assert np.array_equal(high.ids, np.flatnonzero(whole >= high.bound))
        assert np.array_equal(high.values, whole[high.ids])
        assert high.is_whole is (vocabulary == 300)
        rule = DrawRule(temperature=0.9, top_k=40, top_p=0.9, min_p=0.01, seed=row)
        assert draw_among(high, rule, 77) == draw(whole, rule, 77)
        high.values[:] = 0.0
        assert np.array_equal(found.whole(row), logits[row].numpy())


def test_a_row_with_more_equals_than_room_has_no_candidates() -> None:
    logits = torch.zeros(1, ROOM + 1)
    assert found_in(logits).candidates(0) is None
