"""Rotary frequencies follow the rules that checkpoints name."""

from __future__ import annotations

import itertools
import math

import pytest

from engine.models import rope


def yarn(frequencies: tuple[float, ...], factor: float) -> tuple[float, ...]:
    return rope.yarn(frequencies, rope.Yarn(base=10000.0, factor=factor, original_context=512))


def test_plain_frequencies_fall_from_one_by_a_constant_ratio() -> None:
    found = rope.plain(10000.0, 20)
    assert len(found) == 10
    assert found[0] == 1.0
    ratios = [second / first for first, second in itertools.pairwise(found)]
    assert ratios == pytest.approx([10000.0 ** (-2 / 20)] * 9)


def test_linear_scaling_stretches_every_position_alike() -> None:
    assert rope.linear((1.0, 0.5), 4.0) == (0.25, 0.125)


def test_divisors_apply_pair_by_pair_and_must_be_as_many() -> None:
    assert rope.divided((1.0, 0.5), (1.0, 8.0)) == (1.0, 0.0625)
    with pytest.raises(ValueError, match="argument 2"):
        rope.divided((1.0, 0.5), (1.0,))


def test_yarn_keeps_quick_pairs_and_interpolates_slow_ones() -> None:
    """A pair that turns more than 32 times within the context is kept, under once is divided."""
    plain = rope.plain(10000.0, 64)
    scaled = yarn(plain, 8.0)
    shares = [new / old for new, old in zip(scaled, plain, strict=True)]
    turns = [frequency * 512 / (2 * math.pi) for frequency in plain]
    assert shares == sorted(shares, reverse=True)
    assert all(share == 1.0 for share, n in zip(shares, turns, strict=True) if n > 45)
    assert all(
        share == pytest.approx(0.125) for share, n in zip(shares, turns, strict=True) if n < 0.75
    )
    assert any(0.125 < share < 1.0 for share in shares)


def test_yarn_by_a_factor_of_one_changes_nothing() -> None:
    plain = rope.plain(10000.0, 20)
    assert yarn(plain, 1.0) == pytest.approx(plain)
    assert rope.yarn_magnitude(1.0) == 1.0
    assert rope.yarn_magnitude(math.e) == pytest.approx(1.1)


def test_llama3_keeps_short_waves_stretches_long_ones_and_blends_between() -> None:
    """By wavelength: below 512 / 4 kept, above 512 / 1 stretched eight times."""
    rule = rope.Llama3(factor=8.0, low=1.0, high=4.0, original_context=512)

    def share(wavelength: float) -> float:
        frequency = 2 * math.pi / wavelength
        return rope.llama3((frequency,), rule)[0] / frequency

    assert [share(wave) for wave in (7.0, 100.0, 128.0)] == pytest.approx([1.0, 1.0, 1.0])
    assert [share(wave) for wave in (512.0, 600.0, 1e6)] == pytest.approx([0.125] * 3)
    assert share(512 / 2.5) == pytest.approx(0.5 * 0.125 + 0.5)


def test_proportional_pairs_turn_as_if_all_did_and_the_others_stand() -> None:
    found = rope.proportional(1e6, 512, 0.25, 1.0)
    assert len(found) == 256
    assert found[:64] == rope.plain(1e6, 512)[:64]
    assert set(found[64:]) == {0.0}
    assert rope.proportional(1e6, 16, 0.25, 2.0)[:2] == (0.5, 0.5 * 1e6 ** (-2 / 16))
    assert rope.proportional(1e6, 16, 0.2, 1.0)[1:] == (0.0,) * 7
    assert rope.proportional(1e6, 16, 1e30, 1.0) == rope.plain(1e6, 16)


def test_yarn_may_begin_and_end_between_pairs() -> None:
    plain = rope.plain(10000.0, 64)
    whole = rope.Yarn(base=10000.0, factor=4.0, original_context=512)
    between = rope.Yarn(base=10000.0, factor=4.0, original_context=512, whole_pairs=False)
    first, last = whole.turning_pair(32.0, 64), whole.turning_pair(1.0, 64)
    for pair, (frequency, scaled) in enumerate(zip(plain, rope.yarn(plain, between), strict=True)):
        ramp = min(max((pair - first) / (last - first), 0.0), 1.0)
        assert scaled == pytest.approx(frequency * (1 - ramp) + frequency / 4 * ramp)
    assert rope.yarn(plain, whole) != rope.yarn(plain, between)


def test_yarns_magnitude_grows_with_its_strength() -> None:
    assert rope.yarn_magnitude(math.e, 0.5) == pytest.approx(1.05)
    assert rope.yarn_magnitude(0.5, 9.0) == 1.0
