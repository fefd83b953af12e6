"""What a loaded model takes of the GPU beside its plan, with a context filled to its last token.

    python -m tests.bench gpu_memory MODEL.gguf [MODEL.gguf]... [--context N]...

Each cell is a process of its own: it plans for the GPU as it is, loads, and reads the driver's
figure of used memory before, when ready, and at the end. In between one chat fills its context in
the largest chunks but for the last token, which is a step; then all chats take steps together.
Measured may be 3 % and 128 MiB away from planned, either way, and torch may ask the driver for
nothing after "ready". One line of JSON a cell.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from engine.backend import build_runner
from engine.cache.lane import Lane
from engine.checkpoint.open import open_checkpoint
from engine.config import EngineConfig
from engine.loading.assembly import GpuUse, Parts, assemble
from engine.loading.planning import loadable, place, room
from engine.memory.gpus import GpuCard
from engine.memory.ledger import Ledger
from engine.memory.placement import Machine
from engine.memory.pools import MEBIBYTE, RAM, PoolReading, capacity_bytes, pinned_of, read_ram
from engine.models import model_spec
from engine.protocol import Load
from engine.serving.admission import Served

GPU = "gpu0"
CONTEXTS = (4096, 32_768)
SHORT_ROWS = 64
STEPS = 4
SHARE, SLACK = 0.03, 128 * MEBIBYTE


def main(arguments: Sequence[str]) -> int:
    """Measure every cell; 1 if one is out of its bounds or did not end."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench gpu_memory")
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--context", action="append", type=int, default=[])
    parser.add_argument("--streams", type=int, default=4)
    parser.add_argument("--cell", action="store_true", help="in this process")
    asked = parser.parse_args(arguments)
    if asked.cell:
        (model,), (context,) = asked.models, asked.context
        found = _measured(model, context, asked.streams)
        sys.stdout.write(json.dumps(found) + "\n")
        return 0 if found["good"] else 1
    codes = []
    for model in asked.models:
        for context in asked.context or CONTEXTS:
            own = [str(model), "--context", str(context), "--streams", str(asked.streams), "--cell"]
            command = [sys.executable, "-m", "tests.bench", "gpu_memory", *own]
            codes.append(subprocess.run(command, check=False).returncode)
    return max(codes, default=0)


def _measured(model: Path, context: int, streams: int) -> dict[str, Any]:
    before = _used_bytes()
    card = _card()
    config = EngineConfig(model.parent)
    wish = Load(request=1, path=str(model), context_tokens=context, streams=streams)
    ram, gpu = read_ram(), card.pool
    free = capacity_bytes(gpu)
    began = time.perf_counter()
    with ExitStack() as stack, open_checkpoint(model) as source:
        spec = model_spec(source)
        machine = Machine(room(ram), room(gpu, free), f"GPU, {gpu.label}")
        plan = loadable(place(source, spec, wish, machine, wide=False))
        pinned = capacity_bytes(pinned_of(ram))
        ledger = Ledger(
            {GPU: free, RAM: capacity_bytes(ram), "pinned": pinned}, behind={"pinned": RAM}
        )
        served = assemble(
            Parts(source, spec, plan, plan.streams, None, GpuUse(card, torch.device("cuda", 0))),
            build_runner,
            config,
            ledger=ledger,
            report=lambda _phase, _done, _total: None,
            stack=stack,
        )
        ready, load_s, asked = _used_bytes(), time.perf_counter() - began, _segments()
        _fill(served, plan.context_tokens, spec.vocabulary)
        after, reserved = _used_bytes(), torch.cuda.max_memory_reserved()
        more = _segments() - asked
    planned = sum(line.bytes for line in plan.lines if line.pool == GPU)
    taken = after - before
    return {
        "model": model.name,
        "context": plan.context_tokens,
        "streams": plan.streams,
        "chunk_rows": plan.chunk_rows,
        "planned": planned,
        "measured": taken,
        "difference_mib": round((taken - planned) / MEBIBYTE, 1),
        "ready": ready - before,
        "tensors": reserved,
        "asked_after_ready": more,
        "load_s": round(load_s, 2),
        "lines": {line.owner: line.bytes for line in plan.lines if line.pool == GPU},
        "good": abs(taken - planned) <= SHARE * planned + SLACK and more == 0,
    }


def _fill(served: Served, context: int, vocabulary: int) -> None:
    """One chat to its last token, then all of them side by side."""
    runner, memory = served.runner, served.memory
    ids = [row * 7919 % vocabulary for row in range(context)]
    with _lane(served, context) as lane:
        for first in range(0, context - 1, runner.chunk_rows):
            part = ids[first : min(first + runner.chunk_rows, context - 1)]
            lane.extend(len(part))
            runner.prompt_chunk(lane, part, first)
        lane.extend(1)
        runner.step([lane], [ids[-1]], [context - 1])
    with ExitStack() as stack:
        lanes = [
            stack.enter_context(_lane(served, SHORT_ROWS + STEPS))
            for _ in range(served.stream_limit)
        ]
        for lane in lanes:
            lane.extend(SHORT_ROWS)
            runner.prompt_chunk(lane, ids[:SHORT_ROWS], 0)
        for step in range(STEPS):
            for lane in lanes:
                lane.extend(1)
            runner.step(lanes, [1] * len(lanes), [SHORT_ROWS + step] * len(lanes))
        state = bytearray(memory.device.page_bytes(0))
        memory.device.read_page(0, 0, memoryview(state))
    torch.cuda.synchronize()


def _lane(served: Served, rows: int) -> Lane:
    opened = Lane.open(served.memory, rows, served.runner.chunk_rows)
    assert isinstance(opened, Lane), opened
    return opened


def _segments() -> int:
    """How often torch has asked the driver for memory."""
    return int(torch.cuda.memory_stats()["segment.all.allocated"])


def _card() -> GpuCard:
    total, free, driver = _asked("memory.total"), _asked("memory.free"), _asked("driver_version")
    found = torch.cuda.get_device_properties(0)
    size, rest = int(total) * MEBIBYTE, int(free) * MEBIBYTE
    pool = PoolReading(GPU, size, rest, size - rest, found.name)
    return GpuCard(pool, (found.major, found.minor), driver, f"GPU-{found.uuid}")


def _used_bytes() -> int:
    """Of the whole card, as the driver says."""
    return int(_asked("memory.used")) * MEBIBYTE


def _asked(field: str) -> str:
    command = ["nvidia-smi", "-i", "0", f"--query-gpu={field}", "--format=csv,noheader,nounits"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
