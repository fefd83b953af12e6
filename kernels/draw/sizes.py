"""How rows of logits are cut, and how much scratch that takes. No torch."""

from __future__ import annotations

from typing import Final

TILE: Final = 4096
"""Logits of one program."""
WANTED: Final = 1024
"""Candidates that are always found."""
MOST_MAXIMA: Final = 4096
MOST_VOCABULARY: Final = 1 << 20


def tile_count(vocabulary: int) -> int:
    """Programs of one row."""
    return -(-vocabulary // TILE)


def group_of(vocabulary: int) -> int:
    """Neighbouring logits that share one maximum: so many that there are 4,096 at most, or 4."""
    return max(4, 1 << (-(-vocabulary // MOST_MAXIMA) - 1).bit_length())


def maxima_count(vocabulary: int) -> int:
    """Maxima of one row, those of a last tile's empty part among them."""
    return tile_count(vocabulary) * TILE // group_of(vocabulary)


def candidate_words(rows: int, vocabulary: int) -> int:
    """int32 words of scratch that ``candidates`` takes: maxima, counts of tiles and a bound."""
    return rows * (maxima_count(vocabulary) + tile_count(vocabulary) + 1)
