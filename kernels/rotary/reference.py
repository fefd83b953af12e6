"""What norm, rotation and storing of heads mean, in float64."""

from __future__ import annotations

import torch

FP8_LARGEST = 448.0


def turned(
    heads: torch.Tensor,
    positions: torch.Tensor,
    frequencies: torch.Tensor,
    magnitude: float,
    *,
    halves: bool,
) -> torch.Tensor:
    """Heads [rows, head, head_dim] turned by ``position * frequencies``, in float64.

    Args:
        frequencies: [pairs] float64, radians a position; 2 * pairs elements of a head rotate.
        halves: pairs are (p, p + pairs), else (2p, 2p + 1).
    """
    pairs = len(frequencies)
    angles = torch.outer(positions.double(), frequencies.double())[:, None]
    cosine, sine = angles.cos() * magnitude, angles.sin() * magnitude
    out = heads.double().clone()
    first, second = (
        (slice(0, pairs), slice(pairs, 2 * pairs))
        if halves
        else (slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2))
    )
    x, y = out[..., first].clone(), out[..., second].clone()
    out[..., first] = x * cosine - y * sine
    out[..., second] = y * cosine + x * sine
    return out


def stored_halves(rows: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Float32 rows as bfloat16 or float16: to nearest even, saturated, a NaN stays one."""
    largest = torch.finfo(dtype).max
    return rows.clamp(-largest, largest).to(dtype)


def stored_codes(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Float32 rows as FP8 codes (uint8) and scales of all but the last dimension.

    The scale is the largest magnitude / 448; a NaN is stored as 0, an infinity counts as the
    largest float32.
    """
    largest = rows.nan_to_num(nan=0.0).abs().amax(-1)
    largest = largest.clamp(max=torch.finfo(torch.float32).max)
    scales = largest / torch.full_like(largest, FP8_LARGEST)
    divided = (rows / scales.unsqueeze(-1)).nan_to_num(nan=0.0).clamp(-FP8_LARGEST, FP8_LARGEST)
    codes = divided.to(torch.float8_e4m3fn).view(torch.uint8)
    return codes.masked_fill((scales == 0).unsqueeze(-1), 0), scales
