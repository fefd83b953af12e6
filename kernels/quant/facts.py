"""Sizes and numbers of every tensor format, as plain facts.

The checkpoint readers, the planner and ``kernels.quant.FORMATS`` share this one table. No torch
here, and importing it loads none. To add a format: one line here, and a module of this folder with
a function of the format's name that decodes blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class FormatFacts:
    """What is fixed about a format.

    Attributes:
        name: lower case, as in ``TensorFacts.format``.
        type_id: the number that GGUF files store; None for a format that they do not have.
        block_elements: elements of one quant block, along the fastest dimension.
        block_bytes: bytes of one quant block.
        module: the file of ``kernels.quant`` that has the function ``name``, its decode.
    """

    name: str
    type_id: int | None
    block_elements: int
    block_bytes: int
    module: str

    def row_bytes(self, elements: int) -> int:
        """Bytes of a row of ``elements``, which must be whole blocks."""
        return elements // self.block_elements * self.block_bytes


_TABLE = (
    FormatFacts("f32", 0, 1, 4, "plain"),
    FormatFacts("f16", 1, 1, 2, "plain"),
    FormatFacts("bf16", 30, 1, 2, "plain"),
    FormatFacts("f64", 28, 1, 8, "plain"),
    FormatFacts("i8", 24, 1, 1, "plain"),
    FormatFacts("i16", 25, 1, 2, "plain"),
    FormatFacts("i32", 26, 1, 4, "plain"),
    FormatFacts("i64", 27, 1, 8, "plain"),
    FormatFacts("q4_0", 2, 32, 18, "q4_0"),
    FormatFacts("q4_1", 3, 32, 20, "q4_1"),
    FormatFacts("q5_0", 6, 32, 22, "q5_0"),
    FormatFacts("q5_1", 7, 32, 24, "q5_1"),
    FormatFacts("q8_0", 8, 32, 34, "q8_0"),
    FormatFacts("q1_0", 41, 128, 18, "q1_0"),
    FormatFacts("q2_k", 10, 256, 84, "q2_k"),
    FormatFacts("q3_k", 11, 256, 110, "q3_k"),
    FormatFacts("q4_k", 12, 256, 144, "q4_k"),
    FormatFacts("q5_k", 13, 256, 176, "q5_k"),
    FormatFacts("q6_k", 14, 256, 210, "q6_k"),
    FormatFacts("iq1_s", 19, 256, 50, "iq1"),
    FormatFacts("iq1_m", 29, 256, 56, "iq1"),
    FormatFacts("iq2_xxs", 16, 256, 66, "iq2"),
    FormatFacts("iq2_xs", 17, 256, 74, "iq2"),
    FormatFacts("iq2_s", 22, 256, 82, "iq2"),
    FormatFacts("iq3_xxs", 18, 256, 98, "iq3"),
    FormatFacts("iq3_s", 21, 256, 110, "iq3"),
    FormatFacts("iq4_nl", 20, 32, 18, "iq4"),
    FormatFacts("iq4_xs", 23, 256, 136, "iq4"),
    FormatFacts("tq1_0", 34, 256, 54, "tq"),
    FormatFacts("tq2_0", 35, 256, 66, "tq"),
    FormatFacts("mxfp4", 39, 32, 17, "fp4"),
    FormatFacts("nvfp4", 40, 64, 36, "fp4"),
    FormatFacts("mlx2", None, 4, 1, "mlx"),
    FormatFacts("mlx3", None, 8, 3, "mlx"),
    FormatFacts("mlx4", None, 2, 1, "mlx"),
    FormatFacts("mlx5", None, 8, 5, "mlx"),
    FormatFacts("mlx6", None, 4, 3, "mlx"),
    FormatFacts("mlx8", None, 1, 1, "mlx"),
    FormatFacts("e2m1", None, 2, 1, "fp4"),
    FormatFacts("f8_e4m3", None, 1, 1, "fp8"),
    FormatFacts("e8m0", None, 1, 1, "fp8"),
)

FACTS: Mapping[str, FormatFacts] = MappingProxyType({facts.name: facts for facts in _TABLE})
"""Every format that Hearth decodes, by name."""

FACTS_BY_TYPE: Mapping[int, FormatFacts] = MappingProxyType(
    {facts.type_id: facts for facts in _TABLE if facts.type_id is not None}
)
"""Those that GGUF has, by its type number."""

FOREIGN_NAMES: Mapping[int, str] = MappingProxyType(
    {
        4: "Q4_2, retired in 2023",
        5: "Q4_3, retired in 2023",
        9: "Q8_1, meant for activations",
        15: "Q8_K, meant for activations",
        31: "Q4_0_4_4, retired in 2024",
        32: "Q4_0_4_8, retired in 2024",
        33: "Q4_0_8_8, retired in 2024",
        36: "IQ4_NL_4_4, retired in 2024",
        37: "IQ4_NL_4_8, retired in 2024",
        38: "IQ4_NL_8_8, retired in 2024",
        42: "Q2_0",
        137: "IQ2_K of the ik_llama.cpp fork",
        138: "IQ3_K of the ik_llama.cpp fork",
        139: "IQ4_K of the ik_llama.cpp fork",
        140: "IQ5_K of the ik_llama.cpp fork",
        141: "IQ6_K of the ik_llama.cpp fork",
    }
)
"""Type numbers that are known by name and not decoded, for the sentence that refuses them."""
