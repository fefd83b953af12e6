"""One case of unpacking, checked on any device."""

from __future__ import annotations

import torch

from kernels.unpack.cases import UnpackCase, build
from kernels.unpack.launch import unpack, unpack_rows
from kernels.unpack.reference import unpacked, unpacked_rows
from tests.helpers.gpu.codes import bits, poisoned

SCALE = 3.3


def check(case: UnpackCase, device: torch.device | str) -> dict[str, float]:
    """Raises AssertionError where a bit differs; the result says how many numbers were compared."""
    where = torch.device(device)
    inputs = build(case, where, torch.Generator(device=where).manual_seed(1))
    out = poisoned(case.taken, case.columns, device=where, dtype=torch.bfloat16)
    unpack(inputs.weight, case.first, out)
    wanted = unpacked(inputs.weight, case.first, case.taken)
    assert torch.equal(out.view(torch.int16), wanted.view(torch.int16)), f"{case}: other numbers."
    wide = poisoned(len(inputs.ids), case.columns + 8, device=where)
    unpack_rows(inputs.weight, inputs.ids, wide[:, : case.columns], SCALE)
    rows = unpacked_rows(inputs.weight, inputs.ids, SCALE)
    assert torch.equal(bits(wide[:, : case.columns]), bits(rows)), f"{case}: other rows."
    assert bool(wide[:, case.columns :].isnan().all()), f"{case}: written past the row."
    return {"numbers": float(out.numel() + rows.numel())}
