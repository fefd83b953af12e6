"""Packed weights: how a weight's codes, scales and minima lie on a GPU. Facts only, no torch.

A packed weight keeps every bit of the checkpoint's, sorted into planes that kernels read in whole
words. Each plane is a matrix with one row for each row of the weight:

    low     int32 words, ``low_bits`` (2, 4 or 8) of each code
    high    int32 words, the ``high_bits`` (0, 1 or 2) above them
    scales  one a group of ``group`` elements
    supers  float16, one for 256 elements; there where scales are whole numbers
    minima, super_minima   the same for what is added

The codes of 32 consecutive elements (a block) belong to 8 words of int8 activations: word j holds
elements 4j .. 4j + 3, the first one in its lowest byte. So that one mask gives one such word:

    low 8   8 words: word j is byte by byte activations' word j
    low 4   4 words: byte b of word i has element 4i + b in its low half, 16 + 4i + b in its high
            half, so ``w & 0x0F0F0F0F`` meets activations' word i and ``w >> 4 & ..`` word 4 + i
    low 2   2 words: field f (bits 2f, 2f + 1) of byte b of word i is element 8f + 4i + b, which is
            activations' word 2f + i
    high 1  1 word: bit 8b + j is the top bit of element 4j + b
    high 2  2 words: field f of byte b of word i holds the top bits of element 16i + 4f + b

The value of an element with code c (``low | high << low_bits``):

    scale * (c - offset) + minimum      or      scale * table[c]  where there is a table
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

BLOCK: Final = 32
"""Elements of a block; a row of a packed weight is whole blocks."""
SUPER_BLOCK: Final = 256
ALIGNMENT: Final = 256
"""Bytes at whose multiples a plane begins."""


class ScaleKind(Enum):
    """What one entry of a plane of scales or minima is.

    ``F16``, ``BF16``, ``F32``: the number itself. ``E8M0``: uint8 e, which stands for
    2 ** (e - 128): the halves of what MXFP4 stores, for its table is doubled. ``SUPER_U8`` and
    ``SUPER_I8``: a whole number, times the float16 of its 256 elements.
    """

    F16 = "f16"
    BF16 = "bf16"
    F32 = "f32"
    E8M0 = "e8m0"
    SUPER_U8 = "super_u8"
    SUPER_I8 = "super_i8"

    @property
    def entry_bytes(self) -> int:
        """Of one entry of its plane."""
        return {ScaleKind.F16: 2, ScaleKind.BF16: 2, ScaleKind.F32: 4}.get(self, 1)

    @property
    def has_super(self) -> bool:
        """Whether a plane of float16 goes with it."""
        return self in (ScaleKind.SUPER_U8, ScaleKind.SUPER_I8)


@dataclass(frozen=True, slots=True)
class PackedLayout:
    """One way of packing.

    Attributes:
        low_bits: 2, 4 or 8; high_bits: 0, 1 or 2.
        group: elements of one scale: 16, 32, 64 or 128.
        offset: taken from each code before it is scaled; 0 with a table.
        signed: codes are signed bytes (only with ``low_bits`` 8 and no offset).
        table: what each of 16 codes stands for, as int8.
        minimum: None where nothing is added.
        subtracts: the minimum is taken away instead (K formats).
    """

    name: str
    low_bits: int
    high_bits: int
    group: int
    scale: ScaleKind
    offset: int = 0
    signed: bool = False
    table: tuple[int, ...] | None = None
    minimum: ScaleKind | None = None
    subtracts: bool = False

    @property
    def row_unit(self) -> int:
        """Elements of which a row is a multiple."""
        kinds = (self.scale, self.minimum)
        has_super = any(kind is not None and kind.has_super for kind in kinds)
        return SUPER_BLOCK if has_super else max(BLOCK, self.group)

    @property
    def row_unit_bytes(self) -> int:
        """Bytes of ``row_unit`` elements of one row, over all planes."""
        unit = self.row_unit
        size = unit * (self.low_bits + self.high_bits) // 8
        for kind in (self.scale, self.minimum):
            if kind is not None:
                size += unit // self.group * kind.entry_bytes + 2 * kind.has_super
        return size


_NL: Final = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
_E2M1: Final = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)
_F16, _I8, _U8 = ScaleKind.F16, ScaleKind.SUPER_I8, ScaleKind.SUPER_U8

_TABLE = (
    PackedLayout("q4_0", 4, 0, 32, _F16, offset=8),
    PackedLayout("q4_1", 4, 0, 32, _F16, minimum=_F16),
    PackedLayout("q5_0", 4, 1, 32, _F16, offset=16),
    PackedLayout("q5_1", 4, 1, 32, _F16, minimum=_F16),
    PackedLayout("q8_0", 8, 0, 32, _F16, signed=True),
    PackedLayout("q2_k", 2, 0, 16, _U8, minimum=_U8, subtracts=True),
    PackedLayout("q3_k", 2, 1, 16, _I8, offset=4),
    PackedLayout("q4_k", 4, 0, 32, _U8, minimum=_U8, subtracts=True),
    PackedLayout("q5_k", 4, 1, 32, _U8, minimum=_U8, subtracts=True),
    PackedLayout("q6_k", 4, 2, 16, _I8, offset=32),
    PackedLayout("iq4_nl", 4, 0, 32, _F16, table=_NL),
    PackedLayout("iq4_xs", 4, 0, 32, _I8, table=_NL),
    PackedLayout("mxfp4", 4, 0, 32, ScaleKind.E8M0, table=_E2M1),
)

LAYOUTS: Mapping[str, PackedLayout] = MappingProxyType({each.name: each for each in _TABLE})
"""By the name of the GGUF format that is packed so."""


def packed_bytes(layout: PackedLayout, rows: int, columns: int) -> int:
    """Bytes of the buffer for such a weight, the planes' alignment included."""
    return sum(aligned(size) for size in plane_bytes(layout, rows, columns))


def plane_bytes(layout: PackedLayout, rows: int, columns: int) -> list[int]:
    """Of low, high, scales, supers, minima and super_minima; 0 for a plane that is not there."""
    groups, supers = columns // layout.group, columns // SUPER_BLOCK
    sizes = [columns // BLOCK * 4 * bits for bits in (layout.low_bits, layout.high_bits)]
    for kind in (layout.scale, layout.minimum):
        sizes.append(0 if kind is None else groups * kind.entry_bytes)
        sizes.append(2 * supers if kind is not None and kind.has_super else 0)
    return [rows * size for size in sizes]


def aligned(size: int) -> int:
    """Bytes up to where the next plane may begin."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def mlx_layout(bits: int, group: int, scale: ScaleKind) -> PackedLayout | None:
    """Of MLX's affine codes, whose scales and minima lie in tensors of their own.

    Args:
        bits: 4 or 8; others have none.
        group: elements of one scale and minimum: 32, 64 or 128.
        scale: of the tensors of scales and minima: F16, BF16 or F32.
    """
    if bits not in (4, 8) or group not in (32, 64, 128):
        return None
    return PackedLayout(f"mlx{bits}", bits, 0, group, scale, minimum=scale)
