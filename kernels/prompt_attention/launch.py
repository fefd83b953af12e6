"""Launches attention of a prompt chunk's rows; see ``prompt_attention``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from triton.tools.tensor_descriptor import TensorDescriptor

from kernels.checks import KernelShapeError
from kernels.device import KIB, gpu_facts
from kernels.pages import Pages
from kernels.prompt_attention.kernel import attend_rows
from kernels.step_attention.launch import reads_e4m3


@dataclass(frozen=True, slots=True)
class Tiles:
    """How the kernel is launched.

    Attributes:
        rows, keys: of a tile.
        stages: of the pipeline.
        described: keys that every row sees are copied by the unit that copies tensors (TMA).
    """

    rows: int
    keys: int
    warps: int
    stages: int
    described: bool = False


LARGE: Final = {
    64: Tiles(128, 128, 8, 3),
    128: Tiles(128, 128, 8, 2),
    256: Tiles(128, 64, 8, 2),
    512: Tiles(64, 32, 8, 2),
}
"""By head_dim's next power of two, for processors with 227 KiB of shared memory."""

SMALL: Final = {
    64: Tiles(128, 64, 4, 2),
    128: Tiles(64, 64, 4, 2),
    256: Tiles(64, 32, 4, 1),
    512: Tiles(32, 16, 4, 1),
}
"""For those with 99 KiB, and for the interpreter."""

LARGE_BYTES: Final = 227 * KIB


def prompt_attention(
    query: torch.Tensor,
    stored: torch.Tensor,
    scales: torch.Tensor | None,
    table: torch.Tensor,
    position: int,
    out: torch.Tensor,
    *,
    window: int | None,
    scale: float,
    gate: torch.Tensor | None = None,
    block_ends: torch.Tensor | None = None,
    cap: float | None = None,
) -> None:
    """Attend from rows ``position, position + 1, ...`` of one lane, whose keys are in the pages.

    Args:
        query: [rows, heads, head_dim] bfloat16, the last dimension contiguous.
        stored, scales: the layer's pages; see ``kernels.pages.Pages``.
        table: [most pages] int32, the lane's page ids.
        position: of the first row.
        out: [rows, heads * head_dim] bfloat16, each row contiguous.
        window: positions that a row sees, its own included; None for all.
        scale: multiplies the scores.
        gate: [rows, heads * head_dim] bfloat16; its sigmoid multiplies the result.
        block_ends: [rows] int32, the last position that a row sees where it is beyond its own.
        cap: scores become ``cap * tanh(score / cap)``.

    Raises KernelShapeError.
    """
    rows, heads, head_dim = query.shape
    pages = Pages(stored, scales)
    _check(query, pages, table, out)
    _check_rest(query, window, scale, gate, block_ends)
    wide, coded = 1 << (max(head_dim, 32) - 1).bit_length(), scales is not None
    tiles = tiles_of(query.device, max(wide, 64))
    described = tiles.described and not coded and wide == head_dim and stored.is_contiguous()
    attend_rows[(-(-rows // tiles.rows) * heads,)](
        query,
        *query.stride()[:2],
        _lines(stored, tiles.keys) if described else stored,
        stored,
        *stored.stride()[:3],
        stored if scales is None else scales,
        *pages.scale_strides(),
        table,
        position,
        rows,
        out,
        out.stride(0),
        query if gate is None else gate,
        0 if gate is None else gate.stride(0),
        table if block_ends is None else block_ends,
        window or 0,
        scale,
        cap or 0.0,
        HEADS=heads,
        GROUP=heads // pages.kv_heads,
        D=head_dim,
        WIDE=wide,
        ROWS=tiles.rows,
        KEYS=tiles.keys,
        DESCRIBED=described,
        WINDOWED=window is not None,
        BLOCKED=block_ends is not None,
        CODED=coded,
        NATIVE=coded and reads_e4m3(query.device),
        CAPPED=cap is not None,
        TWIN=query.device.type == "cpu",
        GATED=gate is not None,
        num_warps=tiles.warps,
        num_stages=tiles.stages,
    )


def _lines(stored: torch.Tensor, keys: int) -> TensorDescriptor:
    """The pages as one row a slot, in blocks of ``keys`` rows."""
    head_dim = stored.shape[4]
    lines = stored.numel() // head_dim
    return TensorDescriptor(stored, [lines, head_dim], [head_dim, 1], [keys, head_dim])


def tiles_of(device: torch.device, wide: int) -> Tiles:
    """The tiles for a head_dim's next power of two, by the device's shared memory."""
    if device.type != "cuda":
        return SMALL[wide]
    room = gpu_facts(device.index).shared_bytes
    return (LARGE if room >= LARGE_BYTES else SMALL)[wide]


def _check(query: torch.Tensor, pages: Pages, table: torch.Tensor, out: torch.Tensor) -> None:
    rows, heads, head_dim = query.shape
    if query.dtype is not torch.bfloat16 or query.stride(2) != 1:
        raise KernelShapeError("Queries are bfloat16, each head's elements contiguous.")
    if rows < 1 or head_dim != pages.head_dim or heads % pages.kv_heads:
        raise KernelShapeError(
            f"{rows} rows of {heads} x {head_dim} do not fit {pages.kv_heads} x {pages.head_dim}."
        )
    if head_dim % 8 or head_dim > max(LARGE):
        raise KernelShapeError(f"A head_dim of {head_dim} is no multiple of 8 up to 512.")
    if table.dtype is not torch.int32 or table.dim() != 1 or table.stride(0) != 1:
        raise KernelShapeError("The table is one contiguous row of int32 page ids.")
    if out.shape != (rows, heads * head_dim) or out.dtype is not torch.bfloat16:
        raise KernelShapeError("The result is [rows, heads * head_dim] bfloat16.")
    if out.stride(1) != 1:
        raise KernelShapeError("A row of the result is not contiguous.")


def _check_rest(
    query: torch.Tensor,
    window: int | None,
    scale: float,
    gate: torch.Tensor | None,
    block_ends: torch.Tensor | None,
) -> None:
    rows, heads, head_dim = query.shape
    if window is not None and window < 1:
        raise KernelShapeError(f"A window of {window} does not hold the row itself.")
    if scale <= 0:
        raise KernelShapeError(f"Scores are multiplied by {scale}: masks need more than 0.")
    if gate is not None and (gate.shape != (rows, heads * head_dim) or gate.stride(1) != 1):
        raise KernelShapeError("The gate is [rows, heads * head_dim], each row contiguous.")
    if block_ends is not None and (block_ends.shape != (rows,) or block_ends.stride(0) != 1):
        raise KernelShapeError("Each row has one end of its block.")
