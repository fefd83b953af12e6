"""Bytes of the scratch that prompts of gated delta rule layers take; no torch here."""

from __future__ import annotations

from typing import Final

BLOCK_ROWS: Final = 64
"""Rows of a block, which begins at a multiple of this in absolute positions."""
PIECE_ROWS: Final = 8192
"""Rows that are worked on at a time: the scratch holds no more."""
GATES: Final = 5
"""Numbers of a row and value head."""


def piece_blocks(rows: int) -> int:
    """Blocks of a piece, of a chunk of ``rows`` rows."""
    return -(-min(rows, PIECE_ROWS) // BLOCK_ROWS)


def prompt_bytes(rows: int, key_heads: int, value_heads: int, key_dim: int) -> int:
    """Bytes for chunks of up to ``rows`` rows: what is kept of a piece, a row and a head.

    Values, and what is read for them, lie in the output meanwhile.
    """
    key = 2 * 2 * key_heads * key_dim
    value = value_heads * (4 * GATES + 2 * 2 * BLOCK_ROWS)
    return piece_blocks(rows) * BLOCK_ROWS * (key + value)
