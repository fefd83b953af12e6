"""What to time of the kernels between products: real layers, generated rows and prompts.

A name has the shape and the rows. A step of these is a few microseconds, whatever its bytes are;
a prompt is as good as the share of the card's bandwidth that its bytes reach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from kernels.draw.launch import candidates, greedy, soft_cap
from kernels.draw.sizes import candidate_words, tile_count
from kernels.gated.launch import add_gated, gated_prompt, gated_step
from kernels.mixture.launch import order_pairs, route, sum_experts
from kernels.mixture.sizes import count_words
from kernels.norm.launch import norm_prompt, norm_step
from kernels.rotary.launch import HeadColumns, HeadNorms, Turns, rotary_prompt, rotary_step
from kernels.rows import empty_rows

Bench = tuple[str, Callable[[], object], float, float]
DEVICE = torch.device("cuda")
HALF = torch.bfloat16
STEP_ROWS = (1, 4, 16)
PROMPT_ROWS = 4096
EPS = 1e-6
PAGES = 24
HEADS = ((24, 4, 256, 32), (16, 8, 128, 64))


def benches() -> Iterator[Bench]:
    """Steps of every kernel, then prompts."""
    for rows in STEP_ROWS:
        for columns in (1024, 2560, 4096, 5120):
            yield _norm_step(rows, columns)
        for columns in (3584, 17408):
            yield _gated_step(rows, columns)
        for heads in HEADS:
            yield _rotary(rows, heads, prompt=False)
        yield from _mixture(rows, torch.float32)
        yield from _drawn(rows)
    yield _norm_prompt()
    yield _gated_prompt()
    for heads in HEADS:
        yield _rotary(PROMPT_ROWS, heads, prompt=True)
    yield from _mixture(PROMPT_ROWS, HALF)
    yield _ordered()


def _floats(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, device=DEVICE).to(dtype)


def _norm_step(rows: int, columns: int) -> Bench:
    x, added, weight = _floats(rows, columns), _floats(rows, columns), _floats(columns)
    out = empty_rows(rows, columns, DEVICE)
    name = f"norm {columns} rows {rows}"
    return name, lambda: norm_step(x, weight, EPS, out, added=added), 14.0 * x.numel(), 0.0


def _norm_prompt() -> Bench:
    x, weight = _floats(PROMPT_ROWS, 5120), _floats(5120)
    added, out = _floats(PROMPT_ROWS, 5120, dtype=HALF), _floats(PROMPT_ROWS, 5120, dtype=HALF)
    name = f"norm prompt 5120 rows {PROMPT_ROWS}"
    return name, lambda: norm_prompt(x, weight, EPS, out, added=added), 12.0 * x.numel(), 0.0


def _gated_step(rows: int, columns: int) -> Bench:
    both = _floats(rows, 2 * columns)
    gate, up = both[:, :columns], both[:, columns:]
    out = empty_rows(rows, columns, DEVICE)
    name, size = f"gated {columns} rows {rows}", 10.0 * rows * columns
    return name, lambda: gated_step(gate, up, out, activation="silu"), size, 0.0


def _gated_prompt() -> Bench:
    columns = 17408
    both = _floats(PROMPT_ROWS, 2 * columns, dtype=HALF)
    gate, up = both[:, :columns], both[:, columns:]
    out = torch.empty(PROMPT_ROWS, columns, dtype=HALF, device=DEVICE)
    name, size = f"gated prompt {columns} rows {PROMPT_ROWS}", 6.0 * out.numel()
    return name, lambda: gated_prompt(gate, up, out, activation="silu"), size, 0.0


def _rotary(rows: int, heads: tuple[int, int, int, int], *, prompt: bool) -> Bench:
    count, kv_heads, dim, pairs = heads
    total = (count + 2 * kv_heads) * dim
    source = _floats(rows, total, dtype=HALF if prompt else torch.float32)
    columns = HeadColumns(0, count * dim, (count + kv_heads) * dim, count, kv_heads, dim)
    norms = HeadNorms(_floats(dim), EPS, _floats(dim), EPS)
    turns = Turns(torch.arange(pairs, device=DEVICE) << 50, 1.0, True)
    stored = torch.zeros(PAGES, 2, kv_heads, 256, dim, dtype=HALF, device=DEVICE)
    query = torch.empty(rows, count, dim, dtype=source.dtype, device=DEVICE)
    table = torch.arange(PAGES, dtype=torch.int32, device=DEVICE)
    size = float(source.element_size() * source.numel() + query.element_size() * query.numel())
    size += 4.0 * rows * kv_heads * dim
    name = f"rotary {'prompt ' if prompt else ''}{count}/{kv_heads} x {dim} rows {rows}"
    if prompt:
        return name, lambda: rotary_prompt(
            source, columns, norms, turns, 512, stored, None, table, query
        ), size, 0.0  # fmt: skip
    tables, at = table.expand(rows, -1).contiguous(), 300 * torch.arange(rows, device=DEVICE).int()
    return name, lambda: rotary_step(
        source, columns, norms, turns, at, stored, None, tables, query
    ), size, 0.0  # fmt: skip


def _mixture(rows: int, dtype: torch.dtype) -> Iterator[Bench]:
    experts, active, columns = 256, 8, 2048
    logits, weights = _floats(rows, experts), _floats(rows, active)
    chosen = torch.zeros(rows, active, dtype=torch.int32, device=DEVICE)
    size = 4.0 * logits.numel()
    yield f"route {active} of {experts} rows {rows}", lambda: route(
        logits, None, weights, chosen
    ), size, 0.0  # fmt: skip
    parts, x = _floats(rows, active, columns, dtype=dtype), _floats(rows, columns)
    size = float(parts.element_size() * parts.numel() + 8 * x.numel())
    yield f"sum {active} x {columns} rows {rows}", lambda: sum_experts(
        parts, weights, x
    ), size, 0.0  # fmt: skip
    value, gate = _floats(rows, columns, dtype=dtype), _floats(rows, 1, dtype=dtype)
    size = float(value.element_size() * value.numel() + 8 * x.numel())
    yield f"add gated {columns} rows {rows}", lambda: add_gated(x, value, gate), size, 0.0


def _ordered() -> Bench:
    experts, active = 256, 8
    chosen = torch.randint(0, experts, (PROMPT_ROWS, active), device=DEVICE).int()
    order = torch.empty(chosen.numel(), dtype=torch.int32, device=DEVICE)
    starts = torch.empty(experts + 1, dtype=torch.int32, device=DEVICE)
    words = count_words(chosen.numel(), experts)
    counts = torch.empty(words, dtype=torch.int32, device=DEVICE)
    name, size = f"order {chosen.numel()} pairs", 8.0 * chosen.numel()
    return name, lambda: order_pairs(chosen, order, starts, counts), size, 0.0


def _drawn(rows: int) -> Iterator[Bench]:
    vocabulary, room = 248320, 2048
    logits, size = _floats(rows, vocabulary), 4.0 * rows * vocabulary
    keys = torch.empty(rows * tile_count(vocabulary), dtype=torch.int64, device=DEVICE)
    out = torch.empty(rows, dtype=torch.int32, device=DEVICE)
    yield f"greedy {vocabulary} rows {rows}", lambda: greedy(logits, keys, out), size, 0.0
    yield f"cap {vocabulary} rows {rows}", lambda: soft_cap(logits, 30.0), 2.0 * size, 0.0
    ids = torch.empty(rows, room, dtype=torch.int32, device=DEVICE)
    values, words = _floats(rows, room), candidate_words(rows, vocabulary)
    scratch = torch.empty(words, dtype=torch.int32, device=DEVICE)
    yield f"candidates {vocabulary} rows {rows}", lambda: candidates(
        logits, ids, values, out, scratch
    ), size, 0.0  # fmt: skip
