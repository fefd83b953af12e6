"""Tiny models of every family on the GPU: near float32, and the same bits in any cut or company.

    python -m tests.bench gpu_models [--device cuda] [--only NAME,...] [--rows N]

One line a family and check; failures last, and the exit status is 1 where there are any.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch

from engine.checkpoint.open import open_checkpoint
from engine.checkpoint.source import CheckpointSource
from tests.helpers import gpu_checks
from tests.helpers.checkpoints.saving import save_published
from tests.helpers.checkpoints.shapes import BLOCKS_OF_32, BLOCKS_OF_256
from tests.helpers.checkpoints.variants import VARIANTS, make, random_ids

LIMIT = 4e-2
"""Of the logits' relative L2: bfloat16 rows, products and pages, over up to nine layers."""


def main(arguments: Sequence[str]) -> int:
    """Check; see the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench gpu_models")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", default="")
    parser.add_argument("--rows", type=int, default=300)
    wish = parser.parse_args(arguments)
    names = [name for name in wish.only.split(",") if name] or list(VARIANTS)
    torch.set_num_threads(8)
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        for name in names:
            for label, widths in (("32", BLOCKS_OF_32), ("256", BLOCKS_OF_256)):
                folder = Path(place) / f"{name}-{label}".replace(" ", "-")
                try:
                    save_published(name, make(name, widths), folder)
                    with open_checkpoint(folder) as source:
                        _check(f"{name} {label}", source, wish.device, wish.rows, failures)
                except Exception as error:  # noqa: BLE001 - one family must not stop the others
                    failures.append(f"{name} {label}: {error}\n{traceback.format_exc()}")
    for failure in failures:
        print("FAILED", failure)
    print(f"{len(failures)} failed")
    return int(bool(failures))


def _check(
    name: str, source: CheckpointSource, device: str, rows: int, failures: list[str]
) -> None:
    ids = random_ids(rows)
    checks: list[tuple[str, Callable[[], object]]] = [
        ("close", partial(gpu_checks.close_to_float32, source, ids, device, LIMIT)),
        ("cuts", partial(gpu_checks.same_in_any_cut, source, ids, device)),
        ("company", partial(gpu_checks.same_in_company, source, ids, device)),
        ("draws", partial(gpu_checks.candidates_are_of_the_row, source, ids, device)),
        ("ready", partial(gpu_checks.nothing_new_after_ready, source, ids[:250], device)),
    ]
    for label, check in checks:
        began = time.monotonic()
        try:
            found = check() or "the same bits"
        except Exception as error:  # noqa: BLE001 - one check must not stop the others
            found = "FAILED"
            failures.append(f"{name} {label}: {error}\n{traceback.format_exc()}")
        print(f"{name:24} {label:8} {time.monotonic() - began:6.1f} s  {found}", flush=True)
