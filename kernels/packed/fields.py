"""Quant blocks of each packed format taken apart: codes a byte each, scales, minima, their supers.

``b`` is [block, bytes] uint8 throughout. Codes stay uint8, for a whole model passes through here
and wider intermediates would cost memory and time. Block diagrams are in ``kernels.quant``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch


@dataclass(frozen=True, slots=True)
class Fields:
    """One run of quant blocks.

    Attributes:
        codes: [block, elements] uint8; signed codes as their bit patterns.
        scales: [block, groups] in the dtype of the layout's plane.
        supers: [block, 1] float16; None where scales are the numbers themselves.
        minima, super_minima: the same of what is added.
    """

    codes: torch.Tensor
    scales: torch.Tensor
    supers: torch.Tensor | None = None
    minima: torch.Tensor | None = None
    super_minima: torch.Tensor | None = None


def _runs(b: torch.Tensor, width: int, run: int) -> torch.Tensor:
    """Fields of ``width`` bits, a run of bytes plane by plane: as ``kernels.quant.bits.planes``."""
    shifts = torch.arange(0, 8, width, dtype=torch.uint8, device=b.device).view(-1, 1)
    found = b.reshape(b.shape[0], -1, 1, run) >> shifts & ((1 << width) - 1)
    return found.view(b.shape[0], -1)


def _in_order(b: torch.Tensor, width: int) -> torch.Tensor:
    """Fields of ``width`` bits in order, lowest of the first byte first."""
    shifts = torch.arange(0, 8, width, dtype=torch.uint8, device=b.device)
    return (b.unsqueeze(-1) >> shifts & ((1 << width) - 1)).view(b.shape[0], -1)


def _halves(b: torch.Tensor, at: int) -> torch.Tensor:
    return b[:, at : at + 2].contiguous().view(torch.float16)


def _q4_0(b: torch.Tensor) -> Fields:
    return Fields(_runs(b[:, 2:18], 4, 16), _halves(b, 0))


def _q4_1(b: torch.Tensor) -> Fields:
    return Fields(_runs(b[:, 4:20], 4, 16), _halves(b, 0), minima=_halves(b, 2))


def _q5_0(b: torch.Tensor) -> Fields:
    return Fields(_runs(b[:, 6:22], 4, 16) | _in_order(b[:, 2:6], 1) << 4, _halves(b, 0))


def _q5_1(b: torch.Tensor) -> Fields:
    codes = _runs(b[:, 8:24], 4, 16) | _in_order(b[:, 4:8], 1) << 4
    return Fields(codes, _halves(b, 0), minima=_halves(b, 2))


def _q8_0(b: torch.Tensor) -> Fields:
    return Fields(b[:, 2:34], _halves(b, 0))


def _q2_k(b: torch.Tensor) -> Fields:
    factors = b[:, 0:16]
    codes = _runs(b[:, 16:80], 2, 32)
    return Fields(codes, factors & 15, _halves(b, 80), factors >> 4, _halves(b, 82))


def _q3_k(b: torch.Tensor) -> Fields:
    codes = _runs(b[:, 32:96], 2, 32) | _runs(b[:, 0:32], 1, 32) << 2
    scales = _runs(b[:, 96:104], 4, 8) | _runs(b[:, 104:108], 2, 4) << 4
    return Fields(codes, (scales - 32).view(torch.int8), _halves(b, 108))


def _q4_k(b: torch.Tensor) -> Fields:
    return _with_minima(b, _runs(b[:, 16:144], 4, 32))


def _q5_k(b: torch.Tensor) -> Fields:
    return _with_minima(b, _runs(b[:, 48:176], 4, 32) | _runs(b[:, 16:48], 1, 32) << 4)


def _with_minima(b: torch.Tensor, codes: torch.Tensor) -> Fields:
    first, second, third = b[:, 4:8], b[:, 8:12], b[:, 12:16]
    scales = torch.cat((first & 63, third & 15 | first >> 6 << 4), dim=1)
    minima = torch.cat((second & 63, third >> 4 | second >> 6 << 4), dim=1)
    return Fields(codes, scales, _halves(b, 0), minima, _halves(b, 2))


def _q6_k(b: torch.Tensor) -> Fields:
    codes = _runs(b[:, 0:128], 4, 64) | _runs(b[:, 128:192], 2, 32) << 4
    return Fields(codes, b[:, 192:208].contiguous().view(torch.int8), _halves(b, 208))


def _iq4_xs(b: torch.Tensor) -> Fields:
    low = _in_order(b[:, 4:8], 4)
    scales = low | _in_order(b[:, 2:4], 2) << 4
    return Fields(_runs(b[:, 8:136], 4, 16), (scales - 32).view(torch.int8), _halves(b, 0))


def _mxfp4(b: torch.Tensor) -> Fields:
    return Fields(_runs(b[:, 1:17], 4, 16), b[:, 0:1])


TAKEN_APART: Mapping[str, Callable[[torch.Tensor], Fields]] = MappingProxyType(
    {
        "q4_0": _q4_0,
        "q4_1": _q4_1,
        "q5_0": _q5_0,
        "q5_1": _q5_1,
        "q8_0": _q8_0,
        "q2_k": _q2_k,
        "q3_k": _q3_k,
        "q4_k": _q4_k,
        "q5_k": _q5_k,
        "q6_k": _q6_k,
        "iq4_nl": _q4_0,
        "iq4_xs": _iq4_xs,
        "mxfp4": _mxfp4,
    }
)
"""By the name of the format."""
