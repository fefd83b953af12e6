"""Formats, shapes and tolerances that the library is tested and measured with.

Sizes are odd where the library allows it: rows that fill no strip, tile or team evenly, a single
row, a single block, columns past one packing depth of 1,024. Every tolerance says where it comes
from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import torch

from kernels.quant.facts import FACTS

HALF_FIELDS: Final[dict[str, tuple[int, ...]]] = {
    "q4_0": (0,),
    "q4_1": (0, 2),
    "q5_0": (0,),
    "q5_1": (0, 2),
    "q8_0": (0,),
    "q2_k": (80, 82),
    "q3_k": (108,),
    "q4_k": (0, 2),
    "q5_k": (0, 2),
    "q6_k": (208,),
    "iq4_nl": (0,),
    "iq4_xs": (0,),
}
"""Where a block of each integer format keeps its f16 scales; MXFP4 has an exponent instead."""

FLOAT_FORMATS: Final = ("f32", "f16", "bf16")
FORMATS: Final = (*FLOAT_FORMATS, *HALF_FIELDS, "mxfp4")
"""Every format that the library multiplies and decodes."""

STRIP_FORMATS: Final = ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q4_k", "q5_k", "q6_k")
"""Those among them that are laid out in strips."""

VALUE_FORMATS: Final = (*FLOAT_FORMATS, "q2_k")
"""Those that multiply the activations' float values; all others their int16 codes."""


@dataclass(frozen=True, slots=True)
class ProductCase:
    """A weight of ``weight_rows`` times ``blocks`` blocks of 256 columns, for ``rows`` rows."""

    rows: int
    weight_rows: int
    blocks: int


PRODUCTS: Final = (
    ProductCase(rows=1, weight_rows=1, blocks=1),
    ProductCase(rows=3, weight_rows=17, blocks=5),
    ProductCase(rows=7, weight_rows=50, blocks=3),
)


@dataclass(frozen=True, slots=True)
class AttentionCase:
    """Geometry of one layer's attention."""

    head_dim: int
    kv_heads: int
    shared_heads: int
    window: int = 0


ATTENTION: Final = (
    AttentionCase(head_dim=16, kv_heads=2, shared_heads=1),
    AttentionCase(head_dim=48, kv_heads=2, shared_heads=7, window=300),
    AttentionCase(head_dim=64, kv_heads=3, shared_heads=3),
    AttentionCase(head_dim=64, kv_heads=1, shared_heads=8, window=1),
    AttentionCase(head_dim=80, kv_heads=2, shared_heads=5, window=40),
    AttentionCase(head_dim=96, kv_heads=1, shared_heads=6, window=257),
    AttentionCase(head_dim=128, kv_heads=2, shared_heads=4, window=256),
    AttentionCase(head_dim=256, kv_heads=1, shared_heads=2, window=511),
)

POSITIONS: Final = (0, 255, 256, 257, 511, 700)
"""Rows of a step: first of all, last and first of a page, the third page."""

NORM_TOLERANCE: Final = 2e-6
"""Relative: float32 squares added in 8 or 16 lanes, a division and two products: some 16 halves of
2^-23, measured 3e-7."""

ATTENTION_TOLERANCE: Final = 4e-6
"""Of the largest value: float32 sums of up to 700 products in lanes, e^x within two units in the
last place, scores of size 10 that turn an error of 2^-24 of theirs into 1e-6; measured 1e-6."""

GATE_TOLERANCE: Final = 1e-6
"""Of |gate * up|: e^x within two units in the last place, a division and two products."""

ROTATION_TOLERANCE: Final = 3e-7
"""Of the pair's length: cosine and sine rounded to float32 once, two products and a sum."""


def product_tolerance(values: torch.Tensor, weight: torch.Tensor, format_name: str) -> torch.Tensor:
    """How far a step's product may be from float64: [row, out] float64.

    - int16 codes: half a step of each group's scale, 2^-16 of its largest, on every column, and
      0.005 of a step for the float32 product that is rounded;
    - float32: each group adds one rounding of 2^-24 of what is summed so far, and scale and minimum
      are each up to three times as large as the elements that they make.
    """
    return _code_steps(values, weight, format_name) + rounding_tolerance(values, weight)


def rounding_tolerance(values: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """The float32 part of ``product_tolerance`` alone."""
    peaks = _by_group(weight).amax(-1)
    masses = _by_group(values).sum(-1)
    return 2.0**-24 * (peaks.shape[1] + 16) * 3 * (masses @ peaks.T)


def _code_steps(values: torch.Tensor, weight: torch.Tensor, format_name: str) -> torch.Tensor:
    if format_name in VALUE_FORMATS:
        return torch.zeros((), dtype=torch.float64)
    largest = _by_group(values).amax(-1)
    return 0.505 / 32767 * (largest @ _by_group(weight).sum(-1).T)


def _by_group(x: torch.Tensor) -> torch.Tensor:
    return x.double().abs().view(x.shape[0], -1, 32)


def random_weight(format_name: str, rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    """Stored rows [rows, row_bytes] uint8 with finite elements of about 0.1 to 1 in size."""
    facts = FACTS[format_name]
    draw = np.random.default_rng([seed, rows, columns, facts.type_id or 0])
    if format_name in FLOAT_FORMATS:
        return _plain(format_name, torch.from_numpy(draw.standard_normal((rows, columns))) / 2)
    stored = draw.integers(0, 256, (rows, facts.row_bytes(columns)), dtype=np.uint8)
    blocks = stored.reshape(-1, facts.block_bytes)
    if format_name == "mxfp4":
        blocks[:, 0] = draw.integers(122, 128, len(blocks))
    for at in HALF_FIELDS.get(format_name, ()):
        sizes = draw.uniform(0.01, 0.04, len(blocks)) * draw.choice([-1.0, 1.0], len(blocks))
        sizes = sizes / 16 if facts.block_elements == 256 else sizes
        blocks[:, at : at + 2] = sizes.astype("<f2").view(np.uint8).reshape(-1, 2)
    return torch.from_numpy(stored)


def _plain(format_name: str, values: torch.Tensor) -> torch.Tensor:
    dtype = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[format_name]
    return values.to(dtype).contiguous().view(torch.uint8)
