"""Formats without blocks: f32, f16, bf16, f64 and the whole numbers i8 to i64.

    f32  4 bytes | f16  2 | bf16  2, the upper half of an f32 | f64  8 | i8 1, i16 2, i32 4, i64 8

All little-endian. f32, f16 and bf16 become float32 exactly; the others round to nearest.
"""

from __future__ import annotations

import torch

from kernels.quant.bits import aligned


def f32(b: torch.Tensor) -> torch.Tensor:
    """Decode f32: [element, bytes] uint8 to float32 [element, 1]."""
    return aligned(b).view(torch.float32).float()


def f16(b: torch.Tensor) -> torch.Tensor:
    """Decode f16: [element, bytes] uint8 to float32 [element, 1]."""
    return aligned(b).view(torch.float16).float()


def bf16(b: torch.Tensor) -> torch.Tensor:
    """Decode bf16: [element, bytes] uint8 to float32 [element, 1]."""
    return aligned(b).view(torch.bfloat16).float()


def f64(b: torch.Tensor) -> torch.Tensor:
    """Decode f64: [element, bytes] uint8 to float32 [element, 1]."""
    return aligned(b).view(torch.float64).float()


def i8(b: torch.Tensor) -> torch.Tensor:
    """Decode i8: [element, bytes] uint8 to float32 [element, 1]."""
    return aligned(b).view(torch.int8).float()


def i16(b: torch.Tensor) -> torch.Tensor:
    """Decode i16: [element, bytes] uint8 to float32 [element, 1]."""
    return aligned(b).view(torch.int16).float()


def i32(b: torch.Tensor) -> torch.Tensor:
    """Decode i32: [element, bytes] uint8 to float32 [element, 1]."""
    return aligned(b).view(torch.int32).float()


def i64(b: torch.Tensor) -> torch.Tensor:
    """Decode i64: [element, bytes] uint8 to float32 [element, 1]."""
    return aligned(b).view(torch.int64).float()
