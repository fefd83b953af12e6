"""Rotary frequencies in float64: the plain rule and the scalings that checkpoints ask for.

A frequency is in radians a position; pair p of a head turns by ``position * frequency[p]``.
Pure mathematics, no torch and no file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Yarn:
    """How YaRN scales.

    A pair that turns more than ``beta_fast`` times within ``original_context`` positions is
    kept, one that turns less than ``beta_slow`` times is divided by ``factor``; a ramp lies
    between.

    Attributes:
        base: of the plain frequencies, above 1.
        extrapolation: share of the kept frequency where the ramp is 1; 1 in every known file.
        whole_pairs: the ramp begins and ends at whole pairs.
    """

    base: float
    factor: float
    original_context: int
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    extrapolation: float = 1.0
    whole_pairs: bool = True

    def turning_pair(self, turns: float, dims: int) -> float:
        """The (fractional) pair that turns ``turns`` times within the original context."""
        reach = math.log(self.original_context / (turns * 2.0 * math.pi))
        return dims * reach / (2.0 * math.log(self.base))


@dataclass(frozen=True, slots=True)
class Llama3:
    """How Llama 3.1 scales: by wavelength against the original context.

    Waves shorter than ``original_context / high`` are kept, those longer than
    ``original_context / low`` are stretched by ``factor``; between them the two are blended.
    """

    factor: float
    low: float
    high: float
    original_context: int


def plain(base: float, dims: int) -> tuple[float, ...]:
    """``base ** (-2p / dims)`` for each of the ``dims / 2`` pairs."""
    return tuple(base ** (-2.0 * pair / dims) for pair in range(dims // 2))


def linear(frequencies: Sequence[float], factor: float) -> tuple[float, ...]:
    """Positions stretched: every frequency divided by ``factor``."""
    return tuple(frequency / factor for frequency in frequencies)


def divided(frequencies: Sequence[float], divisors: Sequence[float]) -> tuple[float, ...]:
    """Each frequency divided by its own divisor: how GGUF stores the llama3 scaling."""
    return tuple(f / d for f, d in zip(frequencies, divisors, strict=True))


def llama3(frequencies: Sequence[float], rule: Llama3) -> tuple[float, ...]:
    """Llama 3.1's scaling; GGUF stores its result as divisors instead."""
    scaled = []
    for frequency in frequencies:
        waves = rule.original_context * frequency / (2.0 * math.pi)
        kept = min(max((waves - rule.low) / (rule.high - rule.low), 0.0), 1.0)
        scaled.append((1.0 - kept) * frequency / rule.factor + kept * frequency)
    return tuple(scaled)


def proportional(base: float, dims: int, share: float, factor: float) -> tuple[float, ...]:
    """The first ``share`` of a head's pairs turn as if all did; the others stand still."""
    turning = min(int(share * dims // 2), dims // 2)
    quick = linear(plain(base, dims)[:turning], factor)
    return quick + (0.0,) * (dims // 2 - turning)


def yarn(frequencies: Sequence[float], rule: Yarn) -> tuple[float, ...]:
    """YaRN (arXiv 2309.00071): quick pairs keep their frequency, slow ones are interpolated."""
    dims = 2 * len(frequencies)
    first = rule.turning_pair(rule.beta_fast, dims)
    last = rule.turning_pair(rule.beta_slow, dims)
    if rule.whole_pairs:
        first, last = math.floor(first), math.ceil(last)
    low, high = max(first, 0), min(last, dims - 1)
    width = max(high - low, 0.001)
    scaled = []
    for pair, frequency in enumerate(frequencies):
        ramp = min(max((pair - low) / width, 0.0), 1.0)
        kept = (1.0 - ramp) * rule.extrapolation
        scaled.append(frequency * kept + frequency / rule.factor * (1.0 - kept))
    return tuple(scaled)


def yarn_magnitude(factor: float, strength: float = 1.0) -> float:
    """YaRN's attention factor on cosine and sine where the file does not give one."""
    return 1.0 if factor <= 1.0 else 0.1 * strength * math.log(factor) + 1.0
