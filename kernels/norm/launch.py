"""Launches of residual and norm: ``x += added; x *= scale; out = rms_norm(x) * weight``."""

from __future__ import annotations

from typing import Final

import torch

from kernels.checks import KernelShapeError
from kernels.dependent import dependent
from kernels.norm.kernel import norm_part_kernel, norm_prompt_kernel, norm_step_kernel
from kernels.packed.layout import BLOCK
from kernels.rows import QuantizedRows

WARP_COLUMNS: Final = 512
MOST_WARPS: Final = 16
PART_THREAD_COLUMNS: Final = 4
PART_WIDE: Final = 1024
"""Rows up to this width have four warps in a program, longer ones eight."""


def norm_step(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    eps: float,
    out: QuantizedRows | None,
    *,
    added: torch.Tensor | None = None,
    added_weight: torch.Tensor | None = None,
    added_eps: float | None = None,
    scale: float = 1.0,
    plain: torch.Tensor | None = None,
) -> None:
    """Bring the residual of generated rows up to date and write its norm.

    Args:
        x: [rows, columns] float32, rows contiguous; updated in place.
        weight: [columns] float32; None multiplies by nothing.
        out: the norm as codes, ``quantized()`` of it to the bit; None where not wanted.
        added: [rows, columns] float32 or bfloat16; its norm is added where ``added_weight``
            [columns] float32 is given, else it is added itself.
        added_eps: of that norm.
        scale: on the residual, after what is added.
        plain: [rows, columns] float32 that gets the norm as it is.

    Raises:
        KernelShapeError: shapes that do not belong together, or columns that are not whole blocks.
    """
    width = _checked(x, weight, added, added_weight, plain)
    if out is not None and (out.rows < len(x) or out.columns != x.shape[1] or out.columns % BLOCK):
        raise KernelShapeError(f"Codes of {out.rows} x {out.columns} are none of {list(x.shape)}.")
    codes = (None,) * 4 if out is None else (out.high, out.low, out.scales, out.sums)
    if added is None and scale == 1.0:
        _launch_parts(x, weight, eps, codes, plain, width)
        return
    norm_step_kernel[(len(x),)](
        x,
        added,
        added_weight,
        weight,
        plain,
        *codes,
        x.shape[1],
        x.stride(0),
        0 if added is None else added.stride(0),
        0 if plain is None else plain.stride(0),
        eps,
        0.0 if added_eps is None else added_eps,
        None if scale == 1.0 else scale,
        WIDTH=width,
        num_warps=_warps(width),
        **dependent(x.device),
    )


def norm_prompt(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    eps: float,
    out: torch.Tensor | None,
    *,
    added: torch.Tensor | None = None,
    added_weight: torch.Tensor | None = None,
    added_eps: float | None = None,
    scale: float = 1.0,
    plain: torch.Tensor | None = None,
) -> None:
    """The same for prompt rows: ``out`` is [rows, columns] bfloat16, rows contiguous."""
    width = _checked(x, weight, added, added_weight, plain)
    if out is not None and (out.shape != x.shape or out.stride(1) != 1):
        raise KernelShapeError(f"An output of {list(out.shape)} is none of {list(x.shape)}.")
    norm_prompt_kernel[(len(x),)](
        x,
        added,
        added_weight,
        weight,
        plain,
        out,
        x.shape[1],
        x.stride(0),
        0 if added is None else added.stride(0),
        0 if plain is None else plain.stride(0),
        0 if out is None else out.stride(0),
        eps,
        0.0 if added_eps is None else added_eps,
        None if scale == 1.0 else scale,
        WIDTH=width,
        num_warps=_warps(width),
    )


def _launch_parts(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    eps: float,
    codes: tuple[torch.Tensor | None, ...],
    plain: torch.Tensor | None,
    width: int,
) -> None:
    warps = 4 if width <= PART_WIDE else 8
    part = min(width, 32 * warps * PART_THREAD_COLUMNS)
    norm_part_kernel[(len(x), -(-x.shape[1] // part))](
        x,
        weight,
        plain,
        *codes,
        x.shape[1],
        x.stride(0),
        0 if plain is None else plain.stride(0),
        eps,
        WIDTH=width,
        PART=part,
        num_warps=warps,
        **dependent(x.device),
    )


def _checked(x: torch.Tensor, *others: torch.Tensor | None) -> int:
    """The tile's width for rows of ``x``."""
    columns = x.shape[1]
    for each in (x, *others):
        if each is None:
            continue
        if each.shape[-1] != columns or each.stride(-1) != 1:
            raise KernelShapeError(f"{list(each.shape)} does not go with rows of {columns}.")
        if each.dim() == 2 and len(each) < len(x):
            raise KernelShapeError(f"{len(each)} rows are too few for {len(x)}.")
    return max(BLOCK, 1 << (columns - 1).bit_length())


def _warps(width: int) -> int:
    return min(MOST_WARPS, max(1, width // WARP_COLUMNS))
