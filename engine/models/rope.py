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
    """

    base: float
    factor: float
    original_context: int
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    extrapolation: float = 1.0

    def turning_pair(self, turns: float, dims: int) -> float:
        """The (fractional) pair that turns ``turns`` times within the original context."""
        reach = math.log(self.original_context / (turns * 2.0 * math.pi))
        return dims * reach / (2.0 * math.log(self.base))


def plain(base: float, dims: int) -> tuple[float, ...]:
    """``base ** (-2p / dims)`` for each of the ``dims / 2`` pairs."""
    return tuple(base ** (-2.0 * pair / dims) for pair in range(dims // 2))


def linear(frequencies: Sequence[float], factor: float) -> tuple[float, ...]:
    """Positions stretched: every frequency divided by ``factor``."""
    return tuple(frequency / factor for frequency in frequencies)


def divided(frequencies: Sequence[float], divisors: Sequence[float]) -> tuple[float, ...]:
    """Each frequency divided by its own divisor: how GGUF stores the llama3 scaling."""
    return tuple(f / d for f, d in zip(frequencies, divisors, strict=True))


def yarn(frequencies: Sequence[float], rule: Yarn) -> tuple[float, ...]:
    """YaRN (arXiv 2309.00071): quick pairs keep their frequency, slow ones are interpolated."""
    dims = 2 * len(frequencies)
    low = max(math.floor(rule.turning_pair(rule.beta_fast, dims)), 0)
    high = min(math.ceil(rule.turning_pair(rule.beta_slow, dims)), dims - 1)
    width = max(high - low, 0.001)
    scaled = []
    for pair, frequency in enumerate(frequencies):
        ramp = min(max((pair - low) / width, 0.0), 1.0)
        kept = (1.0 - ramp) * rule.extrapolation
        scaled.append(frequency * kept + frequency / rule.factor * (1.0 - kept))
    return tuple(scaled)


def yarn_magnitude(factor: float) -> float:
    """YaRN's attention factor on cosine and sine where the file does not give one."""
    return 1.0 if factor <= 1.0 else 0.1 * math.log(factor) + 1.0
