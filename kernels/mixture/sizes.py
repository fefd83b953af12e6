"""How much scratch ordering pairs takes. No torch."""

from __future__ import annotations

from typing import Final

BLOCK_PAIRS: Final = 2048
"""Pairs that one program counts and places."""


def count_words(pairs: int, expert_count: int) -> int:
    """int32 words of ``order_pairs``' counts."""
    return -(-pairs // BLOCK_PAIRS) * expert_count
