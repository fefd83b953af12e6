"""Unpacked weights: the bits of the plain decode, rounded once."""

from __future__ import annotations

import pytest
import torch

from kernels.checks import KernelShapeError
from kernels.packed.layout import LAYOUTS, packed_bytes
from kernels.packed.pack import pack
from kernels.packed.weight import DenseWeight, packed_views
from kernels.quant import FORMATS
from kernels.unpack.cases import CASES, UnpackCase, build
from kernels.unpack.launch import unpack, unpack_rows
from tests.helpers.gpu.unpack import check

CPU = torch.device("cpu")


@pytest.mark.parametrize("case", [case for case in CASES if case.interpreted], ids=str)
def test_rows_are_the_decoded_ones_bit_for_bit(case: UnpackCase) -> None:
    assert check(case, "cpu")["numbers"] > 0


def test_packed_blocks_of_a_file_come_back_as_their_own_decode() -> None:
    raw = torch.randint(0, 256, (2, 144), dtype=torch.uint8, generator=torch.Generator())
    raw[:, [1, 3]] = 0x20  # finite scales
    layout = LAYOUTS["q4_k"]
    buffer = torch.zeros(packed_bytes(layout, 2, 256), dtype=torch.uint8)
    weight = packed_views(buffer, layout, 2, 256)
    pack("q4_k", raw, weight)
    out = torch.full((2, 256), torch.nan, dtype=torch.bfloat16)
    unpack(weight, 0, out)
    assert torch.equal(out, FORMATS["q4_k"].decode(raw).bfloat16())


def test_another_code_is_another_number() -> None:
    inputs = build(UnpackCase("q4_0", 1, 32), CPU, torch.Generator().manual_seed(2))
    assert not isinstance(inputs.weight, DenseWeight)
    found = []
    for _ in range(2):
        out = torch.full((1, 32), torch.nan, dtype=torch.bfloat16)
        unpack(inputs.weight, 0, out)
        found.append(out)
        inputs.weight.low[0, 1] ^= 0x00100000
    assert (found[0] != found[1]).nonzero()[:, 1].tolist() == [22]


def test_what_does_not_fit_is_refused() -> None:
    weight = DenseWeight(torch.zeros(4, 32))
    half = torch.zeros(2, 32, dtype=torch.bfloat16)
    ids = torch.zeros(2, dtype=torch.int32)
    with pytest.raises(KernelShapeError, match="Rows 3 to 5"):
        unpack(weight, 3, half)
    with pytest.raises(KernelShapeError, match="contiguous bfloat16"):
        unpack(weight, 0, torch.zeros(2, 32))
    with pytest.raises(KernelShapeError, match="contiguous int32"):
        unpack_rows(weight, ids.long(), torch.zeros(2, 32), 1.0)
    with pytest.raises(KernelShapeError, match="2 rows of 32"):
        unpack_rows(weight, ids, torch.zeros(3, 32), 1.0)
    with pytest.raises(KernelShapeError, match="dense rows"):
        unpack_rows(weight, ids, torch.zeros(32, 2).T, 1.0)
