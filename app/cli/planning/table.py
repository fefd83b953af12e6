"""A plan for people: a table, what each pool has, and the verdict."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from app.cli.planning.report import PlanReport, PoolReport
from engine.protocol import Placement

LEAST_WIDTH: Final = 24
RUNGS: Final[Mapping[Placement, str]] = MappingProxyType(
    {
        "resident": "all of it where it computes",
        "smaller-chunks": "prompt chunks are smaller than usual",
        "fp8-kv": "K and V are in 8 bits to fit",
        "pictures-apart": "the picture part waits in RAM",
        "streamed": "weights are copied while it computes",
    }
)


def sentences(report: PlanReport, width: int) -> Iterator[str]:
    """The plan for people: a table, what each pool has, and the verdict."""
    name = Path(report.model).name if Path(report.model).is_absolute() else report.model
    yield f"{name} on {report.device}"
    yield ""
    names = max(len(line.owner) for line in report.lines)
    for line in report.lines:
        head = f"  {line.pool:<7} {line.owner:<{names}} {gibibytes(line.bytes, up=True):>7}  "
        yield from _wrapped(head, line.reason, width)
    yield ""
    for pool in report.pools:
        yield from _wrapped("", _pool(pool), width)
    yield ""
    yield from _wrapped("", verdict(report), width)


def verdict(report: PlanReport) -> str:
    """Whether it fits, and how."""
    if report.refusal is not None:
        return f"Does not fit: {report.refusal}"
    placement = RUNGS[report.placement] if report.placement is not None else ""
    return (
        f"Fits: context {report.context_tokens:,} tokens, {report.streams} of "
        f"{report.wanted_streams} chats at once, K and V as {report.kv_format}, prompts "
        f"{report.chunk_rows:,} rows at a time; {placement}."
    )


def gibibytes(size: int, *, up: bool = False) -> str:
    """GiB with two decimals; what is needed rounds up, what is free down."""
    hundredths = 100 * size / 2**30
    return f"{(math.ceil(hundredths) if up else math.floor(hundredths)) / 100:.2f}"


def _pool(pool: PoolReport) -> str:
    held = "".join(f", {owner} {gibibytes(size, up=True)}" for owner, size in pool.holders)
    total = f" ({gibibytes(pool.total_bytes)} in all{held})" if pool.total_bytes else ""
    # What fits to the last hundredth would look, rounded up, as if it did not.
    spare = pool.free_bytes - pool.needed_bytes
    is_full = 0 <= spare < 1024**3 / 100
    return (
        f"{pool.name}: {gibibytes(pool.needed_bytes, up=not is_full)} GiB of "
        f"{gibibytes(pool.free_bytes)} that may be taken{total}"
    )


def _wrapped(head: str, text: str, width: int) -> Iterator[str]:
    """A line whose text goes on below its beginning."""
    parts = textwrap.wrap(text, max(LEAST_WIDTH, width - len(head))) or [""]
    yield (head + parts[0]).rstrip()
    for part in parts[1:]:
        yield " " * len(head) + part
