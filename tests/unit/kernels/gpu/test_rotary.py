"""Heads turned and stored: near float64 at any position, a row by itself, pages to the bit."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.forward.pages import LayerPages, fp8_codes
from engine.forward.rotation import rotation
from engine.models.spec import RopeSpec, RopeStyle
from kernels.checks import KernelShapeError
from kernels.rotary.cases import ANGLE_TOLERANCE, CASES, RotaryCase, build
from kernels.rotary.launch import HeadColumns, HeadNorms, Turns, rotary_prompt, rotary_step
from kernels.rotary.reference import stored_codes, stored_halves, turned
from kernels.rotary.turns import turns_of
from tests.helpers.gpu.rotary import POISON, check, prompt, rows_of, step

CPU = torch.device("cpu")


@pytest.mark.parametrize("case", [case for case in CASES if case.interpreted], ids=str)
def test_heads_are_near_float64_and_pages_hold_the_nearest(case: RotaryCase) -> None:
    check(case, "cpu")


@pytest.mark.parametrize("style", RopeStyle)
def test_the_reference_is_the_engines_rotation(style: RopeStyle) -> None:
    frequencies = tuple(1_000.0 ** (-p / 8) for p in range(8))
    heads = torch.randn(5, 1, 3, 24)
    wanted = torch.empty_like(heads)
    rotation(RopeSpec(style, frequencies, 1.1), range(700, 705)).apply(heads, wanted)
    halves = style is RopeStyle.HALVES
    found = turned(
        heads[:, 0],
        torch.arange(700, 705),
        torch.tensor(frequencies, dtype=torch.float64),
        1.1,
        halves=halves,
    )
    torch.testing.assert_close(found, wanted[:, 0].double(), rtol=1e-6, atol=1e-6)


def test_the_reference_stores_as_the_engine_does() -> None:
    rows = torch.randn(7, 3, 32) * torch.logspace(-44, 38, 21).view(7, 3, 1)
    rows[0, 0, 0], rows[1, 0, 1], rows[2, 0, 2], rows[3] = math.nan, math.inf, -math.inf, 0.0
    for found, wanted in zip(stored_codes(rows), fp8_codes(rows), strict=True):
        assert torch.equal(found, wanted)
    for dtype in (torch.bfloat16, torch.float16):
        pages = torch.zeros(1, 2, 3, 256, 32, dtype=dtype)
        LayerPages(pages).write(0, 0, slice(0, 7), rows)
        found = stored_halves(rows, dtype).transpose(0, 1)
        assert torch.equal(found.view(torch.int16), pages[0, 0, :, :7].view(torch.int16))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_wild_values_are_stored_as_the_engine_stores_them() -> None:
    case = RotaryCase(rows=14, heads=1, kv_heads=1, dim=32, pairs=0, norms="none")
    inputs = build(case, CPU, torch.Generator().manual_seed(3))
    sizes = torch.logspace(-44, 38, 14).view(14, 1)
    inputs.source.copy_(torch.randn(14, 96) * sizes)
    inputs.source[0, 33], inputs.source[1, 34], inputs.source[2, 65] = math.nan, math.inf, -math.inf
    inputs.source[4, 32:64] = 0.0
    inputs.source[5, 32:36] = torch.tensor([448.0, 0.0009765625, -0.0029296875, 5.0])
    for page_format in ("bf16", "fp16", "fp8"):
        stored = step(replace(case, page_format=page_format), inputs, range(14))
        for side in (0, 1):
            rows = inputs.source[:, 32 + 32 * side : 64 + 32 * side]
            found = rows_of(case, inputs, stored, side)[:, 0]
            if page_format == "fp8":
                assert torch.equal(found, stored_codes(rows)[0])
            else:
                wanted = stored_halves(rows, found.dtype)
                both_nan = found.isnan() & wanted.isnan()
                assert bool(((found == wanted) | both_nan).all())


def test_an_angle_far_into_the_context_is_as_exact_as_an_early_one() -> None:
    frequencies = [10_000_000.0 ** (-p / 64) for p in range(64)] + [math.pi, 3.0]
    pairs = len(frequencies)
    turns = Turns(torch.from_numpy(turns_of(frequencies)), 1.0, True)
    columns = HeadColumns(0, -1, -1, 1, 1, 2 * pairs)
    pages = torch.empty(1, 2, 1, 256, 2 * pairs, dtype=torch.bfloat16)
    for position in (0, 1, 255, 4_097, 262_143):
        out = torch.full((1, 1, 2 * pairs), torch.nan)
        source = torch.cat((torch.ones(1, pairs), torch.zeros(1, pairs)), dim=1)
        at = torch.tensor([position], dtype=torch.int32)
        table = torch.zeros(1, 1, dtype=torch.int32)
        rotary_step(source, columns, HeadNorms(), turns, at, pages, None, table, out)
        wanted = torch.tensor(frequencies, dtype=torch.float64) * position
        found = torch.atan2(out[0, 0, pairs:].double(), out[0, 0, :pairs].double())
        away = torch.remainder(found - wanted + math.pi, 2 * math.pi) - math.pi
        assert float(away.abs().max()) < ANGLE_TOLERANCE


def test_a_frequency_becomes_the_nearest_fraction_of_a_turn() -> None:
    found = turns_of([2.0 * math.pi, math.pi, 0.0, 1.0, -1.0])
    assert found.dtype == np.int64
    # Twice math.pi is less than a turn by 2.4493e-16 of a radian: 719 of 2**64ths.
    assert [int(each) % 2**64 for each in found[:3]] == [2**64 - 719, 2**63 - 360, 0]
    assert int(found[3]) == 0x28BE60DB9391054A
    assert int(found[4]) == -0x28BE60DB9391054A


def test_a_row_without_a_page_is_not_stored() -> None:
    case = RotaryCase(rows=3, heads=1, kv_heads=1, dim=16, pairs=8)
    inputs = build(case, CPU, torch.Generator().manual_seed(4))
    pages = torch.full((2, 2, 1, 256, 16), POISON, dtype=torch.bfloat16)
    out = torch.full((3, 1, 16), torch.nan)
    positions = torch.tensor([5, -1, 5], dtype=torch.int32)
    tables = torch.tensor([[-1], [0], [1]], dtype=torch.int32)
    rotary_step(
        inputs.source, inputs.columns, inputs.norms, inputs.turns, positions, pages, None, tables,
        out,
    )  # fmt: skip
    assert bool((pages[0] == POISON).all())
    assert bool((pages[1, :, :, 5] != POISON).any())
    assert not bool(out.isnan().any())


def test_a_chunk_gives_the_rows_that_other_chunks_give() -> None:
    case = RotaryCase(rows=19, heads=2, kv_heads=1, dim=32, pairs=16, first=250)
    inputs = build(case, CPU, torch.Generator().manual_seed(5))
    whole, tail = prompt(case, inputs, range(19)), prompt(case, inputs, range(3, 19))
    assert torch.equal(whole.query[3:], tail.query)
    for side in (0, 1):
        rows = [rows_of(case, inputs, each, side)[3:] for each in (whole, tail)]
        assert torch.equal(*rows)


def test_another_position_turns_otherwise() -> None:
    case = RotaryCase(rows=1, heads=1, kv_heads=1, dim=16, pairs=8)
    inputs = build(case, CPU, torch.Generator().manual_seed(6))
    one, other = (step(replace(case, first=at), inputs, range(1)) for at in (3, 4))
    assert not torch.equal(one.query, other.query)


def test_shapes_that_do_not_belong_together_are_refused() -> None:
    case = RotaryCase(rows=2, heads=1, kv_heads=1, dim=16, pairs=8)
    inputs = build(case, CPU, torch.Generator().manual_seed(7))
    pages, out = torch.zeros(1, 2, 1, 256, 16, dtype=torch.bfloat16), torch.zeros(2, 1, 16)
    head = (inputs.source, inputs.columns, inputs.norms)
    with pytest.raises(KernelShapeError, match="do not reach"):
        rotary_prompt(*head, inputs.turns, 255, pages, None, inputs.table[:1], out)
    with pytest.raises(KernelShapeError, match="without scales"):
        rotary_prompt(*head, inputs.turns, 0, pages.byte(), None, inputs.table, out)
    with pytest.raises(KernelShapeError, match="Pages of"):
        rotary_prompt(*head, inputs.turns, 0, pages[..., :8], None, inputs.table, out)
    with pytest.raises(KernelShapeError, match="Scales of"):
        rotary_prompt(*head, None, 0, pages.byte(), torch.zeros(1, 2, 1, 8), inputs.table, out)
    with pytest.raises(KernelShapeError, match="Queries of"):
        rotary_prompt(*head, inputs.turns, 0, pages, None, inputs.table, out[:1])
    with pytest.raises(KernelShapeError, match="hold no"):
        rotary_prompt(inputs.source[:, :40], *head[1:], None, 0, pages, None, inputs.table, out)
    many = Turns(torch.zeros(9, dtype=torch.int64), 1.0, True)
    with pytest.raises(KernelShapeError, match="pairs"):
        rotary_prompt(*head, many, 0, pages, None, inputs.table, out)
    one = torch.zeros(1, dtype=torch.int32)
    with pytest.raises(KernelShapeError, match="positions"):
        rotary_step(*head, None, one, pages, None, inputs.table.expand(2, -1), out)
