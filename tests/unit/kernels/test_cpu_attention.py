"""Attention over pages, of steps and of prompt chunks, against float64 over gathered rows.

Whatever a row may not see holds NaN: later slots, rows older than the window, pages of nobody.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace

import pytest
import torch

from kernels.cpu import cases, records, reference
from kernels.cpu.cases import AttentionCase
from kernels.cpu.library import Pool
from kernels.cpu.records import Kind, LayerKv
from tests.helpers.cpu_library import PAD, Inputs, Stream, poisoned, run, same_bits, untouched

SMALL = AttentionCase(head_dim=32, kv_heads=2, shared_heads=3)


class Streams:
    """Streams of one layer, each with pages of its own, full of NaN where its row must not look.

    ``oldest`` positions from which rows may look at ``newest`` are written.
    """

    def __init__(self, case: AttentionCase, newest: list[int], oldest: list[int]) -> None:
        self.case = case
        counts = [position // 256 + 1 for position in newest]
        generator = torch.Generator().manual_seed(sum(newest) + case.head_dim)
        shuffled = torch.randperm(sum(counts) + 1, generator=generator).tolist()
        self.tables = [[shuffled.pop() for _ in range(count)] for count in counts]
        shape = (sum(counts) + 1, 2, case.kv_heads, 256, case.head_dim)
        self.arena = poisoned(*shape).half()
        for table, first, last in zip(self.tables, oldest, newest, strict=True):
            for index, page in enumerate(table):
                start, end = max(first - 256 * index, 0), min(last + 1 - 256 * index, 256)
                if start < end:
                    part = self.arena[page, :, :, start:end]
                    part.copy_(torch.randn(part.shape, generator=generator))
        self.kv = LayerKv(self.arena.data_ptr(), case.kv_heads, case.head_dim, 0, case.window)
        self.heads = case.kv_heads * case.shared_heads
        self.columns = self.heads * case.head_dim
        self._generator = generator

    def queries(self, rows: int) -> torch.Tensor:
        """[row, head * head_dim + padding], scaled so that scores are of size 3."""
        queries = poisoned(rows, self.columns + PAD)
        drawn = torch.randn(rows, self.columns, generator=self._generator)
        queries[:, : self.columns] = drawn * 3 * self.case.head_dim**-0.5
        return queries

    def wanted(self, query: torch.Tensor, stream: int, position: int) -> torch.Tensor:
        """The reference for one row, flat."""
        return reference.attention(
            query[: self.columns].view(self.heads, -1),
            self.arena,
            self.tables[stream],
            position,
            self.case.window,
        ).flatten()


def oldest_seen(case: AttentionCase, position: int) -> int:
    return max(0, position + 1 - case.window) if case.window else 0


def step(
    pool: Pool, streams: Streams, queries: torch.Tensor, stream: Stream, *, first: int, rows: int
) -> Inputs:
    """Rows of a step; what was not asked for stays poisoned."""
    inputs = Inputs(stream.count, -(-streams.columns // 32) * 32)
    pages = max(map(len, streams.tables))
    partials = poisoned(stream.count, streams.heads, pages, streams.case.head_dim + 2)
    record = records.Attend(
        kv=streams.kv,
        queries=queries.data_ptr(),
        partials=partials.data_ptr(),
        to=ctypes.pointer(inputs.record),
        stride=queries.stride(0),
        heads=streams.heads,
        partial_pages=pages,
    )
    run(pool, stream.record(first, rows), (Kind.ATTEND, record), (Kind.MERGE, record))
    assert inputs.padding_untouched()
    asked = torch.zeros(stream.count, dtype=torch.bool)
    asked[first : first + rows] = True
    assert untouched(inputs.values[~asked]) and untouched(partials[~asked])
    return inputs


def chunk(
    pool: Pool, streams: Streams, queries: torch.Tensor, position: int, *, first: int, rows: int
) -> torch.Tensor:
    """Rows ``first ...`` of a chunk of one stream that begins at ``position``."""
    count, case = len(queries), streams.case
    inputs = Inputs(count, streams.columns, codes=False)
    size = pool.chunk_scratch(streams.heads, case.kv_heads, case.head_dim)
    scratch = poisoned(pool.threads, size + PAD)
    record = records.Chunk(
        kv=streams.kv,
        queries=queries.data_ptr(),
        to=ctypes.pointer(inputs.record),
        scratch=scratch.data_ptr(),
        stride=queries.stride(0),
        heads=streams.heads,
        scratch_stride=size + PAD,
    )
    positions = range(position, position + count)
    stream = Stream(positions, [[streams.tables[0]] * count])
    run(pool, stream.record(first, rows), (Kind.CHUNK, record))
    assert inputs.padding_untouched() and untouched(scratch[:, size:])
    assert untouched(inputs.values[:first]) and untouched(inputs.values[first + rows :])
    return inputs.values[first : first + rows]


def assert_close(found: torch.Tensor, wanted: torch.Tensor) -> None:
    assert found.isfinite().all()
    assert (found - wanted).abs().max() <= cases.ATTENTION_TOLERANCE * wanted.abs().max()


@pytest.mark.parametrize("case", cases.ATTENTION, ids=str)
def test_a_step_attends_to_its_rows_and_to_no_other(
    pools: dict[int, Pool], case: AttentionCase
) -> None:
    """Six streams at once: first rows, page borders, the third page."""
    positions = list(cases.POSITIONS)
    streams = Streams(case, positions, [oldest_seen(case, at) for at in positions])
    queries = streams.queries(len(positions))
    stream = Stream(positions, [streams.tables])
    whole = step(pools[1], streams, queries, stream, first=0, rows=len(positions))
    for row, position in enumerate(positions):
        assert_close(whole.values[row], streams.wanted(queries[row], row, position))
    codes = reference.prepared(whole.values.contiguous())
    assert torch.equal(whole.codes, codes.codes) and same_bits(whole.sums, codes.sums)
    for threads in (2, 3):
        again = step(pools[threads], streams, queries, stream, first=1, rows=4)
        assert same_bits(again.values[1:5], whole.values[1:5]), threads
        assert torch.equal(again.codes[1:5], whole.codes[1:5]), threads


@pytest.mark.parametrize("shared_heads", range(1, 9))
def test_up_to_eight_heads_share_a_key(pool: Pool, shared_heads: int) -> None:
    case = replace(SMALL, shared_heads=shared_heads, kv_heads=1 + shared_heads % 2)
    streams = Streams(case, [300], [0])
    queries = streams.queries(1)
    found = step(pool, streams, queries, Stream([300], [streams.tables]), first=0, rows=1)
    assert_close(found.values[0], streams.wanted(queries[0], 0, 300))


@pytest.mark.parametrize("window", [1, 5, 255, 256, 257, 301, 302, 5000])
def test_a_window_hides_exactly_what_is_older(pool: Pool, window: int) -> None:
    """The row just outside is NaN and does not show; one row more would."""
    case = replace(SMALL, window=window)
    streams = Streams(case, [301], [oldest_seen(case, 301)])
    queries, stream = streams.queries(1), Stream([301], [streams.tables])
    found = step(pool, streams, queries, stream, first=0, rows=1).values[0]
    assert_close(found, streams.wanted(queries[0], 0, 301))
    streams.kv.window = window + 1
    wider = step(pool, streams, queries, stream, first=0, rows=1).values[0]
    if window < 302:
        assert not wider.isfinite().all(), "the control"
    else:
        assert same_bits(wider, found)


def test_scores_far_apart_do_not_overflow(pool: Pool) -> None:
    """Scores of hundreds: the largest decides, on whichever page it lies."""
    streams = Streams(SMALL, [600], [0])
    queries = streams.queries(1) * 100
    stream = Stream([600], [streams.tables])
    found = step(pool, streams, queries, stream, first=0, rows=1).values[0]
    wanted = streams.wanted(queries[0], 0, 600)
    assert found.isfinite().all()
    assert (found - wanted).abs().max() < 1e-3 * wanted.abs().max()


CHUNKS = [(1, 0), (17, 256), (64, 0), (255, 512), (256, 256)]


@pytest.mark.parametrize("case", cases.ATTENTION, ids=str)
def test_a_chunk_s_rows_attend_to_the_prefix_and_to_themselves(
    pool: Pool, case: AttentionCase
) -> None:
    """A short chunk and a long one, of the first page and of later ones."""
    for count, position in ((19, 512), (256, 256)):
        last = position + count - 1
        streams = Streams(case, [last], [oldest_seen(case, position)])
        queries = streams.queries(count)
        found = chunk(pool, streams, queries, position, first=0, rows=count)
        for row in {0, 1, count // 2, count - 1}:
            assert_close(found[row], streams.wanted(queries[row], 0, position + row))


@pytest.mark.parametrize("window", [0, 40, 256, 300])
@pytest.mark.parametrize(("count", "position"), CHUNKS)
def test_every_row_of_a_chunk_is_right(pool: Pool, count: int, position: int, window: int) -> None:
    case = replace(SMALL, window=window)
    last = position + count - 1
    streams = Streams(case, [last], [oldest_seen(case, position)])
    queries = streams.queries(count)
    found = chunk(pool, streams, queries, position, first=0, rows=count)
    wanted = [streams.wanted(queries[row], 0, position + row) for row in range(0, count, 9)]
    assert_close(found[::9], torch.stack(wanted))


@pytest.mark.parametrize("window", [0, 40, 300])
@pytest.mark.parametrize("position", [0, 512])
def test_a_row_has_the_same_bits_in_chunks_of_any_length(
    pools: dict[int, Pool], position: int, window: int
) -> None:
    """The prefix and the position decide; later rows are NaN where the chunk is shorter."""
    case = replace(SMALL, window=window)
    first = oldest_seen(case, position)
    whole = Streams(case, [position + 255], [first])
    queries = whole.queries(256)
    wanted = chunk(pools[1], whole, queries, position, first=0, rows=256)
    for count in (1, 2, 47, 48, 49, 100, 255):
        shorter = Streams(case, [position + 255], [first])
        page = shorter.tables[0][position // 256]
        shorter.arena.copy_(whole.arena)
        shorter.arena[page, :, :, count:] = float("nan")
        shorter.tables = whole.tables
        shorter.arena[whole.tables[0][position // 256], :, :, count:] = float("nan")
        found = chunk(pools[1], shorter, queries[:count], position, first=0, rows=count)
        assert same_bits(found, wanted[:count]), count
    for row in (0, 47, 48, 130, 255):
        found = chunk(pools[1], whole, queries, position, first=row, rows=1)
        assert same_bits(found, wanted[row : row + 1]), row
    for threads in (2, 3):
        found = chunk(pools[threads], whole, queries, position, first=0, rows=256)
        assert same_bits(found, wanted), threads
    assert not same_bits(wanted[0], wanted[1]), "the control"


def test_a_chunk_s_last_row_is_close_to_the_step_s(pool: Pool) -> None:
    """Two ways to the same numbers; their bits may differ, so neither stands in for the other."""
    streams = Streams(SMALL, [299], [0])
    queries = streams.queries(44)
    prompt = chunk(pool, streams, queries, 256, first=0, rows=44)[-1]
    stream = Stream([299], [streams.tables])
    stepped = step(pool, streams, queries[-1:], stream, first=0, rows=1).values[0]
    assert_close(stepped, prompt.double())
