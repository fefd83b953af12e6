"""Rotary frequencies in float64: the plain rule and the scalings that checkpoints ask for.

A frequency is in radians a position; pair p of a head turns by ``position * frequency[p]``.
Pure mathematics, no torch and no file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def plain(base: float, dims: int) -> tuple[float, ...]:
    """``base ** (-2p / dims)`` for each of the ``dims / 2`` pairs."""
    return tuple(base ** (-2.0 * pair / dims) for pair in range(dims // 2))


def linear(frequencies: Sequence[float], factor: float) -> tuple[float, ...]:
    """Positions stretched: every frequency divided by ``factor``."""
    return tuple(frequency / factor for frequency in frequencies)


def divided(frequencies: Sequence[float], divisors: Sequence[float]) -> tuple[float, ...]:
    """Each frequency divided by its own divisor: how GGUF stores the llama3 scaling."""
    return tuple(f / d for f, d in zip(frequencies, divisors, strict=True))


def yarn(
    frequencies: Sequence[float],
    *,
    base: float,
    factor: float,
    original_context: int,
    beta_fast: float,
    beta_slow: float,
    extrapolation: float,
) -> tuple[float, ...]:
    """YaRN (arXiv 2309.00071): quick pairs keep their frequency, slow ones are interpolated.

    A pair that turns more than ``beta_fast`` times within ``original_context`` is kept, one
    that turns less than ``beta_slow`` times is divided by ``factor``; a ramp lies between.

    Args:
        extrapolation: share of the kept frequency where the ramp is 1; 1 in every known file.
    """
    dims = 2 * len(frequencies)
    low = max(math.floor(_turning_dim(beta_fast, dims, base, original_context)), 0)
    high = min(math.ceil(_turning_dim(beta_slow, dims, base, original_context)), dims - 1)
    width = max(high - low, 0.001)
    scaled = []
    for pair, frequency in enumerate(frequencies):
        ramp = min(max((pair - low) / width, 0.0), 1.0)
        kept = (1.0 - ramp) * extrapolation
        scaled.append(frequency * kept + frequency / factor * (1.0 - kept))
    return tuple(scaled)


def yarn_magnitude(factor: float) -> float:
    """YaRN's attention factor on cosine and sine where the file does not give one."""
    return 1.0 if factor <= 1.0 else 0.1 * math.log(factor) + 1.0


def _turning_dim(turns: float, dims: int, base: float, context: int) -> float:
    """The (fractional) pair index that turns ``turns`` times within ``context`` positions."""
    return dims * math.log(context / (turns * 2.0 * math.pi)) / (2.0 * math.log(base))
