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
