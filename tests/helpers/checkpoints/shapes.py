"""The sizes of tiny checkpoints: odd ones, and ones whose rows quant blocks fit."""

from __future__ import annotations

from dataclasses import dataclass

VOCABULARY = 1000
CONTEXT = 4096
WINDOW = 96


@dataclass(frozen=True)
class Widths:
    """What all variants of one set of sizes share.

    Attributes:
        head_dim: of attention; a quarter of it is even, so that part of it can turn.
        key_dim, value_dim: of the recurrent layers' heads.
        expert: the inner width of one expert.
        per_layer: width of gemma4's per-layer inputs.
    """

    hidden: int
    feed_forward: int
    head_dim: int
    key_dim: int
    value_dim: int
    expert: int
    per_layer: int
    heads: int = 6
    kv_heads: int = 3


ODD = Widths(90, 116, head_dim=40, key_dim=12, value_dim=20, expert=38, per_layer=14)
"""No width is a power of two or fits a quant block."""
BLOCKS_OF_32 = Widths(96, 160, head_dim=64, key_dim=32, value_dim=32, expert=96, per_layer=32)
"""Every row is a multiple of 32: Q8_0, and MLX groups of 32."""
BLOCKS_OF_64 = Widths(192, 320, head_dim=64, key_dim=64, value_dim=64, expert=192, per_layer=64)
"""Every row is a multiple of 64: MLX groups of 32 and 64."""
BLOCKS_OF_256 = Widths(
    256,
    512,
    head_dim=128,
    key_dim=128,
    value_dim=128,
    expert=256,
    per_layer=256,
    heads=4,
    kv_heads=2,
)
"""Every row is a multiple of 256: the K-quants. Some configs want heads that divide the width."""
