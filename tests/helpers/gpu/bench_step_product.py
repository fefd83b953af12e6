"""What to time of the products of generated rows: real shapes, several configurations each.

A name has packing, weight rows x columns, rows, and tile/warps/sides (ahead, fetch, matrix) where
they are not the launch's own choice. Calls go round among buffers that the L2 cache does not
hold together. Of a product on tensor cores the name says too whether it has the bits of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

import torch

from kernels.packed.weight import DenseWeight, Weight
from kernels.rows import QuantizedRows, quantized
from kernels.step_product.cases import random_weight
from kernels.step_product.configuration import Configuration
from kernels.step_product.launch import step_experts, step_product

Bench = tuple[str, Callable[[], object], float, float]
DEVICE = torch.device("cuda")
ROUND_BYTES = 160_000_000
"""Of the buffers that calls go round: more than twice an L2 cache."""

Cut = (
    tuple[int, int]
    | tuple[int, int, int]
    | tuple[int, int, int, bool]
    | tuple[int, int, int, bool, bool]
)
WIDE: tuple[Cut, ...] = (
    (8, 1),
    (16, 1, 2),
    (16, 1, 4),
    (32, 1, 4),
    (16, 1, 4, True),
    (16, 1, 4, False, True),
)
LONG: tuple[Cut, ...] = (
    (2, 2, 1, True),
    (4, 2, 2, True),
    (8, 2, 4, True),
    (8, 4, 2),
    (8, 2, 4, True, True),
)
SQUARE: tuple[Cut, ...] = (
    (4, 4),
    (8, 4, 2),
    (8, 2, 4, True),
    (8, 2, 4, True, True),
    (16, 1, 4, True, True),
)
SHORT: tuple[Cut, ...] = ((8, 1), (16, 1, 2), (16, 1, 4), (32, 1, 4))
EXPERTS: tuple[Cut, ...] = ((8, 1), (8, 1, 2), (16, 1, 2), (16, 1, 4), (32, 1, 4))
MORE: tuple[Cut, ...] = ((8, 1, 4), (16, 1, 4))


@dataclass(frozen=True, slots=True)
class Shape:
    """One weight, the configurations tried for one row, and counts of more rows."""

    packing: str
    weight_rows: int
    columns: int
    one: tuple[Cut, ...] = ()
    more: tuple[int, ...] = ()


SHAPES = (
    Shape("q4_k", 24576, 4096, WIDE, (8,)),
    Shape("q4_k", 4096, 4096, SQUARE, (8,)),
    Shape("q4_k", 4096, 12288, LONG, (8,)),
    Shape("q6_k", 8192, 4096, (*SQUARE, (16, 1, 4))),
    Shape("q4_k", 34816, 5120, WIDE[:4], (4, 16)),
    Shape("q4_k", 5120, 17408, LONG),
    Shape("q6_k", 248320, 4096, WIDE[:3]),
    Shape("q4_k", 7168, 1024, SHORT),
    Shape("q6_k", 248320, 1024, SHORT[1:]),
    Shape("q4_k", 1024, 3584, SQUARE[:3]),
)


def benches() -> Iterator[Bench]:
    """Every shape and configuration, then stacks of experts."""
    for shape in SHAPES:
        yield from products(shape)
    yield from experts("q4_k", 1024, 2048, shared=True)
    yield from experts("q4_k", 2048, 512, shared=False)


@dataclass(frozen=True, slots=True)
class ProductCall:
    """One launch after another, each on the next of the weights."""

    x: QuantizedRows
    weights: list[Weight]
    out: torch.Tensor
    cut: Configuration | None
    planes: int = 2
    turn: Iterator[int] = field(default_factory=count)

    def __call__(self) -> None:
        weight = self.weights[next(self.turn) % len(self.weights)]
        step_product(self.x, weight, self.out, cut=self.cut, planes=self.planes)


@dataclass(frozen=True, slots=True)
class ExpertCall:
    """One launch after another, each with other experts."""

    x: QuantizedRows
    weight: Weight
    drawn: list[torch.Tensor]
    out: torch.Tensor
    cut: Configuration | None
    turn: Iterator[int] = field(default_factory=count)

    def __call__(self) -> None:
        chosen = self.drawn[next(self.turn) % len(self.drawn)]
        step_experts(self.x, self.weight, chosen, self.out, cut=self.cut)


def products(shape: Shape) -> Iterator[Bench]:
    """One shape's."""
    generator = torch.Generator(DEVICE).manual_seed(3)
    facts = (shape.packing, shape.weight_rows, shape.columns)
    weights = [random_weight(*facts, DEVICE, generator)]
    size = weight_bytes(weights[0])
    for _ in range(max(1, int(ROUND_BYTES / size))):
        weights.append(random_weight(*facts, DEVICE, generator))
    for rows, tried in ((1, shape.one), *((rows, MORE) for rows in shape.more)):
        x = quantized(torch.randn(rows, shape.columns, device=DEVICE, generator=generator))
        out = torch.empty(rows, shape.weight_rows, device=DEVICE)
        flops = 2.0 * rows * shape.weight_rows * shape.columns
        name = f"{shape.packing} {shape.weight_rows}x{shape.columns} rows {rows}"
        for cut in (None, *(Configuration(*each) for each in tried)):
            call = ProductCall(x, weights, out, cut)
            yield f"{name} {written(cut)}", call, size, flops
        if rows > 2:
            for tile, warps in ((1, 1), (1, 2)) if rows < 16 else ((1, 1),):
                cut = Configuration(tile, warps, matrix=True)
                call = ProductCall(x, weights, out, cut)
                yield f"{name} {written(cut)}{compared(call)}", call, size, flops


def compared(call: ProductCall) -> str:
    """Whether a product on tensor cores has the bits of the one of single threads."""
    call()
    found = call.out.clone()
    assert call.cut is not None
    step_product(call.x, call.weights[0], call.out, cut=Configuration(2, call.cut.warps))
    return " same bits" if torch.equal(found, call.out) else " OTHER BITS"


def experts(packing: str, n: int, columns: int, *, shared: bool) -> Iterator[Bench]:
    """Eight of 256 experts for one row and for eight."""
    generator = torch.Generator(DEVICE).manual_seed(3)
    weight = random_weight(packing, 256 * n, columns, DEVICE, generator)
    for rows in (1, 8):
        drawn = [
            torch.rand(rows, 256, device=DEVICE, generator=generator).topk(8).indices.int()
            for _ in range(32)
        ]
        sets = rows if shared else rows * 8
        x = quantized(torch.randn(sets, columns, device=DEVICE, generator=generator))
        out = torch.empty(rows, 8, n, device=DEVICE)
        different = sum(len(set(each.flatten().tolist())) for each in drawn) / len(drawn)
        size = weight_bytes(weight) / 256 * different
        for cut in (None, *(Configuration(*each) for each in EXPERTS)):
            call = ExpertCall(x, weight, drawn, out, cut)
            name = f"{packing} experts {n}x{columns} rows {rows} {written(cut)}"
            yield name, call, size, 2.0 * rows * 8 * n * columns


def written(cut: Configuration | None) -> str:
    """A configuration in a name."""
    if cut is None:
        return "own"
    letters = "a" * cut.ahead + "f" * cut.fetch + "m" * cut.matrix
    return f"{cut.tile}/{cut.warps}/{cut.sides}{letters}"


def weight_bytes(weight: Weight) -> float:
    """Of all its planes."""
    if isinstance(weight, DenseWeight):
        planes = [weight.values]
    else:
        all_planes = (
            weight.low, weight.high, weight.scales, weight.supers, weight.minima,
            weight.super_minima,
        )  # fmt: skip
        planes = [plane for plane in all_planes if plane is not None]
    return float(sum(plane.numel() * plane.element_size() for plane in planes))
