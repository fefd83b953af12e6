"""What a figure needs beside it: the machine, the commit, median and spread."""

from __future__ import annotations

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


def machine(threads: int, isa: str) -> dict[str, Any]:
    """Facts of this machine and build, for the JSON line."""
    facts = device_facts(None)
    policy = os.sched_getscheduler(0) if hasattr(os, "sched_getscheduler") else 0
    return {
        "commit": commit(),
        "processor": facts.name,
        "capabilities": list(facts.capabilities),
        "system": f"{platform.system()} {platform.machine()}",
        "threads": threads,
        "isa": isa,
        "best_isa": Library().best_isa().name.lower(),
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
