"""The golden table of plans: thirteen machines by every model of the catalogue, a line a case.

``python -m tests.helpers.placement_table`` writes tests/data/placement.txt anew. What it says is
then to be read, line by line: a change of it is a change of what people's machines will run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

from engine.loading.footprint import footprint
from engine.loading.gpu_footprint import gpu_footprint
from engine.loading.planning import cpu_geometry, gpu_geometry, machine_for, room
from engine.memory.placement import (
    Footprint,
    Geometry,
    Machine,
    Plan,
    Refused,
    VisionPart,
    Wish,
    plan_placement,
)
from engine.memory.pools import RAM, PoolReading
from engine.protocol import GpuFacts
from tests.helpers.catalogue import CATALOGUE, GIB, MIB, sourced

TABLE: Final = Path(__file__).resolve().parents[1] / "data" / "placement.txt"
OTHERS: Final = 600 * MIB
"""What the desktop holds of a GPU."""
GPUS: Final = {
    "RTX 2060": 6, "RTX 4060": 8, "RTX 3080": 10, "RTX 4070": 12, "RTX 4080": 16,
    "RTX 4000 Ada": 20, "RTX 4090": 24, "RTX 5090": 32, "L40S": 48, "A100": 80, "H100 NVL": 94,
    "H200": 141,
}  # fmt: skip
PROCESSOR: Final = "none"
DEVICES: Final = (PROCESSOR, *GPUS)
CONTEXTS: Final = {
    "Qwen3.5": 262_144, "Qwen3.8": 262_144, "Qwen3-Next": 262_144, "Qwen3-": 40_960,
    "Gemma-4-E": 131_072, "Gemma-4": 262_144, "Gemma-3-270m": 32_768, "Gemma-3-1b": 32_768,
    "Gemma-3": 131_072, "SmolLM2": 8192, "SmolLM3": 65_536,
}  # fmt: skip
"""What the makers say, by the beginning of the name; the first that fits."""
PICTURES: Final = {
    "Qwen3.5-0.8B": 100.6, "Qwen3.5-2B": 331.4, "Qwen3.5-4B": 333.5, "Qwen3.5-9B": 456.0,
    "Qwen3.8-27B": 460.7, "Qwen3.5-35B-A3B": 446.6, "Gemma-4-E2B": 168.5, "Gemma-4-E4B": 169.3,
    "Gemma-4-12B": 50.0, "Gemma-4-26B-A4B": 572.8, "Gemma-4-31B": 575.7, "Gemma-3-4b": 420.0,
    "Gemma-3-12b": 420.0, "Gemma-3-27b": 420.0,
}  # fmt: skip
"""Millions of numbers of what reads pictures, 16 bits each."""
BLOCKS: Final = {"Gemma-3": 256, "Gemma-4-E": 0, "Gemma-4": 1120}
"""Rows of the largest picture, where they attend to each other both ways."""
PICTURE_WORKSPACE: Final = 256 * MIB
WISHES: Final = {
    "q4_k": Wish(None, 4),
    "q8_0": Wish(32_768, 2, "full-or-fp8"),
}
HEAD: Final = (
    f"{'device':13}{'model':19}{'quant':6}{'verdict':16}{'context':>8}{'chats':>6}{'states':>7}"
    f"  {'kv':5}{'chunk':>5}{'gpu0':>9}{'ram':>8}{'pinned':>8}"
)


@dataclass(frozen=True)
class Case:
    """One line."""

    device: str
    model: str
    quant: str

    @property
    def wish(self) -> Wish:
        """What is asked for with this quantization."""
        return WISHES[self.quant]

    def placed(self, wish: Wish | None = None) -> Plan | Refused:
        """The plan."""
        return placed(machine(self.device), self.model, self.quant, wish or self.wish)


def cases() -> Iterator[Case]:
    """Every line of the table, in order."""
    for quant in WISHES:
        for model in CATALOGUE:
            for device in DEVICES:
                yield Case(device, model, quant)


def machine(device: str) -> Machine:
    """32 GiB of RAM without a GPU and beside a small one, 128 beside one of 24 GiB and more."""
    size = GPUS.get(device, 0)
    total = (128 if size >= 24 else 32) * GIB
    ram = room(PoolReading(RAM, total, total - 6 * GIB, 6 * GIB, "RAM"))
    if device == PROCESSOR:
        return machine_for(ram, None, "CPU")
    facts = GpuFacts(name=device, total_bytes=size * GIB, free_bytes=size * GIB - OTHERS)
    return machine_for(ram, facts, "CPU")


def placed(on: Machine, model: str, quant: str, wish: Wish) -> Plan | Refused:
    """The plan of a model of the catalogue."""
    taken, geometry = taken_by(model, quant, on_gpu=on.gpu is not None)
    return plan_placement(on, taken, geometry, wish)


@cache
def taken_by(model: str, quant: str, *, on_gpu: bool) -> tuple[Footprint, Geometry]:
    """What a model of the catalogue takes; what reads pictures only beside a GPU."""
    spec, source = sourced(model, quant)
    longest = next(size for start, size in CONTEXTS.items() if model.startswith(start))
    spec = replace(spec, context_tokens=longest)
    if not on_gpu:
        return footprint(source, spec, wide=False), cpu_geometry(spec, wide=False)
    taken = gpu_footprint(source, spec)
    if model in PICTURES:
        block = next((size for start, size in BLOCKS.items() if model.startswith(start)), 0)
        size = round(2e6 * PICTURES[model])
        taken = replace(taken, vision=VisionPart(size, PICTURE_WORKSPACE, block))
    return taken, gpu_geometry(spec)


def line(case: Case) -> str:
    """A case for people; bytes are GiB, of which what is pinned counts as RAM too."""
    found = case.placed()
    sizes = {need.pool: f"{need.needed_bytes / GIB:.2f}" for need in found.needs}
    columns = "".join(f"{sizes.get(pool, '-'):>8}" for pool in ("gpu0", "ram", "pinned"))
    start = f"{case.device:13}{case.model:19}{case.quant:6}"
    if isinstance(found, Refused):
        rest = f"{'refused':16}{found.context_tokens:8}{'-':>6}{'-':>7}  {'-':5}{'-':>5} "
    else:
        rest = (
            f"{found.placement:16}{found.context_tokens:8}{found.streams:6}{found.states:7}  "
            f"{found.kv_format.value:5}{found.chunk_rows:5} "
        )
    return f"{start}{rest}{columns}"


def table() -> str:
    """The whole table."""
    return "\n".join([HEAD, *map(line, cases()), ""])


if __name__ == "__main__":
    TABLE.write_text(table())
