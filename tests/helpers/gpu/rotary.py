"""One case of turning and storing heads, checked on any device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch

from kernels.norm.reference import rms_norm
from kernels.rotary.cases import (
    BF16_TOLERANCE,
    PAGES,
    TOLERANCE,
    RotaryCase,
    RotaryInputs,
    build,
)
from kernels.rotary.launch import PAGE_ROWS, HeadColumns, HeadNorms, rotary_prompt, rotary_step
from kernels.rotary.reference import stored_codes, stored_halves, turned
from tests.helpers.gpu.codes import error, poisoned

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.uint8}
POISON = 77
STEP_ROWS = 16


@dataclass(frozen=True, slots=True)
class Stored:
    """What a launch wrote: queries, and pages with their scales."""

    query: torch.Tensor
    pages: torch.Tensor
    scales: torch.Tensor | None


Make = Callable[[RotaryCase, RotaryInputs, range], Stored]


def check(case: RotaryCase, device: str) -> dict[str, float]:
    """Errors of one case; raises AssertionError where a promise is broken."""
    inputs = build(case, torch.device(device), torch.Generator().manual_seed(1))
    found = {}
    if case.rows <= STEP_ROWS:
        stored = step(case, inputs, range(case.rows))
        found["step"] = _against_reference(case, inputs, stored, TOLERANCE)
        for row in {0, case.rows // 2, case.rows - 1}:
            alone = step(case, inputs, range(row, row + 1))
            assert _same_row(case, inputs, stored, alone, row), f"{case}: row {row} is not itself."
    stored = prompt(case, inputs, range(case.rows))
    found["prompt"] = _against_reference(case, inputs, stored, BF16_TOLERANCE)
    for row in {0, case.rows // 2, case.rows - 1}:
        alone = prompt(case, inputs, range(row, row + 1))
        assert _same_row(case, inputs, stored, alone, row), f"{case}: row {row} is not itself."
    return found


def step(case: RotaryCase, inputs: RotaryInputs, rows: range) -> Stored:
    """Some rows of a case as generated rows, each with a table of its own."""
    room = _room(case, inputs, rows, torch.float32)
    positions = torch.arange(case.first + rows.start, case.first + rows.stop, dtype=torch.int32)
    rotary_step(
        inputs.source[rows.start : rows.stop],
        inputs.columns,
        inputs.norms,
        inputs.turns,
        positions.to(inputs.source.device),
        room.pages,
        room.scales,
        inputs.table.expand(len(rows), -1).contiguous(),
        room.query,
    )
    return room


def prompt(case: RotaryCase, inputs: RotaryInputs, rows: range) -> Stored:
    """Some rows of a case as rows of a prompt."""
    return _prompt(case, inputs, rows, torch.bfloat16)


def _prompt(case: RotaryCase, inputs: RotaryInputs, rows: range, dtype: torch.dtype) -> Stored:
    room = _room(case, inputs, rows, dtype)
    rotary_prompt(
        inputs.source[rows.start : rows.stop],
        inputs.columns,
        inputs.norms,
        inputs.turns,
        case.first + rows.start,
        room.pages,
        room.scales,
        inputs.table,
        room.query,
    )
    return room


def rows_of(case: RotaryCase, inputs: RotaryInputs, stored: Stored, side: int) -> torch.Tensor:
    """K (side 0) or V of a case's rows as they lie in the pages: [rows, kv_head, head_dim]."""
    return _gathered(case, inputs, stored.pages, side)


def _room(case: RotaryCase, inputs: RotaryInputs, rows: range, dtype: torch.dtype) -> Stored:
    device, shape = inputs.source.device, (PAGES, 2, case.kv_heads, PAGE_ROWS)
    pages = torch.full((*shape, case.dim), POISON, dtype=DTYPES[case.page_format], device=device)
    scales = poisoned(*shape, device=device) if case.page_format == "fp8" else None
    query = poisoned(len(rows), case.heads, case.dim, device=device, dtype=dtype)
    return Stored(query, pages, scales)


def _gathered(
    case: RotaryCase, inputs: RotaryInputs, pages: torch.Tensor, side: int
) -> torch.Tensor:
    positions = torch.arange(case.first, case.first + case.rows, device=pages.device)
    ids = inputs.table[positions // PAGE_ROWS].long()
    return pages[ids, side, :, positions % PAGE_ROWS]


def _against_reference(
    case: RotaryCase, inputs: RotaryInputs, stored: Stored, tolerance: float
) -> float:
    make = step if tolerance == TOLERANCE else partial(_prompt, dtype=torch.float32)
    found = error(stored.query.flatten(0, 1), _wanted_heads(case, inputs).flatten(0, 1))
    assert found <= tolerance, f"{case}: queries are off by {found}."
    written = 0 if case.keys == "none" else case.rows * case.kv_heads * case.dim * 2
    codes = stored.pages.view(torch.uint8 if case.page_format == "fp8" else torch.int16)
    poison = torch.full((1,), POISON, dtype=stored.pages.dtype).view(codes.dtype).item()
    touched = int((codes != poison).sum())
    assert touched <= written, f"{case}: {touched} elements of pages are not as they were."
    if written:
        assert touched > 0.9 * written, f"{case}: only {touched} of {written} were stored."
        _check_pages(case, inputs, stored, make)
    return found


def _check_pages(case: RotaryCase, inputs: RotaryInputs, stored: Stored, make: Make) -> None:
    """K and V are the nearest of the format to the bit, given the float32 that the kernel makes.

    That shows where their columns are taken for queries of the same kind of launch.
    """
    norms, columns = inputs.norms, inputs.columns
    as_query = (
        HeadNorms(query=norms.key, query_eps=norms.key_eps),
        HeadNorms(query=norms.value, query_eps=norms.value_eps),
    )
    for side, first in enumerate((columns.key, columns.value)):
        heads = HeadColumns(first, -1, -1, case.kv_heads, case.kv_heads, case.dim)
        wide = replace(
            inputs,
            columns=heads,
            norms=as_query[side],
            turns=inputs.turns if side == 0 else None,
        )
        as_queries = replace(case, heads=case.kv_heads, keys="none")
        rows = make(as_queries, wide, range(case.rows)).query
        kind = "KV"[side]
        if stored.scales is None:
            wanted = stored_halves(rows.cpu(), stored.pages.dtype)
            same = torch.equal(rows_of(case, inputs, stored, side).cpu(), wanted)
        else:
            codes, scales = stored_codes(rows.cpu())
            same = torch.equal(rows_of(case, inputs, stored, side).cpu(), codes)
            same &= torch.equal(_gathered(case, inputs, stored.scales, side).cpu(), scales)
        assert same, f"{case}: {kind} is not what its format rounds to."


def _wanted_heads(case: RotaryCase, inputs: RotaryInputs) -> torch.Tensor:
    heads = inputs.source[:, : case.heads * case.dim].double().view(case.rows, -1, case.dim)
    if inputs.norms.query_eps is not None:
        heads = rms_norm(heads, inputs.norms.query, inputs.norms.query_eps)
    positions = torch.arange(case.first, case.first + case.rows, device=heads.device)
    return turned(heads, positions, inputs.frequencies, case.magnitude, halves=case.halves)


def _same_row(
    case: RotaryCase, inputs: RotaryInputs, stored: Stored, alone: Stored, row: int
) -> bool:
    same = torch.equal(stored.query[row], alone.query[0])
    if case.keys == "none":
        return same
    for side in (0, 1):
        pair = [_gathered(case, inputs, each.pages, side)[row] for each in (stored, alone)]
        same &= torch.equal(*pair)
        if stored.scales is not None and alone.scales is not None:
            pair = [
                _gathered(case, inputs, each, side)[row] for each in (stored.scales, alone.scales)
            ]
            same &= torch.equal(*pair)
    return same
