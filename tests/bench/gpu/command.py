"""Decode, prefill and streams of one checkpoint on this GPU, llama.cpp on the same file in turn.

    python -m tests.bench gpu (--model FILE | --geometry 9b [--quant q4_k_m] [--layers N])
        [--peer llama-bench] [--depths 0,4096] [--prompts 512,2048] [--streams 1,2,4,8]
        [--rounds 2] [--tables] [--out FILE]

Workloads G1, G2, G11's steps, G12, G15. Called is what the engine's loop calls, without sampling,
as llama-bench measures its own; pages at a depth hold random numbers. The agreement of logits and
bits comes before any speed; rounds alternate, ours, theirs. The floor reads every weight that a
token needs once, as fast as the card read memory in this run. JSON comes last.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from engine.checkpoint.open import open_checkpoint
from engine.checkpoint.source import CheckpointSource
from tests.bench._facts import Spread
from tests.bench._peer import Bench
from tests.bench.gpu import card
from tests.bench.gpu.agreement import agreement, random_ids
from tests.bench.gpu.model import GpuModel, prompt_flops, token_bytes
from tests.bench.gpu.profile import kernel_table, print_table
from tests.helpers.random_checkpoint import BASES, GEOMETRIES, write_random

GENERATED = 128
STREAM_DEPTH = 1024
REPEATS = 3
PEER_OPTIONS = ("-ngl", "99", "-fa", "1")
TABLE_PROMPT = 2048


def main(arguments: Sequence[str]) -> int:
    """Check, measure, print; 1 where logits or bits are not what they must be."""
    options = _options(arguments)
    path = options.model or _made(options)
    limits = card.measured()
    print(" ".join(f"{key}={value}" for key, value in limits.items()))
    with open_checkpoint(path) as source:
        rows = max([*options.depths, *options.prompts, STREAM_DEPTH]) + 2 * GENERATED
        with GpuModel(source, rows, streams=max(options.streams, default=1)) as model:
            speed = model.load_bytes / model.load_s / 1e9
            print(f"{path.name}: loaded in {model.load_s:.1f} s, {speed:.2f} GB/s of the file")
            agreed = agreement(model)
            print(" ".join(f"{key}={value}" for key, value in agreed.items()))
            record = {"bench": "gpu", "model": path.name, "card": limits, "agreement": agreed}
            if agreed["good"] or options.anyway:
                record |= _measured(source, model, path, options, limits)
    text = json.dumps(record, default=asdict)
    print(text)
    if options.out is not None:
        options.out.write_text(text + "\n", "utf-8")
    return 0 if agreed["good"] else 1


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench gpu")
    parser.add_argument("--model", type=Path, help="a checkpoint that is there")
    parser.add_argument("--geometry", choices=GEOMETRIES, default="9b")
    parser.add_argument("--quant", choices=BASES, default="q4_k_m")
    parser.add_argument("--layers", type=int, help="fewer than the geometry has")
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"), help="for what is made")
    parser.add_argument("--peer", type=Path, help="llama-bench")
    parser.add_argument("--depths", type=_numbers, default=[0, 4096, 16384, 32768])
    parser.add_argument("--prompts", type=_numbers, default=[512, 2048, 8192])
    parser.add_argument("--streams", type=_numbers, default=[1, 2, 4, 8])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--tables", action="store_true", help="where the time goes")
    parser.add_argument("--anyway", action="store_true", help="speed even of what is wrong")
    parser.add_argument("--out", type=Path, help="gets the JSON too")
    return parser.parse_args(arguments)


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def _made(options: argparse.Namespace) -> Path:
    """The random checkpoint that was asked for, written if it is not there."""
    layers = f"-{options.layers}" if options.layers else ""
    path: Path = options.folder / f"random-{options.geometry}-{options.quant}{layers}.gguf"
    if not path.exists():
        write_random(path, options.geometry, options.quant, layers=options.layers, vocabulary=None)
    return path


def _measured(
    source: CheckpointSource,
    model: GpuModel,
    path: Path,
    options: argparse.Namespace,
    limits: dict[str, Any],
) -> dict[str, Any]:
    peer = Bench(options.peer, path, 1, PEER_OPTIONS) if options.peer else None
    ours: dict[str, list[float]] = {}
    theirs: dict[str, list[float]] = {}
    _ours(model, options, {})
    for _ in range(options.rounds):
        _ours(model, options, ours)
        if peer is not None:
            _theirs(peer, options, theirs)
    floors = _floors(source, model, options, limits)
    cells = {
        name: _cell(name, Spread.of(figures), theirs.get(name), floors.get(name))
        for name, figures in ours.items()
    }
    return {"cells": cells} | (_tables(model) if options.tables else {})


def _ours(model: GpuModel, options: argparse.Namespace, found: dict[str, list[float]]) -> None:
    """One round: tokens a second of every cell."""
    ids = random_ids(model, max([*options.prompts, GENERATED]))
    for _ in range(REPEATS):
        for depth in options.depths:
            speed = GENERATED / model.decode(ids[:GENERATED], depth)
            found.setdefault(f"decode at {depth}", []).append(speed)
        for count in options.prompts:
            speed = count / model.prefill(ids[:count])
            found.setdefault(f"prefill {count}", []).append(speed)
        for count in options.streams:
            speed = count * GENERATED / model.decode(ids[:GENERATED], STREAM_DEPTH, count)
            found.setdefault(f"streams {count}", []).append(speed)


def _theirs(peer: Bench, options: argparse.Namespace, found: dict[str, list[float]]) -> None:
    decodes = peer.decodes(GENERATED, options.depths, REPEATS) if options.depths else []
    for depth, figures in zip(options.depths, decodes, strict=True):
        found.setdefault(f"decode at {depth}", []).extend(figures)
    prefills = peer.prefills(options.prompts, REPEATS) if options.prompts else []
    for count, figures in zip(options.prompts, prefills, strict=True):
        found.setdefault(f"prefill {count}", []).extend(figures)


def _floors(
    source: CheckpointSource, model: GpuModel, options: argparse.Namespace, limits: dict[str, Any]
) -> dict[str, float]:
    """Tokens a second that the card's memory, or its tensor cores, allow at most."""
    spec, read = model.spec, limits["read_bytes_s"]
    flops = prompt_flops(source, spec)
    decode = {
        f"decode at {depth}": read / token_bytes(source, spec, depth) for depth in options.depths
    }
    return decode | {
        f"prefill {count}": limits["bf16_flops_s"] / flops for count in options.prompts
    }


def _cell(
    name: str, ours: Spread, theirs: list[float] | None, floor: float | None
) -> dict[str, Any]:
    peer = Spread.of(theirs) if theirs else None
    ratio = ours.median / peer.median if peer else None
    share = ours.median / floor if floor else None
    beside = f"  llama.cpp {peer}  {ratio:.2f} x" if peer else ""
    of_floor = f"  {100 * share:.0f} % of {floor:.0f}" if share else ""
    print(f"{name:<18} {ours!s:>32}{beside}{of_floor}", flush=True)
    return {"hearth": ours, "llama.cpp": peer, "ratio": ratio, "floor": floor, "share": share}


def _tables(model: GpuModel) -> dict[str, Any]:
    """Where the time of a step and of a prompt goes."""
    ids = random_ids(model, TABLE_PROMPT)
    with model.lane(STREAM_DEPTH + GENERATED, STREAM_DEPTH) as lane:
        step = kernel_table(lambda: model.step([lane], ids[0]))
    prompt = kernel_table(lambda: model.prefill(ids))
    print_table("one step", step)
    print_table(f"a prompt of {TABLE_PROMPT}", prompt)
    torch.cuda.synchronize()
    return {"step": step, "prompt": prompt}
