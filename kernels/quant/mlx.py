"""Codes of MLX's affine checkpoints: unsigned whole numbers of 2 to 8 bits.

    mlx2  4 elements in 1 byte | mlx3  8 in 3 | mlx4  2 in 1 | mlx5  8 in 5 | mlx6  4 in 3 | mlx8  1

A row is one stream of bits, lowest first: element i is bits [i * width, (i + 1) * width) of the
row's bytes; the blocks here are the shortest runs that end on a byte. The value of an element is
scale * code + minimum, and both are in tensors of their own, so what is decoded here is the code.
"""

from __future__ import annotations

import torch

from kernels.quant.bits import fields


def mlx2(b: torch.Tensor) -> torch.Tensor:
    """Codes of two bits: [block, bytes] uint8 to float32 [block, elements]."""
    return _codes(b, 2)


def mlx3(b: torch.Tensor) -> torch.Tensor:
    """Codes of three bits: [block, bytes] uint8 to float32 [block, elements]."""
    return _codes(b, 3)


def mlx4(b: torch.Tensor) -> torch.Tensor:
    """Codes of four bits: [block, bytes] uint8 to float32 [block, elements]."""
    return _codes(b, 4)


def mlx5(b: torch.Tensor) -> torch.Tensor:
    """Codes of five bits: [block, bytes] uint8 to float32 [block, elements]."""
    return _codes(b, 5)


def mlx6(b: torch.Tensor) -> torch.Tensor:
    """Codes of six bits: [block, bytes] uint8 to float32 [block, elements]."""
    return _codes(b, 6)


def mlx8(b: torch.Tensor) -> torch.Tensor:
    """Codes of eight bits: [block, bytes] uint8 to float32 [block, elements]."""
    return b.float()


def _codes(b: torch.Tensor, width: int) -> torch.Tensor:
    size = b.shape[1]
    words = b[:, 0].to(torch.int32 if size < 4 else torch.int64)
    for place in range(1, size):
        words = words | (b[:, place].to(words.dtype) << (8 * place))
    return fields(words, width, 8 * size // width).float()
