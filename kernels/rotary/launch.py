"""Launches of what lies between the projection of q, k and v and the attention over pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

from kernels.checks import KernelShapeError
from kernels.dependent import dependent
from kernels.rotary.kernel import rotary_kernel

PAGE_ROWS: Final = 256
PROMPT_ROWS: Final = 8
"""Rows of one program over prompt rows."""
WARP_ELEMENTS: Final = 128
PROMPT_WARP_ELEMENTS: Final = 256
MOST_WARPS: Final = 4
HALF_DTYPES: Final = (torch.bfloat16, torch.float16)


@dataclass(frozen=True, slots=True)
class HeadColumns:
    """Where q, k and v of a row begin in the joint product's output.

    Attributes:
        key, value: -1 where the layer owns no K and V; ``value`` may be ``key``: then values are
            the keys as projected.
    """

    query: int
    key: int
    value: int
    head_count: int
    kv_head_count: int
    head_dim: int


@dataclass(frozen=True, slots=True)
class HeadNorms:
    """RMS norms over head_dim: weights [head_dim] float32 or None for none; no eps, no norm."""

    query: torch.Tensor | None = None
    query_eps: float | None = None
    key: torch.Tensor | None = None
    key_eps: float | None = None
    value: torch.Tensor | None = None
    value_eps: float | None = None


@dataclass(frozen=True, slots=True)
class Turns:
    """How heads rotate.

    Attributes:
        turns: [pairs] int64, ``kernels.rotary.turns.turns_of`` the frequencies; 2 * pairs elements
            of a head rotate, the rest pass.
        magnitude: factor on cosine and sine.
        halves: pairs are (p, p + pairs), else (2p, 2p + 1).
    """

    turns: torch.Tensor
    magnitude: float
    halves: bool


def rotary_step(
    source: torch.Tensor,
    columns: HeadColumns,
    norms: HeadNorms,
    turns: Turns | None,
    positions: torch.Tensor,
    stored: torch.Tensor,
    scales: torch.Tensor | None,
    tables: torch.Tensor,
    query_out: torch.Tensor,
) -> None:
    """Norm and turn q, k and v of generated rows, and store k and v.

    Args:
        source: [rows, total] float32 or bfloat16, the last dimension dense.
        turns: None where nothing is turned.
        positions: [rows] int32, absolute; one below 0 is not stored.
        stored: [page, 2, kv_head, 256, head_dim] bfloat16, float16, or uint8 FP8 codes with
            ``scales`` [page, 2, kv_head, 256] float32; written where the rows lie.
        tables: [rows, max_pages] int32 page ids; a row whose id is below 0 is not stored.
        query_out: [rows, head, head_dim] float32 or bfloat16.

    Raises:
        KernelShapeError: shapes or dtypes that the kernel does not take.
    """
    if positions.dim() != 1 or len(positions) < len(source) or len(tables) < len(source):
        raise KernelShapeError(f"{list(positions.shape)} positions for {len(source)} rows.")
    places = (positions, 0, tables, tables.stride(0))
    _launch(source, columns, norms, turns, places, stored, scales, query_out, 1)


def rotary_prompt(
    source: torch.Tensor,
    columns: HeadColumns,
    norms: HeadNorms,
    turns: Turns | None,
    position: int,
    stored: torch.Tensor,
    scales: torch.Tensor | None,
    table: torch.Tensor,
    query_out: torch.Tensor,
) -> None:
    """The same for consecutive rows of one lane, the first one at ``position``.

    Args:
        table: [max_pages] int32, its page ids.
    """
    if table.dim() != 1 or len(table) * PAGE_ROWS < position + len(source):
        raise KernelShapeError(f"{list(table.shape)} pages do not reach row {position}.")
    _launch(
        source, columns, norms, turns, (None, position, table, 0), stored, scales, query_out,
        PROMPT_ROWS,
    )  # fmt: skip


def _launch(
    source: torch.Tensor,
    columns: HeadColumns,
    norms: HeadNorms,
    turns: Turns | None,
    places: tuple[torch.Tensor | None, int, torch.Tensor, int],
    stored: torch.Tensor,
    scales: torch.Tensor | None,
    query_out: torch.Tensor,
    tile_rows: int,
) -> None:
    _check(source, columns, turns, stored, scales, query_out)
    positions, position, table, table_stride = places
    width = 1 << (columns.head_dim - 1).bit_length()
    owned = 2 * columns.kv_head_count if columns.key >= 0 else 0
    per_warp = WARP_ELEMENTS if tile_rows == 1 else PROMPT_WARP_ELEMENTS
    rotary_kernel[(-(-len(source) // tile_rows), columns.head_count + owned)](
        source,
        norms.query,
        norms.key,
        norms.value,
        None if turns is None else turns.turns,
        positions,
        table,
        stored,
        scales,
        query_out,
        len(source),
        position,
        source.stride(0),
        table_stride,
        *stored.stride()[:4],
        *((0, 0, 0) if scales is None else scales.stride()[:3]),
        *query_out.stride()[:2],
        columns.query,
        columns.key,
        columns.value,
        norms.query_eps or 0.0,
        norms.key_eps or 0.0,
        norms.value_eps or 0.0,
        1.0 if turns is None else turns.magnitude,
        HEADS=columns.head_count,
        KV_HEADS=columns.kv_head_count,
        DIM=columns.head_dim,
        WIDTH=width,
        PAIRS=0 if turns is None else len(turns.turns),
        HALVES=turns is None or turns.halves,
        QUERY_NORMED=norms.query_eps is not None,
        KEY_NORMED=norms.key_eps is not None,
        VALUE_NORMED=norms.value_eps is not None,
        FORMAT=0 if scales is None else 1,
        ROWS=tile_rows,
        num_warps=min(MOST_WARPS, max(1, tile_rows * width // per_warp)),
        **(dependent(source.device) if tile_rows == 1 else {"DEPENDENT": False}),
    )


def _check(
    source: torch.Tensor,
    columns: HeadColumns,
    turns: Turns | None,
    stored: torch.Tensor,
    scales: torch.Tensor | None,
    query_out: torch.Tensor,
) -> None:
    """Raise KernelShapeError for what the kernel does not take."""
    dim, kv_heads = columns.head_dim, columns.kv_head_count
    last = max(
        columns.query + columns.head_count * dim,
        columns.key + kv_heads * dim,
        columns.value + kv_heads * dim,
    )
    if source.dim() != 2 or source.stride(1) != 1 or last > source.shape[1]:
        raise KernelShapeError(f"Rows of {list(source.shape)} hold no {last} columns.")
    if query_out.shape != (len(source), columns.head_count, dim) or query_out.stride(2) != 1:
        raise KernelShapeError(f"Queries of {list(query_out.shape)} for {len(source)} rows.")
    if turns is not None and 2 * len(turns.turns) > dim:
        raise KernelShapeError(f"{len(turns.turns)} pairs are more than a head of {dim} has.")
    if columns.key < 0:
        return
    if stored.shape[1:] != (2, kv_heads, PAGE_ROWS, dim) or stored.stride(4) != 1:
        raise KernelShapeError(f"Pages of {list(stored.shape)} hold no {kv_heads} heads of {dim}.")
    if stored.dtype not in HALF_DTYPES and (stored.dtype is not torch.uint8 or scales is None):
        raise KernelShapeError(f"Pages of {stored.dtype} without scales are of no known format.")
    if scales is not None and (scales.shape != stored.shape[:4] or scales.stride(3) != 1):
        raise KernelShapeError(f"Scales of {list(scales.shape)} for {list(stored.shape)}.")
