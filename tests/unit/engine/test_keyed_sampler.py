"""The keyed sampler draws from the right distribution, by its key alone, and cuts exactly."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import DeviceLost
from engine.sampling.keyed import DrawRule, Logits, derive_seed, draw, uniform


def rule(
    temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0, seed: int = 1
) -> DrawRule:
    return DrawRule(temperature, top_k, top_p, min_p, seed)


def gaussian(size: int, seed: int = 0, scale: float = 3.0) -> Logits:
    return (np.random.default_rng(seed).standard_normal(size) * scale).astype(np.float32)


def mixed(word: int) -> int:
    """splitmix64's output function, after Steele, Lea and Flood (2014), in plain integers."""
    word = ((word ^ word >> 30) * 0xBF58476D1CE4E5B9) % 2**64
    word = ((word ^ word >> 27) * 0x94D049BB133111EB) % 2**64
    return word ^ word >> 31


def plain_uniform(seed: int, position: int, token: int) -> float:
    golden = 0x9E3779B97F4A7C15
    key = mixed(seed % 2**64)
    key = mixed((key + (position + 1) * golden) % 2**64)
    word = mixed((key + (token + 1) * golden) % 2**64)
    return float((word // 2**12 + 0.5) / 2**52)


def plain_draw(logits: Logits, how: DrawRule, position: int) -> int:
    """The contract in the slowest and plainest form: sort everything, cut, score, choose."""
    order = sorted(
        (i for i in range(len(logits)) if logits[i] > -math.inf), key=lambda i: (-logits[i], i)
    )
    if how.top_k:
        order = order[: how.top_k]
    best = float(logits[order[0]])
    weights = [math.exp((float(logits[i]) - best) / how.temperature) for i in order]
    total, running, count = math.fsum(weights), 0.0, 0
    for weight in weights:
        running += weight
        count += 1
        if running >= how.top_p * total and how.top_p < 1.0:
            break
    kept = [i for i, weight in zip(order[:count], weights, strict=False) if weight >= how.min_p]
    scores = [
        float(logits[i]) / how.temperature
        - math.log(-math.log(plain_uniform(how.seed, position, i)))
        for i in kept
    ]
    return kept[scores.index(max(scores))]


RULES = st.builds(
    DrawRule,
    temperature=st.sampled_from([0.05, 0.7, 1.0, 3.0, 1e6]),
    top_k=st.sampled_from([0, 2, 7, 40, 100, 6000]),
    top_p=st.sampled_from([1.0, 0.999, 0.9, 0.3, 1e-6]),
    min_p=st.sampled_from([0.0, 0.02, 0.5, 0.99]),
    seed=st.integers(0, 2**63 - 1),
)


@settings(max_examples=100, deadline=None)
@given(
    how=RULES,
    size=st.sampled_from([1, 2, 63, 64, 65, 129, 1000, 5003]),
    content=st.integers(0, 2**32 - 1),
    position=st.integers(0, 200_000),
    rounded=st.booleans(),
)
def test_every_combination_of_cuts_equals_the_plain_form(
    how: DrawRule, size: int, content: int, position: int, rounded: bool
) -> None:
    """Rounded logits make many ties, so that the order by id matters."""
    logits = gaussian(size, content)
    if rounded:
        logits = np.round(logits)
    assert draw(logits, how, position) == plain_draw(logits, how, position)


def test_the_hash_is_the_plain_one_and_stays_inside_the_unit_interval() -> None:
    ids = np.array([0, 1, 49151, 262143], np.int64)
    for seed, position in [(0, 0), (1, 5), (2**63 - 1, 131071), (2**64 - 1, 2**31)]:
        found = uniform(seed, position, ids)
        assert found.tolist() == [plain_uniform(seed, position, int(i)) for i in ids]
    assert ((2**52 - 1) + 0.5) / 2**52 < 1.0


def test_u_is_uniform_over_tokens_positions_and_seeds() -> None:
    over_ids = uniform(3, 7, np.arange(40_000))
    over_positions = np.array([uniform(3, p, np.array([7]))[0] for p in range(4_000)])
    over_seeds = np.array([uniform(s, 3, np.array([7]))[0] for s in range(4_000)])
    for found in (over_ids, over_positions, over_seeds):
        counts = np.histogram(found, bins=50, range=(0.0, 1.0))[0]
        expected = len(found) / 50
        assert ((counts - expected) ** 2 / expected).sum() < 100.0
        assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 0.05


def test_draws_have_the_softmax_distribution() -> None:
    logits = np.log(np.array([0.5, 0.25, 0.15, 0.1])).astype(np.float32)
    found = [draw(logits, rule(), position) for position in range(8_000)]
    shares = np.bincount(found, minlength=4) / len(found)
    assert np.abs(shares - [0.5, 0.25, 0.15, 0.1]).max() < 0.02


@pytest.mark.parametrize(
    "how",
    [
        rule(temperature=0.0),
        rule(temperature=1e-7),
        rule(temperature=1e-38),
        rule(top_p=0.0),
        rule(min_p=1.0),
        rule(top_k=1),
    ],
)
def test_a_vanishing_temperature_or_cut_is_greedy_with_the_lowest_id_of_a_tie(
    how: DrawRule,
) -> None:
    logits = gaussian(1000)
    logits[[700, 300, 500]] = 50.0
    assert {draw(logits, how, position) for position in range(50)} == {300}


def test_a_nucleus_larger_than_the_first_guess_is_still_the_whole_nucleus() -> None:
    """Nearly equal logits: top-p 0.9 of 5,003 tokens is more than 512 of them."""
    logits = gaussian(5003, scale=0.01)
    how = rule(top_p=0.9)
    found = [draw(logits, how, position) for position in range(4)]
    assert found == [plain_draw(logits, how, position) for position in range(4)]


def test_top_k_zero_is_off_and_not_greedy() -> None:
    logits = np.zeros(100, np.float32)
    assert len({draw(logits, rule(seed=seed), 4) for seed in range(40)}) > 20


def test_an_enormous_temperature_is_nearly_uniform_and_valid() -> None:
    logits = gaussian(64)
    found = np.bincount([draw(logits, rule(1e6), p) for p in range(6400)], minlength=64)
    assert found.min() > 50
    assert found.max() < 160


@pytest.mark.parametrize(
    "how", [rule(), rule(top_k=3), rule(top_p=0.9), rule(min_p=0.1), rule(0.0)]
)
def test_a_suppressed_token_is_never_drawn(how: DrawRule) -> None:
    logits = np.full(5000, -np.inf, np.float32)
    logits[[17, 4999]] = [1.0, 0.9]
    assert {draw(logits, how, position) for position in range(60)} <= {17, 4999}


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize(
    "how", [rule(), rule(top_k=40), rule(top_p=0.9), rule(min_p=0.1), rule(0.0)]
)
def test_logits_that_are_no_numbers_are_an_error(how: DrawRule, bad: float) -> None:
    logits = gaussian(5000)
    logits[4321] = bad
    with pytest.raises(DeviceLost, match="no usable"):
        draw(logits, how, 0)


def test_nothing_left_to_draw_is_an_error() -> None:
    with pytest.raises(DeviceLost):
        draw(np.full(10, -np.inf, np.float32), rule(), 0)


def test_the_seed_and_the_position_change_the_draw() -> None:
    logits = np.zeros(50_000, np.float32)
    drawn = {
        (seed, position): draw(logits, rule(seed=seed), position)
        for seed in range(10)
        for position in range(10)
    }
    assert len(set(drawn.values())) > 95


def test_logits_are_only_read() -> None:
    logits = gaussian(5000)
    logits.flags.writeable = False
    for how in (rule(), rule(top_k=40), rule(top_p=0.9), rule(0.0)):
        assert 0 <= draw(logits, how, 3) < len(logits)


def test_a_derived_seed_depends_on_the_prompt_and_the_sibling_and_fits_any_json_reader() -> None:
    prompts = [np.array(ids, np.int32) for ids in ([1, 2, 3], [1, 2, 4], [1, 2])]
    seeds = [derive_seed(prompt, sibling) for prompt in prompts for sibling in range(3)]
    assert len(set(seeds)) == 9
    assert all(0 <= seed < 2**53 for seed in seeds)
    assert derive_seed(prompts[0], 1) == derive_seed(np.array([1, 2, 3], np.int32), 1)
