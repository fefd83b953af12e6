"""What to time of prompt rows' products, of unpacking and of experts: real shapes.

A name has rows, outputs x columns, and the tile where it is not the launch's own choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from kernels.device import gpu_facts
from kernels.expert_prompt.launch import HOPPER as EXPERT_TILES
from kernels.expert_prompt.launch import expert_prompt
from kernels.prompt_product.launch import Tile, prompt_product
from kernels.step_product.cases import random_weight
from kernels.unpack.launch import unpack, unpack_rows

Bench = tuple[str, Callable[[], object], float, float]
DEVICE = torch.device("cuda")
TRIED = (
    Tile(128, 256, 64, 8, 3, 1.0),
    Tile(128, 256, 64, 8, 3, 1.0, described=True),
    Tile(128, 256, 64, 8, 4, 1.0, described=True),
    Tile(128, 128, 64, 4, 4, 1.0, described=True),
    Tile(64, 256, 64, 4, 4, 1.0, described=True),
)
ALL_TILES = ((8_192, 5_120, 17_408), (2_048, 34_816, 5_120), (512, 34_816, 5_120))
SHAPES = (
    (8_192, 34_816, 5_120), (8_192, 24_576, 4_096), (8_192, 4_096, 12_288), (8_192, 10_240, 5_120),
    (2_048, 5_120, 17_408), (2_048, 24_576, 4_096), (2_048, 4_096, 12_288), (512, 4_096, 12_288),
    (128, 24_576, 4_096), (8_192, 2_560, 9_216), (8_192, 7_168, 1_024), (8_192, 1_024, 3_584),
)  # fmt: skip
UNPACKED = (("q4_k", 34_816, 5_120), ("q6_k", 5_120, 17_408), ("q8_0", 24_576, 4_096))
EXPERTS = 256
ACTIVE = 8


def benches() -> Iterator[Bench]:
    """The most important first: large products, unpacking, experts, then what is small."""
    for shape in ALL_TILES:
        for tile in fitting(TRIED):
            yield product(*shape, tile)
    for packing, rows, columns in UNPACKED:
        yield unpacking(packing, rows, columns)
    for shape in SHAPES:
        yield product(*shape, None)
    yield adding(8_192, 5_120, 17_408)
    for tile in fitting(EXPERT_TILES):
        yield experts(4_096, 512, 2_048, tile, shared=True)
        yield experts(4_096, 2_048, 512, tile, shared=False)
    yield router(4_096, 256, 2_048)
    yield embedding()


def fitting(tiles: tuple[Tile, ...]) -> list[Tile]:
    """Those that the GPU has shared memory for."""
    return [each for each in tiles if each.shared_bytes <= gpu_facts(0).shared_bytes]


def halves(*shape: int) -> torch.Tensor:
    """Random bfloat16 as activations and weights are."""
    return torch.randn(shape, device=DEVICE).bfloat16() * 0.1


def unpacking(packing: str, rows: int, columns: int) -> Bench:
    """A whole weight; what is written is larger than the L2 cache."""
    weight = random_weight(packing, rows, columns, DEVICE, torch.Generator(DEVICE))
    out = torch.empty(rows, columns, dtype=torch.bfloat16, device=DEVICE)
    assert not hasattr(weight, "values")
    planes = (weight.low, weight.high, weight.scales, weight.minima)
    read = sum(each.numel() * each.element_size() for each in planes if each is not None)
    name = f"unpack {packing} {rows}x{columns}"
    return name, lambda: unpack(weight, 0, out), float(read + 2 * out.numel()), 0.0


def embedding() -> Bench:
    """A chunk's rows of an embedding."""
    weight = random_weight("q4_k", 100_000, 5_120, DEVICE, torch.Generator(DEVICE))
    ids = torch.randint(0, 100_000, (2_048,), dtype=torch.int32, device=DEVICE)
    out = torch.empty(2_048, 5_120, device=DEVICE)
    moved = 4.6 * out.numel()
    return "rows of an embedding 2048x5120", lambda: unpack_rows(weight, ids, out, 1.0), moved, 0.0


def product(rows: int, outputs: int, columns: int, tile: Tile | None) -> Bench:
    """One product with one tile."""
    x, weight = halves(rows, columns), halves(outputs, columns)
    out = torch.empty(rows, outputs, dtype=torch.bfloat16, device=DEVICE)
    name = f"product {rows} x {outputs}x{columns} {label(tile)}"
    moved = 2.0 * (x.numel() + weight.numel() + out.numel())
    flops = 2.0 * rows * outputs * columns
    return name, lambda: prompt_product(x, weight, out, tile=tile), moved, flops


def adding(rows: int, outputs: int, columns: int) -> Bench:
    """A product that is added to float32."""
    x, weight = halves(rows, columns), halves(outputs, columns)
    out = torch.zeros(rows, outputs, device=DEVICE)
    moved = 2.0 * (x.numel() + weight.numel()) + 8.0 * out.numel()
    flops = 2.0 * rows * outputs * columns
    name = f"added product {rows} x {outputs}x{columns}"
    return name, lambda: prompt_product(x, weight, out, add=True), moved, flops


def router(rows: int, outputs: int, columns: int) -> Bench:
    """A product in float32."""
    x, weight = halves(rows, columns).float(), halves(outputs, columns).float()
    out = torch.empty(rows, outputs, device=DEVICE)
    moved = 4.0 * (x.numel() + weight.numel() + out.numel())
    flops = 2.0 * rows * outputs * columns
    name = f"router {rows} x {outputs}x{columns}"
    return name, lambda: prompt_product(x, weight, out), moved, flops


def experts(rows: int, outputs: int, columns: int, tile: Tile, *, shared: bool) -> Bench:
    """Products of rows with eight of 256 experts each."""
    pairs = rows * ACTIVE
    x = halves(rows if shared else pairs, columns)
    weight = halves(EXPERTS, outputs, columns)
    chosen = torch.rand(rows, EXPERTS, device=DEVICE).topk(ACTIVE).indices.flatten()
    order = torch.argsort(chosen, stable=True).int()
    starts = (chosen[:, None] < torch.arange(EXPERTS + 1, device=DEVICE)).sum(0).int()
    out = torch.empty(pairs, outputs, dtype=torch.bfloat16, device=DEVICE)
    each = ACTIVE if shared else 1
    moved = 2.0 * (pairs * columns + weight.numel() + out.numel())
    return (
        f"experts {rows} rows x {outputs}x{columns} {label(tile)}",
        lambda: expert_prompt(x, weight, order, starts, out, rows_per_pair=each, tile=tile),
        moved,
        2.0 * pairs * outputs * columns,
    )


def label(tile: Tile | None) -> str:
    """Rows x columns x depth, warps, stages."""
    if tile is None:
        return "chosen"
    how = "d" if tile.described else ""
    return f"{tile.rows}x{tile.columns}x{tile.depth}w{tile.warps}s{tile.stages}{how}"
