"""What holds of every case of attention of a prompt chunk, on the CPU as on a GPU."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import torch

from kernels.device import gpu_facts
from kernels.prompt_attention import reference
from kernels.prompt_attention.cases import TOLERANCE, Case, Inputs, build
from kernels.prompt_attention.launch import LARGE, prompt_attention


def check(case: Case, device: torch.device) -> dict[str, float]:
    """Compare with the reference, with chunks cut elsewhere and with other page ids."""
    inputs = build(case, device, torch.Generator().manual_seed(7))
    found = run(case, inputs)
    moved = run(case, build(case, device, torch.Generator().manual_seed(7)))
    assert torch.equal(found, moved), f"Page ids change the bits of {case}."
    for first, end in cuts(case.rows):
        piece = run(case, rows_of(inputs, first, end))
        assert torch.equal(found[first:end], piece), f"Rows {first}:{end} of {case} depend on more."
    if device.type == "cuda" and gpu_facts(device.index or 0).capability >= (9, 0):
        assert torch.equal(found, copied_otherwise(case, inputs)), f"{case}: copies differ."
    error = relative_error(found, expected(case, inputs))
    assert error <= TOLERANCE, f"{case} is off by {error:.2e}."
    return {"error": error}


def run(case: Case, inputs: Inputs) -> torch.Tensor:
    """Launch into memory that holds NaN."""
    rows, heads, head_dim = inputs.query.shape
    device = inputs.query.device
    whole = torch.full(
        (rows, heads * head_dim + 16), float("nan"), dtype=torch.bfloat16, device=device
    )
    out = whole[:, : heads * head_dim]
    prompt_attention(
        inputs.query,
        inputs.pages.stored,
        inputs.pages.scales,
        inputs.table,
        inputs.position,
        out,
        window=case.window,
        scale=case.scale,
        gate=inputs.gate,
        block_ends=inputs.block_ends,
        cap=case.cap,
    )
    assert bool(whole[:, heads * head_dim :].isnan().all()), "Written past a row's end."
    return out


def copied_otherwise(case: Case, inputs: Inputs) -> torch.Tensor:
    """The result where tiles of keys are copied in the other of the two ways."""
    table = {wide: replace(each, described=not each.described) for wide, each in LARGE.items()}
    with patch.dict(LARGE, table):
        return run(case, inputs)


def expected(case: Case, inputs: Inputs) -> torch.Tensor:
    """The reference's result, float64."""
    return reference.prompt_attention(
        inputs.query,
        inputs.pages,
        inputs.table.tolist(),
        inputs.position,
        window=case.window,
        scale=case.scale,
        gate=inputs.gate,
        block_ends=None if inputs.block_ends is None else inputs.block_ends.tolist(),
        cap=case.cap,
    )


def cuts(rows: int) -> list[tuple[int, int]]:
    """Chunks to compare with the whole: single rows, and an odd part at its start, middle, end."""
    ends = {0, 1, rows // 3, rows - 1}
    single = {(row, row + 1) for row in ends if row < rows}
    parts = {(0, -(-rows // 2)), (rows // 2, rows), (rows // 5, rows - rows // 7)}
    return sorted((single | parts) - {(0, rows)})


def rows_of(inputs: Inputs, first: int, end: int) -> Inputs:
    """The inputs of a part of the rows."""
    part = slice(first, end)
    return Inputs(
        inputs.query[part].clone(),
        inputs.pages,
        inputs.table,
        inputs.position + first,
        None if inputs.gate is None else inputs.gate[part].clone(),
        None if inputs.block_ends is None else inputs.block_ends[part].clone(),
    )


def relative_error(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """The largest error, as a part of its row's largest element; infinite for NaN."""
    error = (found.double() - wanted).abs().amax(1) / wanted.abs().amax(1)
    return float(error.nan_to_num(nan=float("inf")).max())
