"""Pages of 8-bit codes with a scale a row: what is written, and attention over what is read.

torch's own e4m3 decides what a code is; float64 over decoded rows what attention is. Rows that
nobody may see have NaN for a scale.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from kernels.cpu import cases, records, reference
from kernels.cpu.cases import AttentionCase
from kernels.cpu.library import Pool
from kernels.cpu.records import Kind, LayerKv
from tests.helpers.cpu_library import PAD, Stream, poisoned, run, same_bits
from tests.unit.kernels.test_cpu_attention import (
    SMALL,
    Streams,
    assert_close,
    chunk,
    oldest_seen,
    step,
)
from tests.unit.kernels.test_cpu_rows import normal

LARGEST = 448.0


def coded(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes as uint8 in the shape of ``rows``, and the scales of their last dimension."""
    largest = rows.nan_to_num(nan=0.0).abs().amax(-1)
    scales = largest.clamp(max=torch.finfo(torch.float32).max) / LARGEST
    divided = rows / scales.unsqueeze(-1)
    held = divided.nan_to_num(nan=0.0).clamp(-LARGEST, LARGEST)
    codes = held.to(torch.float8_e4m3fn).view(torch.uint8)
    return torch.where(scales.unsqueeze(-1) > 0, codes, torch.zeros_like(codes)), scales


class CodedStreams(Streams):
    """Streams whose layer holds codes; ``arena`` is what they stand for."""

    def __init__(self, case: AttentionCase, newest: list[int], oldest: list[int]) -> None:
        super().__init__(case, newest, oldest)
        rows = self.arena.float()
        self.codes, self.scales = coded(rows)
        hidden = rows.isnan().any(-1)
        self.codes[hidden] = 0x7F
        self.scales[hidden] = float("nan")
        decoded = self.codes.view(torch.float8_e4m3fn).double()
        self.arena = decoded * self.scales.unsqueeze(-1).double()
        self.kv = LayerKv(
            self.codes.data_ptr(), case.kv_heads, case.head_dim, 0, case.window,
            self.scales.data_ptr(),
        )  # fmt: skip


@pytest.mark.parametrize("case", cases.ATTENTION, ids=str)
def test_a_step_attends_to_what_the_codes_stand_for(
    pools: dict[int, Pool], case: AttentionCase
) -> None:
    positions = list(cases.POSITIONS)
    streams = CodedStreams(case, positions, [oldest_seen(case, at) for at in positions])
    queries = streams.queries(len(positions))
    stream = Stream(positions, [streams.tables])
    whole = step(pools[1], streams, queries, stream, first=0, rows=len(positions))
    for row, position in enumerate(positions):
        assert_close(whole.values[row], streams.wanted(queries[row], row, position))
    for threads in (2, 3):
        again = step(pools[threads], streams, queries, stream, first=1, rows=4)
        assert same_bits(again.values[1:5], whole.values[1:5]), threads
    streams.scales.copy_(streams.scales.flip(-1))
    wrong = step(pools[1], streams, queries, stream, first=0, rows=1)
    assert not same_bits(wrong.values[0], whole.values[0]), "the control"


@pytest.mark.parametrize("shared_heads", range(1, 9))
def test_up_to_eight_heads_share_a_key_in_codes(pool: Pool, shared_heads: int) -> None:
    case = replace(SMALL, shared_heads=shared_heads, kv_heads=1 + shared_heads % 2)
    streams = CodedStreams(case, [300], [0])
    queries = streams.queries(1)
    found = step(pool, streams, queries, Stream([300], [streams.tables]), first=0, rows=1)
    assert_close(found.values[0], streams.wanted(queries[0], 0, 300))


@pytest.mark.parametrize("case", cases.ATTENTION, ids=str)
def test_a_chunk_attends_to_what_the_codes_stand_for(pool: Pool, case: AttentionCase) -> None:
    for count, position in ((19, 512), (256, 256), (256, 336)):
        last = position + count - 1
        streams = CodedStreams(case, [last], [oldest_seen(case, position)])
        queries = streams.queries(count)
        found = chunk(pool, streams, queries, position, first=0, rows=count)
        for row in {0, 1, count // 2, count - 1}:
            assert_close(found[row], streams.wanted(queries[row], 0, position + row))


@pytest.mark.parametrize("window", [0, 40, 300])
def test_a_row_has_the_same_bits_in_any_chunk_of_codes(pools: dict[int, Pool], window: int) -> None:
    case = replace(SMALL, window=window)
    whole = CodedStreams(case, [512 + 255], [oldest_seen(case, 512)])
    queries = whole.queries(256)
    wanted = chunk(pools[1], whole, queries, 512, first=0, rows=256)
    for first, rows in ((0, 1), (47, 1), (16, 80), (96, 160)):
        for threads in (1, 2, 3):
            found = chunk(pools[threads], whole, queries, 512, first=first, rows=rows)
            assert same_bits(found, wanted[first : first + rows]), (first, rows, threads)
    assert not same_bits(wanted[0], wanted[1]), "the control"


WILD = torch.tensor([
    [0.0] * 16,
    [1e-45] * 16,
    [3e38, float("inf"), float("-inf"), -1.0, *[0.0] * 12],
    [float("nan"), 1.0, -2.0, 448.0, *[0.5] * 12],
    [448.0, 1.0625, 1.1875, 17.0, 19.0, 2**-7, 2**-9, 2**-10, 3 * 2**-10, -(2**-9), -0.0,
     0.0146, 0.0156, 464.0 * 0.9, -436.0, 240.0],
])  # fmt: skip


@pytest.mark.parametrize("head_dim", [16, 80, 256])
def test_rows_are_stored_as_the_codes_and_scales_that_torch_gives(
    pool: Pool, head_dim: int
) -> None:
    """Rows of every size, ties, steps below the normal ones, zeros, infinities and NaN."""
    heads, rows = 8, 4
    width = heads * head_dim
    keys, values = (
        normal(rows, width, seed=seed) * 10.0 ** torch.linspace(-20, 20, rows).unsqueeze(1)
        for seed in (1, 2)
    )
    if head_dim == 16:
        keys[:, : WILD.numel()] = WILD.flatten()
    joint = torch.cat([torch.zeros(rows, width), keys, values, poisoned(rows, PAD)], 1).contiguous()
    codes = torch.full((2, 2, heads, 256, head_dim), 0x7F, dtype=torch.uint8)
    scales = poisoned(2, 2, heads, 256)
    positions = (0, 255, 256, 300)
    record = records.Rotate(
        kv=LayerKv(codes.data_ptr(), heads, head_dim, 0, 0, scales.data_ptr()),
        rows=joint.data_ptr(),
        stride=joint.stride(0),
        heads=heads,
        k_offset=width,
        v_offset=2 * width,
        query_scale=1.0,
    )
    run(pool, Stream(positions, [[[1, 0]] * 4]).record(0, 4), (Kind.ROTATE, record))
    for row, position in enumerate(positions):
        page, slot = 1 - position // 256, position % 256
        for side, whole in enumerate((keys, values)):
            wanted, sizes = coded(whole[row].view(heads, head_dim))
            assert same_bits(scales[page, side, :, slot], sizes)
            assert torch.equal(codes[page, side, :, slot], wanted), (row, side)
            scales[page, side, :, slot] = float("nan")
            codes[page, side, :, slot] = 0x7F
    assert scales.isnan().all() and (codes == 0x7F).all(), "nothing else was written"


def test_a_value_that_is_normed_is_stored_as_normed(pool: Pool) -> None:
    joint = torch.cat([normal(1, 16), normal(1, 16, seed=1), normal(1, 16, seed=2)], 1).contiguous()
    codes, scales = torch.zeros(1, 2, 1, 256, 16, dtype=torch.uint8), poisoned(1, 2, 1, 256)
    norm = 1 + 0.3 * normal(16, seed=3)
    record = records.Rotate(
        kv=LayerKv(codes.data_ptr(), 1, 16, 0, 0, scales.data_ptr()),
        rows=joint.data_ptr(),
        value_norm=norm.data_ptr(),
        stride=joint.stride(0),
        heads=1,
        k_offset=16,
        v_offset=32,
        query_scale=1.0,
        value_eps=1e-6,
    )
    run(pool, Stream((0,), [[[0]]]).record(0, 1), (Kind.ROTATE, record))
    wanted = reference.normed(joint[:, 32:], norm, 1e-6)
    found = codes[0, 1, 0, 0].view(torch.float8_e4m3fn).double() * scales[0, 1, 0, 0]
    assert (found - wanted).abs().max() <= wanted.abs().max() / 16
    assert (found - joint[0, 32:]).abs().max() > wanted.abs().max() / 16, "the control"
