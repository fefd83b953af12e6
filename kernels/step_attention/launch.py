"""Launches attention of generated rows; see ``step_attention``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

from kernels.checks import KernelShapeError
from kernels.dependent import dependent
from kernels.device import KIB, gpu_facts
from kernels.pages import FP8_LOWEST, PAGE_SLOTS, Pages
from kernels.rows import MOST_ROWS, QuantizedRows
from kernels.step_attention.kernel import combine_parts, mix_part
from kernels.step_attention.sizes import part_count, partial_floats


@dataclass(frozen=True, slots=True)
class Launch:
    """How the first kernel is launched: keys of a unit, warps, stages of the pipeline."""

    unit: int
    warps: int
    stages: int


LARGE: Final = {
    64: Launch(64, 4, 3),
    128: Launch(64, 4, 3),
    256: Launch(64, 4, 2),
    512: Launch(64, 8, 2),
}
"""By head_dim's next power of two, for processors with 227 KiB of shared memory."""

SMALL: Final = {
    64: Launch(64, 4, 3),
    128: Launch(64, 4, 2),
    256: Launch(32, 4, 2),
    512: Launch(16, 8, 2),
}
"""For those with 99 KiB, and for the interpreter."""

LARGE_BYTES: Final = 227 * KIB
COMBINE_WARPS: Final = 4


def step_attention(
    query: torch.Tensor,
    stored: torch.Tensor,
    scales: torch.Tensor | None,
    tables: torch.Tensor,
    positions: torch.Tensor,
    partials: torch.Tensor,
    out: QuantizedRows,
    *,
    window: int | None,
    scale: float,
    gate: torch.Tensor | None = None,
    cap: float | None = None,
) -> None:
    """Attend from each row to its lane's keys up to its own position, which is in its page.

    Args:
        query: [rows, heads, head_dim] float32, the last dimension contiguous.
        stored, scales: the layer's pages; see ``kernels.pages.Pages``.
        tables: [rows, most pages] int32, page ids of each row's lane; -1 where it holds none.
        positions: [rows] int32. Like ``tables`` written by no kernel of the same chain: both are
            read before those have ended.
        partials: float32 scratch, ``partial_floats`` long.
        out: [rows, heads * head_dim].
        window: positions that a row sees, its own included; None for all.
        scale: multiplies the scores.
        gate: [rows, heads * head_dim] float32; its sigmoid multiplies the result.
        cap: scores become ``cap * tanh(score / cap)``.

    Raises KernelShapeError.
    """
    rows, heads, head_dim = query.shape
    pages = Pages(stored, scales)
    _check(query, pages, tables, positions, partials, out)
    _check_rest(query, window, scale, gate)
    parts, wide = part_count(pages.kv_heads), _power_of_two(max(head_dim, 32))
    shape, most_keys = launch_of(query.device, max(wide, 64)), tables.shape[1] * PAGE_SLOTS
    row_floats = partial_floats(1, heads, head_dim, pages.kv_heads)
    chain = dependent(query.device)
    group, coded = heads // pages.kv_heads, scales is not None
    mix_part[rows, pages.kv_heads, parts](
        query,
        query.stride(0),
        query.stride(1),
        stored,
        *stored.stride()[:3],
        stored if scales is None else scales,
        *pages.scale_strides(),
        tables,
        tables.stride(0),
        most_keys,
        positions,
        partials,
        row_floats,
        window or 0,
        scale,
        cap or 0.0,
        HEADS=heads,
        GROUP=group,
        D=head_dim,
        WIDE=wide,
        TILE_HEADS=max(16, _power_of_two(group)),
        UNIT=shape.unit,
        PARTS=parts,
        WINDOWED=window is not None,
        CODED=coded,
        NATIVE=coded and reads_e4m3(query.device),
        CAPPED=cap is not None,
        TWIN=query.device.type == "cpu",
        num_warps=shape.warps,
        num_stages=shape.stages,
        **chain,
    )
    combine_parts[rows, heads * head_dim // 32](
        partials,
        row_floats,
        positions,
        most_keys,
        query if gate is None else gate,
        0 if gate is None else gate.stride(0),
        out.high,
        out.low,
        out.scales,
        out.sums,
        window or 0,
        HEADS=heads,
        D=head_dim,
        UNIT=shape.unit,
        PARTS=parts,
        PARTS_WIDE=_power_of_two(parts),
        WINDOWED=window is not None,
        GATED=gate is not None,
        num_warps=COMBINE_WARPS,
        **chain,
    )


def launch_of(device: torch.device, wide: int) -> Launch:
    """The launch for a head_dim's next power of two, by the device's shared memory."""
    if device.type != "cuda":
        return SMALL[wide]
    return (LARGE if gpu_facts(device.index).shared_bytes >= LARGE_BYTES else SMALL)[wide]


def reads_e4m3(device: torch.device) -> bool:
    """Whether the device turns e4m3 into fp16 itself."""
    return device.type == "cuda" and gpu_facts(device.index).capability >= FP8_LOWEST


def _check(
    query: torch.Tensor,
    pages: Pages,
    tables: torch.Tensor,
    positions: torch.Tensor,
    partials: torch.Tensor,
    out: QuantizedRows,
) -> None:
    rows, heads, head_dim = query.shape
    if query.dtype is not torch.float32 or query.stride(2) != 1:
        raise KernelShapeError("Queries are float32, each head's elements contiguous.")
    if not 1 <= rows <= MOST_ROWS or head_dim != pages.head_dim or heads % pages.kv_heads:
        raise KernelShapeError(
            f"{rows} rows of {heads} x {head_dim} do not fit {pages.kv_heads} x {pages.head_dim}."
        )
    if heads * head_dim % 32 or head_dim % 8 or head_dim > max(LARGE):
        raise KernelShapeError(f"{heads} heads of {head_dim} are not multiples of 32 up to 512.")
    if positions.shape != (rows,) or tables.shape[:1] != (rows,) or tables.stride(1) != 1:
        raise KernelShapeError("Each row has a position and a table of pages.")
    if positions.dtype is not torch.int32 or tables.dtype is not torch.int32:
        raise KernelShapeError("Positions and page ids are int32.")
    if partials.numel() < partial_floats(rows, heads, head_dim, pages.kv_heads):
        raise KernelShapeError(f"{partials.numel():,} floats of scratch are too few.")
    if (out.rows, out.columns) != (rows, heads * head_dim):
        raise KernelShapeError(f"The result has {out.rows} rows of {out.columns}.")


def _check_rest(
    query: torch.Tensor, window: int | None, scale: float, gate: torch.Tensor | None
) -> None:
    rows, heads, head_dim = query.shape
    if window is not None and window < 1:
        raise KernelShapeError(f"A window of {window} does not hold the row itself.")
    if scale <= 0:
        raise KernelShapeError(f"Scores are multiplied by {scale}: masks need more than 0.")
    if gate is None:
        return
    if gate.shape != (rows, heads * head_dim) or gate.dtype is not torch.float32:
        raise KernelShapeError("The gate is [rows, heads * head_dim] float32.")
    if gate.stride(1) != 1:
        raise KernelShapeError("A row of the gate is not contiguous.")


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()
