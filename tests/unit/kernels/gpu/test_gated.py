"""Gates of rows: near float64, a row by itself, codes to the bit."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from kernels.checks import KernelShapeError
from kernels.gated.cases import CASES, GatedCase, build
from kernels.gated.launch import add_gated, gated_prompt, gated_step
from kernels.gated.reference import activated
from kernels.rows import empty_rows
from tests.helpers.gpu.codes import same_rows
from tests.helpers.gpu.gated import check, step

CPU = torch.device("cpu")


@pytest.mark.parametrize("case", [case for case in CASES if case.interpreted], ids=str)
def test_a_row_is_near_float64_and_itself_among_others(case: GatedCase) -> None:
    check(case, "cpu")


def test_the_reference_is_torchs_activation() -> None:
    x = torch.linspace(-9, 9, 77, dtype=torch.float64)
    torch.testing.assert_close(activated(x, "silu"), functional.silu(x), rtol=1e-12, atol=1e-12)
    wanted = functional.gelu(x, approximate="tanh")
    torch.testing.assert_close(activated(x, "gelu_tanh"), wanted, rtol=1e-12, atol=1e-12)


def test_another_activation_gives_other_codes() -> None:
    one, other = (GatedCase(rows=1, columns=32, activation=a) for a in ("silu", "gelu_tanh"))
    inputs = build(one, CPU, torch.Generator().manual_seed(3))
    assert not same_rows(step(one, inputs, 0, 1), step(other, inputs, 0, 1))


def test_a_gate_far_from_zero_opens_or_closes() -> None:
    gate, up = torch.tensor([[200.0] * 16 + [-200.0] * 16]), torch.full((1, 32), 3.0)
    for activation in ("silu", "gelu_tanh"):
        out = torch.full((1, 32), torch.nan)
        gated_prompt(gate, up, out, activation=activation)
        assert torch.equal(out, torch.tensor([[600.0] * 16 + [0.0] * 16]))


def test_shapes_that_do_not_belong_together_are_refused() -> None:
    x = torch.zeros(2, 64)
    with pytest.raises(KernelShapeError, match="A gate of"):
        gated_prompt(x, x[:, :32], x, activation="silu")
    with pytest.raises(KernelShapeError, match="activation relu"):
        gated_prompt(x, x, x, activation="relu")
    with pytest.raises(KernelShapeError, match="An output"):
        gated_prompt(x, x, x[:1], activation="silu")
    with pytest.raises(KernelShapeError, match="Codes of"):
        gated_step(x, x, empty_rows(2, 32, CPU), activation="silu")
    with pytest.raises(KernelShapeError, match=r"for \[2, 64\]"):
        add_gated(x, x[:, :32], x)
