"""Prefill and decode of the native runner, with llama.cpp on the same file in turn.

    python -m tests.bench speed [--model FILE]... [--peer llama-bench] [--isa avx2]

Measured is what the engine's loop calls: ``prompt_chunk`` and ``step`` with one lane, no sampling,
no window, as llama-bench measures its own. Pages at a depth hold random numbers. The logits of a
prompt and of four steps are checked against float32 before any speed is printed. Runs alternate,
ours, theirs, ours, theirs; on a machine that others use, start it as ``chrt -f 5 python ...``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from engine.cache.formats import PAGE_ROWS
from engine.cache.lane import Lane
from engine.checkpoint.open import open_checkpoint
from engine.checkpoint.source import CheckpointSource
from kernels.cpu.records import Isa
from tests.bench._facts import Spread, add_common, machine, print_json
from tests.bench._peer import Bench, Speed
from tests.helpers.lone_model import relative_l2
from tests.helpers.models import smol_path
from tests.helpers.native_model import NativeSide, TorchSide, last_row, steps

PROMPT = 512
GENERATED = 64
DEPTHS = (0, 512, 4096)
DEEP = 4096
DEEP_REPEATS = 3
WARM_UPS = 3
CHECKED_ROWS = 300
LARGEST_ERROR = 1.5e-2


def main(arguments: Sequence[str]) -> int:
    """Check, measure, print; 1 where the logits are not the reference's."""
    options = _options(arguments)
    found: dict[str, Any] = {}
    for path in options.model or [smol_path()]:
        with open_checkpoint(path) as source:
            error = _checked(source, options.threads, options.isa)
            print(f"{path.name}: relative L2 of logits against float32 {error:.1e}")
            if error > LARGEST_ERROR:
                print("too far from the reference: no speed is printed")
                return 1
            found[path.name] = _measured(source, path, options)
    print_json({"bench": "speed"} | machine(options.threads, options.isa) | {"models": found})
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench speed")
    parser.add_argument("--model", type=Path, action="append", help="may be repeated")
    parser.add_argument("--peer", type=Path, help="llama-bench")
    add_common(parser)
    parser.add_argument("--runs", type=int, default=7)
    return parser.parse_args(arguments)


def _checked(source: CheckpointSource, threads: int, isa: Isa | None) -> float:
    """The worst relative L2 of a prompt's last row and four steps after it."""
    torch.set_num_threads(threads)
    exact = TorchSide(source, CHECKED_ROWS + 4)
    ids = _random_ids(exact.spec.vocabulary, CHECKED_ROWS + 4)
    with NativeSide(source, CHECKED_ROWS + 4, threads=threads, isa=isa) as native:
        rows = []
        for side in (exact, native):
            with side.lane() as lane:
                prompt = last_row(side, lane, ids[:CHECKED_ROWS]).unsqueeze(0)
                rows.append(torch.cat((prompt, steps(side, lane, ids[CHECKED_ROWS:]))))
    exact.close()
    wanted, found = rows
    if not torch.equal(wanted.argmax(-1), found.argmax(-1)):
        return float("inf")
    return max(relative_l2(b, a) for a, b in zip(wanted, found, strict=True))


def _random_ids(vocabulary: int, count: int) -> list[int]:
    generator = torch.Generator().manual_seed(1)
    ids: list[int] = torch.randint(5, vocabulary, (count,), generator=generator).tolist()
    return ids


def _measured(source: CheckpointSource, path: Path, options: argparse.Namespace) -> dict[str, Any]:
    torch.set_num_threads(1)
    peer = Bench(options.peer, path, options.threads) if options.peer else None
    ours: list[Speed] = []
    theirs: list[Speed] = []
    context = max(DEPTHS) + GENERATED
    with NativeSide(source, context, threads=options.threads, isa=options.isa) as native:
        native.fill_pages()
        for _ in range(WARM_UPS):
            _ours(native)
        for run in range(options.runs):
            ours.append(_ours(native))
            if peer is not None:
                theirs.append(_theirs(peer, deep=run == 0))
        return _table(_by_cell(ours), _by_cell(theirs), native.step_bytes())


def _theirs(peer: Bench, *, deep: bool) -> Speed:
    """One round; the deepest, which must first read so many tokens, in one round only."""
    decode = {depth: peer.decode(GENERATED, depth) for depth in DEPTHS if depth != DEEP}
    if deep:
        decode[DEEP] = peer.decode(GENERATED, DEEP, DEEP_REPEATS)
    return Speed(peer.prefill(PROMPT), decode)


def _ours(native: NativeSide) -> Speed:
    ids = _random_ids(native.spec.vocabulary, PROMPT)
    with native.lane() as lane:
        began = time.perf_counter()
        last_row(native, lane, ids)
        prefill = PROMPT / (time.perf_counter() - began)
    decode = {}
    for depth in DEPTHS:
        with native.lane() as lane:
            _deepen(lane, depth)
            began = time.perf_counter()
            for token in ids[:GENERATED]:
                lane.extend(1)
                native.runner.step([lane], [token], [lane.length - 1])
            decode[depth] = [GENERATED / (time.perf_counter() - began)]
    return Speed(prefill, decode)


def _deepen(lane: Lane, depth: int) -> None:
    for _ in range(0, depth, PAGE_ROWS):
        lane.extend(PAGE_ROWS)


def _by_cell(runs: list[Speed]) -> dict[str, Spread]:
    if not runs:
        return {}
    cells = {f"prefill {PROMPT}": [run.prefill for run in runs]}
    for depth in DEPTHS:
        cells[f"decode at {depth}"] = [
            figure for run in runs for figure in run.decode.get(depth, [])
        ]
    return {name: Spread.of(figures) for name, figures in cells.items()}


def _table(ours: dict[str, Spread], theirs: dict[str, Spread], weight_bytes: int) -> dict[str, Any]:
    print(f"{'tokens a second':<16}{'hearth':>26}{'llama.cpp':>26}{'ratio':>8}{'GB/s':>7}")
    cells: dict[str, Any] = {}
    for name, mine in ours.items():
        peer = theirs.get(name)
        ratio = None if peer is None else round(mine.median / peer.median, 3)
        speed = mine.median * weight_bytes / 1e9 if name.startswith("decode") else None
        cells[name] = {"hearth": mine, "llama.cpp": peer, "ratio": ratio}
        print(
            f"{name:<16}{mine!s:>26}{peer or '-'!s:>26}{ratio or '-'!s:>8}"
            f"{'-' if speed is None else f'{speed:.1f}':>7}"
        )
    return cells | {"weight_bytes": weight_bytes}
