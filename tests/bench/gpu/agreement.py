"""What must hold before any speed is printed: logits agree, and bits do not depend on company."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import torch

from tests.bench.gpu.model import COMPANY, GpuModel

READ = 128
STEPS = 4
LARGEST_ERROR = 6e-2
LONG = 640
CUTS = (64, 256, 320)


def agreement(model: GpuModel) -> dict[str, Any]:
    """The figures; ``good`` says whether all promises are kept.

    A prompt's rows take tensor cores on bf16, generated rows whole numbers: two computations of the
    same logits. ``relative_l2`` is the worst between them, on rows that both have computed.
    """
    ids = random_ids(model, READ + STEPS)
    with model.lane(len(ids)) as lane:
        lane.extend(len(ids))
        prompt = model.runner.all_logits(lane, ids, 0)[READ:]
    alone = _steps(model, ids, 1)
    found: dict[str, Any] = {
        "relative_l2": max(_difference(a, b) for a, b in zip(alone, prompt, strict=True)),
        "same_largest": int((alone.argmax(-1) == prompt.argmax(-1)).sum()),
        "finite": bool(alone.isfinite().all()) and bool(prompt.isfinite().all()),
        "steps_same_in_company": torch.equal(_steps(model, ids, COMPANY), alone),
        "prompt_same_in_any_cut": _same_in_any_cut(model),
    }
    flags = ("finite", "steps_same_in_company", "prompt_same_in_any_cut")
    found["good"] = found["relative_l2"] <= LARGEST_ERROR and all(found[name] for name in flags)
    return found


def random_ids(model: GpuModel, count: int, seed: int = 1) -> list[int]:
    """Tokens of no meaning."""
    draw = random.Random(seed)
    return [draw.randrange(5, model.spec.vocabulary) for _ in range(count)]


def _steps(model: GpuModel, ids: Sequence[int], streams: int) -> torch.Tensor:
    """[step, vocabulary] of the last of ``streams`` lanes, which all read the same prompt."""
    with ExitStack() as stack:
        lanes = [stack.enter_context(model.lane(len(ids))) for _ in range(streams)]
        for number, lane in enumerate(lanes):
            part = list(ids[:READ])
            last = number == streams - 1
            model.read(lane, part if last else [(token + 7 * number) % 1000 for token in part])
        rows = [model.step(lanes, token)[-1].clone() for token in ids[READ:]]
    return torch.stack(rows)


def _same_in_any_cut(model: GpuModel) -> bool:
    """Whether a prompt read in pieces of several sizes ends in the same bits."""
    ids, found = random_ids(model, LONG, 2), []
    for size in (LONG, *CUTS):
        with model.lane(LONG) as lane:
            for first in range(0, LONG, size):
                part = ids[first : first + size]
                lane.extend(len(part))
                logits = model.runner.prompt_chunk(lane, part, first)
            found.append(logits)
    return all(torch.equal(found[0], other) for other in found[1:])


def _difference(found: torch.Tensor, wanted: torch.Tensor) -> float:
    found, wanted = found.double(), wanted.double()
    return float((found - wanted).norm() / wanted.norm())
