"""Residual and norm of rows: near float64, a row by itself, codes to the bit."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from kernels.checks import KernelShapeError
from kernels.norm.cases import CASES, NormCase, build
from kernels.norm.launch import norm_prompt, norm_step
from kernels.norm.reference import rms_norm
from tests.helpers.gpu.codes import poisoned_rows
from tests.helpers.gpu.norm import EPS, check, part, step

CPU = torch.device("cpu")


@pytest.mark.parametrize("case", [case for case in CASES if case.interpreted], ids=str)
def test_a_row_is_near_float64_and_itself_among_others(case: NormCase) -> None:
    check(case, "cpu")


def test_the_reference_is_torchs_norm() -> None:
    x, weight = torch.randn(3, 96), torch.rand(96)
    wanted = functional.rms_norm(x.double(), (96,), weight.double(), EPS)
    torch.testing.assert_close(rms_norm(x, weight, EPS), wanted, rtol=1e-12, atol=1e-12)


def test_a_row_that_nothing_is_added_to_stays_as_it_is() -> None:
    case = NormCase(rows=2, columns=64)
    inputs = build(case, CPU, torch.Generator().manual_seed(2))
    assert torch.equal(step(case, inputs)[0], inputs.x)


def test_another_row_has_another_norm() -> None:
    case = NormCase(rows=2, columns=64)
    inputs = build(case, CPU, torch.Generator().manual_seed(2))
    one, other = (step(case, part(inputs, row, row + 1))[1] for row in (0, 1))
    assert not torch.equal(one, other)


def test_only_what_is_wanted_is_written() -> None:
    x = torch.randn(2, 64)
    plain = torch.full((2, 64), torch.nan)
    norm_step(x, None, EPS, None, plain=plain)
    torch.testing.assert_close(plain.double(), rms_norm(x, None, EPS), rtol=1e-6, atol=1e-6)
    again = torch.full((2, 64), torch.nan)
    norm_prompt(x, None, EPS, None, plain=again)
    assert torch.equal(again, plain)


def test_shapes_that_do_not_belong_together_are_refused() -> None:
    x = torch.zeros(2, 64)
    with pytest.raises(KernelShapeError, match="rows of 64"):
        norm_step(x, torch.zeros(32), EPS, None)
    with pytest.raises(KernelShapeError, match="too few"):
        norm_step(x, None, EPS, None, added=torch.zeros(1, 64))
    with pytest.raises(KernelShapeError, match="Codes of"):
        norm_step(x, None, EPS, poisoned_rows(2, 32, CPU))
    with pytest.raises(KernelShapeError, match="An output"):
        norm_prompt(x, None, EPS, torch.zeros(2, 32, dtype=torch.bfloat16))
