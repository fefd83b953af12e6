"""Attention of generated rows: right against float64, the same bits whoever else is there."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from kernels.checks import KernelShapeError
from kernels.pages import Pages
from kernels.rows import quantized
from kernels.step_attention.cases import CASES, Case, Inputs, build
from kernels.step_attention.kernel import combine_parts
from kernels.step_attention.sizes import PROGRAMS, part_count
from tests.helpers.gpu.step_attention import (
    check,
    expected,
    poisoned_rows,
    relative_error,
    run,
    same,
)


@pytest.fixture(autouse=True)
def few_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter takes as long for a program without keys as for one with some."""
    monkeypatch.setattr("kernels.step_attention.sizes.PROGRAMS", 6)


CPU = torch.device("cpu")
SMALL = Case(2, 1, 32, (70,))


def small_inputs(case: Case = SMALL) -> Inputs:
    return build(case, CPU, torch.Generator().manual_seed(3))


@pytest.mark.parametrize("case", [case for case in CASES if case.interpreted], ids=str)
def test_a_row_is_right_and_depends_on_nothing_but_its_own_keys(case: Case) -> None:
    check(case, CPU)


@pytest.mark.parametrize("position", [0, 70])
def test_another_key_or_value_that_the_row_sees_changes_its_result(position: int) -> None:
    inputs = small_inputs()
    before = run(SMALL, inputs)
    for side in (0, 1):
        page = int(inputs.tables[0, 0])
        stored = inputs.pages.stored.clone()
        stored[page, side, 0, position] += 1
        assert not same(before, run(SMALL, replace(inputs, pages=Pages(stored, None))))


def test_a_window_that_holds_all_keys_changes_no_bit_and_a_narrower_one_does() -> None:
    inputs = small_inputs()
    whole = run(SMALL, inputs)
    assert same(whole, run(replace(SMALL, window=71), inputs))
    assert not same(whole, run(replace(SMALL, window=70), inputs))


def test_parts_of_many_units_give_what_the_reference_gives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kernels.step_attention.sizes.PROGRAMS", 2)
    case = Case(2, 1, 32, (400, 191))
    inputs = small_inputs(case)
    assert relative_error(run(case, inputs), expected(case, inputs)) < 2e-4


def test_the_sums_become_the_rows_that_quantized_defines() -> None:
    values = torch.randn(2, 96, generator=torch.Generator().manual_seed(1)) * 3
    values[1, :32] = 0.0
    values[0, 40:42] = torch.tensor([0.5, -0.5]) * values[0, 32:64].abs().max() / 32258
    partials = torch.full((2, 98 * 4), float("nan"))
    partials[:, :96] = values
    partials[:, 96 * 4 : 96 * 4 + 2] = torch.tensor([0.0, 1.0])
    out = poisoned_rows(2, 96, CPU)
    combine_parts[2, 3](
        partials, 392, torch.zeros(2, dtype=torch.int32), 256, partials, 0,
        out.high, out.low, out.scales, out.sums, 0,
        HEADS=1, D=96, UNIT=64, PARTS=4, PARTS_WIDE=4, WINDOWED=False, GATED=False,
        DEPENDENT=False,
    )  # fmt: skip
    assert same(out, quantized(values))


def test_a_row_without_a_lane_harms_no_other() -> None:
    case = replace(SMALL, positions=(70, 70))
    inputs = small_inputs(case)
    before = run(case, inputs)
    for position in (-1, 2**30):
        lost = torch.tensor([70, position], dtype=torch.int32)
        tables = inputs.tables.clone()
        tables[1] = -1
        after = run(case, replace(inputs, positions=lost, tables=tables))
        assert torch.equal(after.high[0], before.high[0])


def test_parts_are_counted_from_the_kv_heads_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernels.step_attention.sizes.PROGRAMS", PROGRAMS)
    assert [part_count(heads) for heads in (1, 2, 3, 4, 8)] == [256, 132, 88, 66, 33]


@pytest.mark.parametrize(
    "change",
    [
        {"query": torch.zeros(1, 2, 32, dtype=torch.bfloat16)},
        {"query": torch.zeros(17, 2, 32)},
        {"query": torch.zeros(1, 2, 16)},
        {"positions": torch.zeros(1, dtype=torch.int64)},
        {"gate": torch.zeros(1, 63)},
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(change: dict[str, torch.Tensor]) -> None:
    with pytest.raises(KernelShapeError):
        run(SMALL, replace(small_inputs(), **change))  # type: ignore[arg-type]


def test_a_window_without_the_row_itself_is_refused() -> None:
    with pytest.raises(KernelShapeError):
        run(replace(SMALL, window=0), small_inputs())
