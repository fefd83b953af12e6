"""Attention at the shapes of real models: generated rows at several depths, chunks of a prompt.

Beside them other launches of the same kernels, so that one run says which is the fastest, and
torch's attention of contiguous tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle
from unittest.mock import patch

import torch
from torch.nn.functional import scaled_dot_product_attention

from kernels.pages import PAGE_SLOTS
from kernels.prompt_attention import launch as prompt
from kernels.prompt_attention.launch import Tiles
from kernels.rows import empty_rows
from kernels.step_attention import launch as step
from kernels.step_attention import sizes
from kernels.step_attention.launch import Launch

Bench = tuple[str, Callable[[], object], float, float]

CUDA = torch.device("cuda")
ROTATED_BYTES = 160_000_000
"""What repeated calls go over in turns at least, so that no cache holds it."""

DEPTHS = (0, 4_096, 32_768, 131_072)


@dataclass(frozen=True, slots=True)
class Shape:
    """Heads, kv heads and head_dim of a layer; the pages' dtype."""

    heads: int
    kv_heads: int
    head_dim: int
    dtype: torch.dtype = torch.bfloat16

    @property
    def name(self) -> str:
        """As the report has it."""
        coded = " fp8" if self.dtype is torch.uint8 else ""
        return f"{self.heads}/{self.kv_heads}x{self.head_dim}{coded}"

    @property
    def key_bytes(self) -> int:
        """Of one position's K and V."""
        row = self.head_dim * self.dtype.itemsize + (4 if self.dtype is torch.uint8 else 0)
        return 2 * self.kv_heads * row


MAIN = Shape(24, 4, 256)
LLAMA = Shape(32, 8, 128)
SMALL = Shape(9, 3, 64)
CODED = Shape(24, 4, 256, torch.uint8)
SHAPES = (
    Shape(16, 4, 256),
    Shape(16, 2, 256),
    Shape(8, 2, 256),
    SMALL,
    Shape(4, 1, 256),
    LLAMA,
    Shape(8, 2, 512),
)
STEP_LAUNCHES = (
    (MAIN, 132, Launch(64, 4, 3)),
    (MAIN, 264, Launch(32, 4, 3)),
    (MAIN, 132, Launch(64, 8, 3)),
    (MAIN, 528, Launch(32, 4, 2)),
    (MAIN, 264, Launch(64, 8, 2)),
    (SMALL, 264, Launch(128, 4, 3)),
)
PROMPT_TILES = (
    (MAIN, Tiles(128, 64, 8, 2, described=True)),
    (MAIN, Tiles(128, 32, 8, 4)),
    (MAIN, Tiles(128, 32, 8, 4, described=True)),
    (MAIN, Tiles(64, 64, 4, 1)),
    (MAIN, Tiles(64, 32, 4, 2)),
    (LLAMA, Tiles(128, 128, 8, 2, described=True)),
    (LLAMA, Tiles(128, 64, 8, 4)),
    (LLAMA, Tiles(128, 64, 8, 4, described=True)),
    (SMALL, Tiles(128, 128, 8, 2)),
    (SMALL, Tiles(64, 64, 4, 3)),
)


def benches() -> Iterator[Bench]:
    """What matters most comes first: the shape of the largest models, then other launches."""
    yield prompt_bench(MAIN, 8192, 0)
    for depth in DEPTHS:
        yield step_bench(MAIN, 1, depth)
    for shape, tiles in PROMPT_TILES:
        yield prompt_bench(shape, 8192, 0, tiles=tiles)
    for shape, programs, launch in STEP_LAUNCHES:
        for depth in (4_096, 32_768):
            yield step_bench(shape, 1, depth, launch=(programs, launch))
    for rows in (8192, 2048, 512):
        yield torch_bench(MAIN, rows)
    for rows, depth in ((2048, 0), (512, 0), (2048, 4096), (512, 4096), (512, 32768)):
        yield prompt_bench(MAIN, rows, depth)
    yield from other_shapes()


def other_shapes() -> Iterator[Bench]:
    """Those of other models."""
    for shape in (LLAMA, SMALL):
        yield prompt_bench(shape, 8192, 0)
    for shape in SHAPES:
        for depth in DEPTHS:
            yield step_bench(shape, 1, depth)
    yield step_bench(CODED, 1, 32_768)
    for rows in (2, 4, 16):
        yield step_bench(MAIN, rows, 4_096)
    yield step_bench(Shape(8, 4, 256), 1, 32_768, window=1024)
    yield prompt_bench(Shape(8, 4, 256), 2048, 4096, window=1024)
    yield prompt_bench(CODED, 2048, 0)
    yield prompt_bench(Shape(8, 2, 512), 2048, 0)


def prompt_bench(
    shape: Shape, rows: int, depth: int, *, window: int | None = None, tiles: Tiles | None = None
) -> Bench:
    """A chunk of ``rows`` rows after ``depth`` others."""
    pages, scales, tables = lanes(shape, 1, depth + rows)
    query = torch.randn(rows, shape.heads, shape.head_dim, device=CUDA).bfloat16()
    out = torch.empty(rows, shape.heads * shape.head_dim, dtype=torch.bfloat16, device=CUDA)
    gate = torch.randn_like(out)
    changed = {} if tiles is None else {max(64, shape.head_dim): tiles}

    def call() -> None:
        with patch.dict(prompt.LARGE, changed):
            prompt.prompt_attention(
                query, pages, scales, tables[0, 0], depth, out,
                window=window, scale=shape.head_dim**-0.5, gate=gate,
            )  # fmt: skip

    seen = sum(min(depth + row + 1, window or depth + rows) for row in range(rows))
    flops = 4.0 * shape.heads * shape.head_dim * seen
    name = f"prompt {shape.name} rows {rows} at {depth}{f' window {window}' if window else ''}"
    if tiles is not None:
        name += f" {tiles.rows}x{tiles.keys} warps {tiles.warps} stages {tiles.stages}"
        name += " described" if tiles.described else ""
    return name, call, float(shape.key_bytes * (depth + rows) + 6 * out.numel()), flops


def step_bench(
    shape: Shape,
    rows: int,
    depth: int,
    *,
    window: int | None = None,
    launch: tuple[int, Launch] | None = None,
) -> Bench:
    """Rows of lanes of their own, each with ``depth`` others before it."""
    programs, how = launch or (sizes.PROGRAMS, None)
    seen = min(depth + 1, window or depth + 1)
    held = shape.key_bytes * rows * seen
    pages, scales, tables = lanes(shape, rows, depth + 1, 1 + ROTATED_BYTES // held)
    query = torch.randn(rows, shape.heads, shape.head_dim, device=CUDA)
    gate = torch.randn(rows, shape.heads * shape.head_dim, device=CUDA)
    out = empty_rows(rows, shape.heads * shape.head_dim, CUDA)
    positions = torch.full((rows,), depth, dtype=torch.int32, device=CUDA)
    turns = cycle(list(tables))
    with patch.object(sizes, "PROGRAMS", programs):
        floats = sizes.partial_floats(rows, shape.heads, shape.head_dim, shape.kv_heads)
    partials = torch.empty(floats, device=CUDA)
    changed = {} if how is None else {max(64, shape.head_dim): how}

    def call() -> None:
        with ExitStack() as stack:
            stack.enter_context(patch.dict(step.LARGE, changed))
            stack.enter_context(patch.object(sizes, "PROGRAMS", programs))
            step.step_attention(
                query, pages, scales, next(turns), positions, partials, out,
                window=window, scale=shape.head_dim**-0.5, gate=gate,
            )  # fmt: skip

    name = f"step {shape.name} rows {rows} at {depth}{f' window {window}' if window else ''}"
    if how is not None:
        name += f" unit {how.unit} programs {programs} warps {how.warps} stages {how.stages}"
    return name, call, float(held), 4.0 * shape.heads * shape.head_dim * seen * rows


def torch_bench(shape: Shape, rows: int) -> Bench:
    """What torch's causal attention takes for contiguous heads, nothing before them."""
    query = torch.randn(1, shape.heads, rows, shape.head_dim, device=CUDA).bfloat16()
    both = torch.randn(2, 1, shape.kv_heads, rows, shape.head_dim, device=CUDA).bfloat16()

    def call() -> object:
        return scaled_dot_product_attention(
            query, both[0], both[1], is_causal=True, enable_gqa=True
        )

    flops = 2.0 * shape.heads * shape.head_dim * rows * (rows + 1)
    return (
        f"torch {shape.name} rows {rows} at 0",
        call,
        float(both.nbytes + 2 * query.nbytes),
        flops,
    )


def lanes(
    shape: Shape, rows: int, length: int, turns: int = 1
) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor]:
    """Pages in random order; tables [turns, rows, pages of a lane]."""
    each = -(-length // PAGE_SLOTS)
    turns = min(turns, 256)
    size = (each * rows * turns, 2, shape.kv_heads, PAGE_SLOTS, shape.head_dim)
    tables = torch.randperm(size[0], dtype=torch.int32).view(turns, rows, each).to(CUDA)
    if shape.dtype is not torch.uint8:
        return torch.randn(size, dtype=shape.dtype, device=CUDA), None, tables
    codes = torch.randint(0, 126, size, dtype=torch.uint8, device=CUDA)
    return codes, torch.rand(size[:-1], device=CUDA) / 448, tables
