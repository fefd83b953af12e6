"""A draw from a row's high logits is the draw from the row, or asks for the row."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import DeviceLost
from engine.sampling.keyed import DrawRule, Logits, draw, draw_among
from engine.sampling.penalties import Penalties, PenaltyRule
from engine.sampling.rows import Candidates, WholeRows

SIZE = 3000

RULES = st.builds(
    DrawRule,
    temperature=st.sampled_from([0.0, 0.05, 0.7, 1.0, 3.0, 1e6]),
    top_k=st.sampled_from([0, 1, 2, 7, 40, 100, 101, 6000]),
    top_p=st.sampled_from([1.0, 0.999, 0.9, 0.3, 0.0]),
    min_p=st.sampled_from([0.0, 0.02, 0.5, 0.99, 1.0]),
    seed=st.integers(0, 2**63 - 1),
)
PENALTIES = st.builds(
    PenaltyRule,
    repetition=st.sampled_from([1.0, 1.3]),
    presence=st.sampled_from([0.0, 0.5, 90.0]),
    frequency=st.sampled_from([0.0, 0.4]),
)


def row(content: int, *, rounded: bool) -> Logits:
    logits = (np.random.default_rng(content).standard_normal(SIZE) * 3.0).astype(np.float32)
    return np.round(logits) if rounded else logits


def high(logits: Logits, count: int) -> Candidates:
    """The ``count`` highest, and all that equal the lowest of them."""
    bound = float(np.sort(logits)[-count])
    ids = np.flatnonzero(logits >= bound)
    return Candidates(ids, logits[ids].copy(), bound, is_whole=len(ids) == len(logits))


@settings(max_examples=300, deadline=None)
@given(
    how=RULES,
    rule=PENALTIES,
    content=st.integers(0, 2**32 - 1),
    count=st.sampled_from([1, 3, 100, SIZE]),
    rounded=st.booleans(),
)
def test_candidates_give_what_the_row_gives_or_ask_for_it(
    how: DrawRule, rule: PenaltyRule, content: int, count: int, rounded: bool
) -> None:
    """Rounded logits make many ties; the content says the position too."""
    logits, position = row(content, rounded=rounded), content % 200_000
    ranked = np.argsort(-logits, kind="stable")
    said, hidden = [*ranked[:3], 5, 6, 6], [int(ranked[1]), 7]
    candidates = high(logits, count)
    penalties = Penalties(rule, [int(ranked[0])], hidden)
    for token in said:
        penalties.count(int(token))
    penalties.apply(candidates.values, candidates.ids)
    penalties.apply(logits)
    assert np.array_equal(candidates.values, logits[candidates.ids])
    found = draw_among(candidates, how, position)
    if found is not None:
        assert found == draw(logits, how, position)
    else:
        assert not candidates.is_whole


@pytest.mark.parametrize(
    ("how", "decided"),
    [
        (DrawRule(0.0, 0, 1.0, 0.0, 1), True),
        (DrawRule(1.0, 40, 0.9, 0.05, 1), True),
        (DrawRule(1.0, 100, 1.0, 0.0, 1), True),
        (DrawRule(1.0, 101, 1.0, 0.0, 1), False),
        (DrawRule(1.0, 0, 1.0, 0.5, 1), True),
        (DrawRule(1.0, 0, 1.0, 1e-9, 1), False),
        (DrawRule(1.0, 0, 0.9, 0.5, 1), False),
        (DrawRule(1.0, 0, 1.0, 0.0, 1), False),
    ],
)
def test_a_hundred_candidates_decide_what_they_can(how: DrawRule, decided: bool) -> None:
    logits = row(3, rounded=False)
    found = draw_among(high(logits, 100), how, 9)
    assert found == (draw(logits, how, 9) if decided else None)


def test_a_logit_that_was_lowered_below_the_bound_counts_no_more() -> None:
    logits = row(4, rounded=False)
    candidates, top = high(logits, 10), DrawRule(1.0, 10, 1.0, 0.0, 1)
    assert draw_among(candidates, top, 3) == draw(logits, top, 3)
    candidates.values[2] = candidates.bound - 1.0
    assert draw_among(candidates, top, 3) is None
    nine = DrawRule(1.0, 9, 1.0, 0.0, 1)
    logits[candidates.ids[2]] = candidates.values[2]
    assert draw_among(candidates, nine, 3) == draw(logits, nine, 3)


def test_candidates_that_are_all_excluded_ask_for_the_row() -> None:
    candidates = high(row(5, rounded=False), 4)
    candidates.values[:] = -math.inf
    assert draw_among(candidates, DrawRule(0.0, 0, 1.0, 0.0, 1), 0) is None
    assert draw_among(candidates, DrawRule(1.0, 4, 1.0, 0.0, 1), 0) is None


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("top_k", [0, 1, 40])
def test_candidates_that_are_no_numbers_are_an_error(bad: float, top_k: int) -> None:
    candidates = high(row(6, rounded=False), 50)
    candidates.values[7] = bad
    with pytest.raises(DeviceLost, match="no usable"):
        draw_among(candidates, DrawRule(1.0, top_k, 1.0, 0.0, 1), 0)


@pytest.mark.parametrize(
    ("rule", "lowers"),
    [
        (PenaltyRule(), True),
        (PenaltyRule(1.2, 0.5, 0.1), True),
        (PenaltyRule(repetition=0.9), False),
        (PenaltyRule(presence=-0.1), False),
        (PenaltyRule(frequency=-0.1), False),
    ],
)
def test_a_penalty_below_neutral_raises_logits(rule: PenaltyRule, lowers: bool) -> None:
    assert Penalties(rule, [], []).only_lower is lowers


def test_rows_on_the_host_have_no_candidates_and_are_themselves() -> None:
    logits = np.zeros((2, 5), np.float32)
    rows = WholeRows(logits)
    assert rows.candidates(1) is None
    rows.whole(1)[3] = 2.0
    assert logits[1, 3] == 2.0
