"""One case of rows of logits, checked on any device."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from kernels.draw.cases import TOLERANCE, DrawCase, build
from kernels.draw.launch import candidates, greedy, soft_cap
from kernels.draw.reference import best_of, capped, least_of
from kernels.draw.sizes import WANTED, candidate_words, group_of, tile_count
from tests.helpers.gpu.codes import poisoned

ROOM = 2048


@dataclass(frozen=True, slots=True)
class Found:
    """What ``candidates`` wrote, on the CPU."""

    ids: torch.Tensor
    values: torch.Tensor
    counts: list[int]


def best(logits: torch.Tensor) -> torch.Tensor:
    """Greedy's choice of each row."""
    rows, vocabulary = logits.shape
    keys = torch.full((rows * tile_count(vocabulary),), -99, device=logits.device)
    out = torch.full((rows,), -99, dtype=torch.int32, device=logits.device)
    greedy(logits, keys, out)
    return out


def gathered(logits: torch.Tensor) -> Found:
    """Candidates of each row."""
    (rows, vocabulary), device = logits.shape, logits.device
    ids = torch.full((rows, ROOM), -99, dtype=torch.int32, device=device)
    values = poisoned(rows, ROOM, device=device)
    counts = torch.full((rows,), -99, dtype=torch.int32, device=device)
    words = candidate_words(rows, vocabulary)
    scratch = torch.full((words,), -99, dtype=torch.int32, device=device)
    candidates(logits, ids, values, counts, scratch)
    return Found(ids.cpu(), values.cpu(), counts.tolist())


def check(case: DrawCase, device: str) -> dict[str, float]:
    """Errors of one case; raises AssertionError where a promise is broken."""
    logits = build(case, torch.device(device), torch.Generator().manual_seed(1))
    before = logits.clone()
    chosen = best(logits)
    assert torch.equal(chosen.long(), best_of(logits)), f"{case}: greedy is not the best."
    counts = _candidates(case, logits)
    assert torch.equal(logits, before), f"{case}: logits were written."
    soft_cap(logits, case.cap)
    wanted = capped(before, case.cap)
    away = (logits.double() - wanted).abs() / wanted.abs().clamp(min=1e-30)
    found = {"cap": float(away.max()), "candidates": float(max(counts))}
    assert found["cap"] <= TOLERANCE, f"{case}: capped logits are off by {found}."
    return found


def _candidates(case: DrawCase, logits: torch.Tensor) -> list[int]:
    found = gathered(logits)
    least = least_of(logits, group_of(case.vocabulary), WANTED)
    for row in range(case.rows):
        ids = (logits[row] >= least[row]).nonzero().flatten().cpu()
        assert found.counts[row] == len(ids) >= min(WANTED, case.vocabulary), f"{case}: row {row}."
        if len(ids) > ROOM:
            continue
        values = logits[row].cpu()[ids]
        same = torch.equal(found.ids[row, : len(ids)].long(), ids)
        same &= torch.equal(found.values[row, : len(ids)], values)
        assert same, f"{case}: candidates of row {row} are not those above the bound."
    alone = gathered(logits[-1:])
    assert alone.counts[0] == found.counts[-1], f"{case}: the last row is not itself."
    return found.counts
