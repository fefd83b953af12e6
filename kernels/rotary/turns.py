"""Frequencies as fractions of a turn in 2**64ths, so that no position loses any of its angle."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

# floor(2**256 / (2 * pi)): of 1 / (2 pi) as many bits as no float64 frequency can tell apart.
_INVERSE_TAU: Final = Fraction(
    0x28BE60DB9391054A7F09D5F47D4D377036D8A5664F10E4107F9458EAF7AEF158, 1 << 256
)


def turns_of(frequencies: Sequence[float]) -> NDArray[np.int64]:
    """Radians a position to 2**64ths of a turn a position, to the nearest, whole turns dropped.

    The angle of position t is ``t * turns`` modulo 2**64: what wraps around are whole turns.
    """
    words = [round(Fraction(each) * _INVERSE_TAU * (1 << 64)) % (1 << 64) for each in frequencies]
    return np.array(words, np.uint64).view(np.int64)
