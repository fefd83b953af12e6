"""Where the time of one step and of one prompt chunk goes.

    python -m tests.bench step [--model FILE] [--depth N] [--isa avx2]

Runs the native programs' operations kind by kind, and the products shape by shape, each group on
its own: the least time of some repeats, with the stored bytes a second that products read, or the
multiply-adds of a chunk. What the groups miss of the whole are caches that another group filled.
On a machine that others use, start it as ``chrt -f 5 python ...``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from engine.cache.formats import PAGE_ROWS
from engine.checkpoint.open import open_checkpoint
from engine.native.program import Program, RowArrays
from kernels.cpu.library import Pool
from kernels.cpu.records import JOINED, Kind, Operation, Product, Rows
from kernels.quant.facts import FACTS_BY_TYPE
from tests.bench._facts import add_common, machine, print_json
from tests.helpers.models import smol_path
from tests.helpers.native_model import NativeSide

REPEATS = 15


@dataclass(frozen=True, slots=True)
class Part:
    """Operations of a kind, or products of a shape, and what they took together.

    Attributes:
        weight_bytes: stored bytes that the products among them read.
        work: multiply-adds of those products, all rows together.
        rows: of the step or chunk.
    """

    name: str
    count: int
    seconds: float
    weight_bytes: int
    work: int
    rows: int

    def row(self, whole_s: float) -> str:
        """One line of the table."""
        speed = ""
        if self.weight_bytes:
            speed = (
                f"{self.weight_bytes / self.seconds / 1e9:9.1f} GB/s"
                if self.rows == 1
                else f"{2 * self.work / self.seconds / 1e9:9.0f} GFLOP/s"
            )
        share = 100 * self.seconds / whole_s
        return f"{self.name:<46}{self.count:>5}{self.seconds * 1e3:>10.3f}{share:>7.1f}%{speed}"


def main(arguments: Sequence[str]) -> int:
    """Measure and print both tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench step")
    parser.add_argument("--model", type=Path, default=None)
    parser.add_argument("--depth", type=int, default=512, help="a multiple of 256")
    add_common(parser)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    path = options.model or smol_path()
    context = options.depth + PAGE_ROWS
    with (
        open_checkpoint(path) as source,
        NativeSide(source, context, threads=options.threads, isa=options.isa) as native,
    ):
        native.fill_pages()
        chunk, step = _measured(native, options.depth)
    record = {"bench": "step", "model": path.name, "depth": options.depth}
    record |= machine(options.threads, options.isa) | {"chunk": chunk, "step": step}
    print_json(record)
    return 0


def _measured(native: NativeSide, depth: int) -> tuple[list[Part], list[Part]]:
    """The chunk that begins at ``depth``, and a step at its last row."""
    programs = native.runner._programs  # only this benchmark looks into a runner
    groups = len(native.spec.groups)
    ids = [token % native.spec.vocabulary for token in range(5, 5 + PAGE_ROWS)]
    with native.lane() as lane:
        for _ in range(0, depth + PAGE_ROWS, PAGE_ROWS):
            lane.extend(PAGE_ROWS)
        positions = range(depth, depth + PAGE_ROWS)
        arrays = RowArrays([lane] * PAGE_ROWS, ids, positions, groups)
        one = RowArrays([lane], [5], [depth], groups)
        return (
            _parts(f"chunk of {PAGE_ROWS} rows from {depth}", native.pool, programs.body,
                   arrays.rows(0, PAGE_ROWS)),
            _parts(f"step at depth {depth}", native.pool, programs.step, one.rows(0, 1)),
        )  # fmt: skip


def _parts(title: str, pool: Pool, program: Program, rows: Rows) -> list[Part]:
    operations = list(program._list)
    records = program._kept[1]
    groups: dict[str, list[int]] = {"everything": list(range(len(operations)))}
    for index, operation in enumerate(operations):
        groups.setdefault(Kind(operation.kind).name.lower(), []).append(index)
    for index, record in enumerate(records):
        if isinstance(record, Product):
            groups.setdefault(f"  {_shape(record)}", []).append(index)
    found = []
    for name, chosen in groups.items():
        listed = (Operation * len(chosen))(*(operations[index] for index in chosen))
        sizes = [_size(record) for i in chosen if isinstance(record := records[i], Product)]
        read, work = sum(size[0] for size in sizes), sum(size[1] for size in sizes)
        seconds = _least_seconds(pool, listed, rows)
        found.append(Part(name, len(chosen), seconds, read, work * rows.rows, rows.rows))
    print(f"{title}: operations, milliseconds, share")
    for part in found:
        print(part.row(found[0].seconds))
    return found


def _weights(product: Product) -> Iterator[Any]:
    return (product.weights[index] for index in range(product.count))


def _shape(product: Product) -> str:
    names = [_format_name(weight.format) for weight in _weights(product)]
    sizes = "+".join(str(weight.rows) for weight in _weights(product))
    return f"{'+'.join(dict.fromkeys(names))} {sizes} x {product.weights[0].columns}"


def _format_name(number: int) -> str:
    """Of GGUF's formats or of those whose scales lie apart."""
    joined = {known: name for name, known in JOINED.items()}
    return joined[number] if number in joined else FACTS_BY_TYPE[number].name


def _size(product: Product) -> tuple[int, int]:
    """Stored bytes, and multiply-adds of one row."""
    listed = list(_weights(product))
    return sum(w.rows * w.row_bytes for w in listed), sum(w.rows * w.columns for w in listed)


def _least_seconds(pool: Pool, listed: Any, rows: Rows) -> float:
    best = float("inf")
    for _ in range(REPEATS):
        began = time.perf_counter()
        pool.step(listed, rows)
        best = min(best, time.perf_counter() - began)
    return best
