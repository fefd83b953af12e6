"""Every GPU kernel checked, then timed, each in a process of its own.

    python -m tests.bench kernels [--only NAME,...] [--no-checks] [--no-benches] [--out FILE]

Checks are the cases of tests/helpers/gpu/<op>.py, benches what tests/helpers/gpu/bench_<op>.py
yields. All of them compile and run once side by side first, several processes a kernel; then one
kernel after another is timed, with nothing else on the card. A kernel that fails, hangs or breaks
the card's context costs its own lines only: failures come last, and the exit status is 1 when
there are any. What was not compiled within ``--warm-s`` is not timed, and named. ``--device cpu``
runs the checks in Triton's interpreter. The last line is JSON; with ``--out`` it stands in that
file alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.bench.gpu.child import Child
from tests.bench.gpu.report import Report

HELPERS = Path(__file__).resolve().parents[1] / "helpers" / "gpu"


def main(arguments: Sequence[str]) -> int:
    """Check, time, print; 1 where something failed."""
    options = _options(arguments)
    ends = time.monotonic() + options.limit_s
    report = Report(options.out)
    checks, benches = _names(options)
    if benches:
        card = Child("time", "card", options.device)
        card.until_ready(report.add, ends, options.child_s)
        card.timed(report.add, ends, [])
    shards = [f"{number}/{options.shards}" for number in range(options.shards)]
    checking = [Child("check", name, options.device, shard) for name in checks for shard in shards]
    warming = [Child("warm", name, options.device, shard) for shard in shards for name in benches]
    waiting = [Child("time", name, options.device) for name in benches]
    limits = {"check": options.child_s, "warm": options.warm_s, "time": options.child_s}
    with ThreadPoolExecutor(options.jobs) as pool:
        started = [
            pool.submit(child.until_ready, report.add, ends, limits[child.kind])
            for child in (*checking, *warming, *waiting)
        ]
    for each in started:
        each.result()
    for child in waiting:
        child.timed(report.add, ends, report.warmed(child.module))
    return report.finish()


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench kernels")
    parser.add_argument("--only", default="", help="names, with commas between")
    parser.add_argument("--no-checks", action="store_true")
    parser.add_argument("--no-benches", action="store_true")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--jobs", type=int, default=14, help="processes side by side at first")
    parser.add_argument("--shards", type=int, default=4, help="processes that share one kernel")
    parser.add_argument("--child-s", type=float, default=240.0, help="the most one of them takes")
    parser.add_argument("--warm-s", type=float, default=75.0, help="the most compiling takes each")
    parser.add_argument("--limit-s", type=float, default=560.0, help="what runs then is ended")
    parser.add_argument("--out", type=Path, help="keeps everything printed, as it comes")
    return parser.parse_args(arguments)


def _names(options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """The modules of checks, and those of benches."""
    every = sorted(path.stem for path in HELPERS.glob("*.py") if not path.stem.startswith("_"))
    only = [name for name in options.only.split(",") if name]
    wanted = [name for name in every if not only or any(part in name for part in only)]
    benches = [name for name in wanted if name.startswith("bench_")]
    checks = [name for name in wanted if name not in benches]
    timed = options.device == "cuda" and not options.no_benches
    return [] if options.no_checks else checks, benches if timed else []
