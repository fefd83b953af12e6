"""What a figure needs beside it: the machine, the commit, median and spread."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from engine.device import device_facts
from kernels.cpu.library import Library
from kernels.cpu.records import Isa

ROOT = Path(__file__).resolve().parents[2]
POLICIES = {0: "other", 1: "fifo", 2: "round robin"}


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and range of some runs."""

    median: float
    lowest: float
    highest: float
    runs: int

    @classmethod
    def of(cls, figures: Sequence[float]) -> Spread:
        """Of at least one figure."""
        return cls(statistics.median(figures), min(figures), max(figures), len(figures))

    def __str__(self) -> str:
        return f"{self.median:.1f} ({self.lowest:.1f} - {self.highest:.1f})"


def add_common(parser: argparse.ArgumentParser) -> None:
    """The arguments that every benchmark of the native library has."""
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--isa", type=_isa, help="avx2 or avx512; the best there is if left out")


def _isa(name: str) -> Isa:
    found = {"avx2": Isa.AVX2, "avx512": Isa.AVX512}.get(name)
    if found is None or found > Library().best_isa():
        raise argparse.ArgumentTypeError(f"{name} is not an instruction set of this processor")
    return found


def machine(threads: int, isa: Isa | None) -> dict[str, Any]:
    """Facts of this machine and build, for the JSON line."""
    best = Library().best_isa()
    facts = device_facts(None)
    policy = os.sched_getscheduler(0) if hasattr(os, "sched_getscheduler") else 0
    return {
        "commit": commit(),
        "processor": facts.name,
        "capabilities": list(facts.capabilities),
        "system": f"{platform.system()} {platform.machine()}",
        "threads": threads,
        "isa": (isa or best).name.lower(),
        "best_isa": best.name.lower(),
        "scheduling": POLICIES.get(policy, str(policy)),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "torch": torch.__version__,
    }


def commit() -> str:
    """The short hash of HEAD, with a plus where the product's files differ from it."""
    product = ("app", "engine", "kernels")
    changed = _git("status", "--porcelain", "--", *product)
    return _git("rev-parse", "--short", "HEAD") + ("+" if changed else "")


def print_json(record: dict[str, Any]) -> None:
    """The last line of a benchmark."""
    print(json.dumps(record, default=asdict))


def _git(*arguments: str) -> str:
    ended = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return ended.stdout.strip()
