"""A stack of codes whose scales lie in tensors of their own, in every form that files have."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import torch
from numpy.typing import NDArray

from engine.checkpoint.source import TensorFacts
from kernels.quant.facts import FACTS
from tests.helpers.memory_source import MemorySource

AFFINE = ("mlx2", "mlx3", "mlx4", "mlx5", "mlx6", "mlx8")
NAME = "matrix.weight"


@dataclass(frozen=True)
class Joined:
    """How a matrix of 3 x 37 rows is stored.

    Attributes:
        block: elements that share a scale.
        scales: the format of scales and minima.
    """

    format: str
    block: tuple[int, int]
    scales: str
    minima: bool = False

    def __str__(self) -> str:
        return f"{self.format} {self.block} {self.scales}"


STRIPPED = (
    *(Joined(name, (1, 64), "bf16", minima=True) for name in AFFINE),
    Joined("mlx4", (1, 32), "f16", minima=True),
    Joined("mlx4", (1, 128), "f32", minima=True),
    Joined("mlx8", (1, 32), "f32", minima=True),
    Joined("mlx3", (1, 128), "f16", minima=True),
    Joined("e2m1", (1, 32), "e8m0"),
    Joined("f8_e4m3", (1, 32), "e8m0"),
    Joined("f8_e4m3", (16, 128), "f32"),
    Joined("f8_e4m3", (128, 128), "bf16"),
    Joined("f8_e4m3", (1, 0), "f32"),
)
"""Those that are multiplied from strips; a width of 0 is the whole row."""
DECODED = Joined("e2m1", (1, 16), "f8_e4m3")
ROWS, STACK = 37, 3


class JoinedSource(MemorySource):
    """One stack (3, 37, columns) of random codes with scales of fit size."""

    def __init__(self, how: Joined, columns: int) -> None:
        super().__init__("joined", {}, {})
        draw = np.random.default_rng([columns, FACTS[how.format].block_bytes])
        height, width = how.block[0], how.block[1] or columns
        shape = (STACK, ROWS, columns)
        grid = (STACK, -(-ROWS // height), -(-columns // width))
        codes = draw.integers(0, 256, (STACK * ROWS, FACTS[how.format].row_bytes(columns)))
        if how.format == "f8_e4m3":
            codes[codes % 128 == 127] = 126  # 127 is NaN
        self._bytes = {NAME: codes.astype(np.uint8).tobytes()}
        parts: dict[str, TensorFacts | None] = {"scales": None, "minima": None}
        for part in ("scales", "minima") if how.minima else ("scales",):
            stored = random_scales(draw, how.scales, prod(grid))
            self._bytes[part] = stored.tobytes()
            parts[part] = TensorFacts(part, grid, how.scales, 0, 0, stored.nbytes)
        self.tensors = {
            NAME: TensorFacts(
                NAME, shape, how.format, 0, 0, codes.size, parts["scales"], parts["minima"],
                (height, width),
            )
        }  # fmt: skip

    def tensor_bytes(self, name: str) -> memoryview:
        """Also those of the scales and minima."""
        return memoryview(self._bytes[name])


def random_scales(draw: np.random.Generator, name: str, count: int) -> NDArray[np.uint8]:
    """Of both signs, about 0.01 to 0.04."""
    if name == "e8m0":
        return draw.integers(118, 124, count).astype(np.uint8)
    if name == "f8_e4m3":
        return draw.integers(1, 40, count).astype(np.uint8)
    values = draw.uniform(0.01, 0.04, count) * draw.choice([-1.0, 1.0], count)
    dtype = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[name]
    found: NDArray[np.uint8] = torch.from_numpy(values).to(dtype).view(torch.uint8).numpy()
    return found
