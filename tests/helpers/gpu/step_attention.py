"""What holds of every case of attention of generated rows, on the CPU as on a GPU."""

from __future__ import annotations

import torch

from kernels.pages import PAGE_SLOTS
from kernels.rows import QuantizedRows
from kernels.step_attention.cases import TOLERANCE, Case, Inputs, build
from kernels.step_attention.launch import step_attention
from kernels.step_attention.reference import attend, gated, step_spans
from kernels.step_attention.sizes import partial_floats


def check(case: Case, device: torch.device) -> dict[str, float]:
    """Compare with the reference, with one row at a time and with other page ids."""
    inputs = build(case, device, torch.Generator().manual_seed(7))
    found = run(case, inputs)
    moved = run(case, build(case, device, torch.Generator().manual_seed(7)))
    assert same(found, moved), f"Page ids change the bits of {case}."
    for row in range(len(case.positions)):
        alone = run(case, one_row(inputs, row))
        assert same(part(found, row), alone), f"Row {row} of {case} depends on the others."
    error = relative_error(found, expected(case, inputs))
    assert error <= TOLERANCE, f"{case} is off by {error:.2e}."
    return {"error": error}


def run(case: Case, inputs: Inputs) -> QuantizedRows:
    """Launch on memory that holds rubbish."""
    rows, heads, head_dim = inputs.query.shape
    device = inputs.query.device
    floats = partial_floats(rows, heads, head_dim, case.kv_heads)
    partials = torch.full((floats,), float("nan"), device=device)
    out = poisoned_rows(rows, heads * head_dim, device)
    step_attention(
        inputs.query,
        inputs.pages.stored,
        inputs.pages.scales,
        inputs.tables,
        inputs.positions,
        partials,
        out,
        window=case.window,
        scale=case.scale,
        gate=inputs.gate,
        cap=case.cap,
    )
    return out


def expected(case: Case, inputs: Inputs) -> torch.Tensor:
    """The reference's result, float64."""
    spans = step_spans(list(case.positions), case.window)
    tables = [row.tolist() for row in inputs.tables]
    mixed = attend(inputs.query, inputs.pages, tables, spans, scale=case.scale, cap=case.cap)
    return gated(mixed, inputs.gate)


def one_row(inputs: Inputs, row: int) -> Inputs:
    """The inputs of one row by itself, its table no longer than it must be."""
    one = slice(row, row + 1)
    used = int(inputs.positions[row]) // PAGE_SLOTS + 1
    return Inputs(
        inputs.query[one].clone(),
        inputs.pages,
        inputs.tables[one, :used].contiguous(),
        inputs.positions[one],
        None if inputs.gate is None else inputs.gate[one].clone(),
    )


def poisoned_rows(rows: int, columns: int, device: torch.device) -> QuantizedRows:
    """Rows whose every plane must be overwritten to be right."""
    return QuantizedRows(
        torch.full((rows, columns), -128, dtype=torch.int8, device=device),
        torch.full((rows, columns), -128, dtype=torch.int8, device=device),
        torch.full((rows, columns // 32), float("nan"), device=device),
        torch.full((rows, columns // 16), 1 << 30, dtype=torch.int32, device=device),
    )


def part(rows: QuantizedRows, row: int) -> QuantizedRows:
    """One row of them."""
    one = slice(row, row + 1)
    return QuantizedRows(rows.high[one], rows.low[one], rows.scales[one], rows.sums[one])


def same(one: QuantizedRows, other: QuantizedRows) -> bool:
    """Whether all planes hold the same bits, none of them NaN."""
    pairs = (
        (one.high, other.high),
        (one.low, other.low),
        (one.scales, other.scales),
        (one.sums, other.sums),
    )
    return all(torch.equal(left, right) for left, right in pairs)


def relative_error(found: QuantizedRows, wanted: torch.Tensor) -> float:
    """The largest error, as a part of its row's largest element; infinite for NaN."""
    error = (found.values() - wanted).abs().amax(1) / wanted.abs().amax(1)
    return float(error.nan_to_num(nan=float("inf")).max())
