"""Plans of every model of the catalogue on thirteen machines are those of the golden table."""

from __future__ import annotations

from itertools import pairwise

import pytest

from engine.memory.placement import Machine, Plan, Refused, Room, Wish
from engine.memory.pools import GPU, RAM
from tests.helpers.catalogue import CATALOGUE, GIB
from tests.helpers.placement_table import (
    DEVICES,
    GPUS,
    PICTURES,
    PROCESSOR,
    TABLE,
    WISHES,
    Case,
    cases,
    line,
    placed,
    table,
)

RUNGS = ("resident", "smaller-chunks", "fp8-kv", "pictures-apart", "streamed", "refused")


def rank(found: Plan | Refused) -> tuple[int, int, int]:
    """Context, chats and how good the rung is; more is better in each."""
    if isinstance(found, Refused):
        return 0, 0, 0
    return found.context_tokens, found.streams, len(RUNGS) - RUNGS.index(found.placement)


def test_the_table_is_what_the_planner_says() -> None:
    """``python -m tests.helpers.placement_table`` writes it anew; read what changed."""
    wanted, found = TABLE.read_text().splitlines(), table().splitlines()
    changed = [pair for pair in zip(wanted, found, strict=True) if pair[0] != pair[1]]
    assert changed == []
    assert len(found) == 1 + len(WISHES) * len(CATALOGUE) * len(DEVICES)
    assert len({line(case) for case in cases()}) == len(found) - 1, "the control: no two alike"


@pytest.mark.parametrize("quant", WISHES)
def test_a_larger_gpu_is_never_worse(quant: str) -> None:
    for model in CATALOGUE:
        ranks = [rank(Case(device, model, quant).placed()) for device in GPUS]
        for smaller, larger in pairwise(ranks):
            assert all(a <= b for a, b in zip(smaller, larger, strict=True)), model


@pytest.mark.parametrize("model", ["Qwen3.8-27B", "Gemma-4-26B-A4B", "Gemma-3-4b", "Qwen3-8B"])
def test_more_memory_is_never_worse_at_any_size(model: str) -> None:
    """Every 96 MiB from 2 to 40 GiB, and beside it RAM of two sizes."""
    for ram in (6, 60):
        before = (0, 0, 0)
        seen = set()
        for step in range(2 * GIB, 40 * GIB, 96 << 20):
            on = Machine(Room(RAM, ram * GIB), Room(f"{GPU}0", step))
            found = rank(placed(on, model, "q4_k", Wish(None, 4, "full-or-fp8")))
            assert all(a <= b for a, b in zip(before, found, strict=True))
            before = found
            seen.add(found)
        assert len(seen) > 4, "the control: sizes matter"


def test_what_a_plan_takes_fits_into_each_pool_and_its_lines_add_up() -> None:
    for case in cases():
        found = case.placed()
        taken: dict[str, int] = {}
        for each in found.lines:
            taken[each.pool] = taken.get(each.pool, 0) + each.bytes
        if "pinned" in taken:
            taken["ram"] = taken.get("ram", 0) + taken["pinned"]
        for need in found.needs:
            assert need.needed_bytes == taken.get(need.pool, 0)
            if isinstance(found, Plan):
                assert need.needed_bytes <= need.free_bytes
                assert found.peak_by_pool.get(need.pool, 0) == need.needed_bytes
        if isinstance(found, Refused):
            short = next(need for need in found.needs if need.pool == found.pool)
            assert short.needed_bytes == found.needed_bytes > found.free_bytes


def test_streamed_plans_say_what_all_resident_would_have_needed() -> None:
    found = [case.placed() for case in cases()]
    streamed = [each for each in found if isinstance(each, Plan) and each.placement == "streamed"]
    assert len(streamed) > 50
    for each in streamed:
        assert each.not_yet is not None
        assert each.not_yet.needed_bytes > each.not_yet.free_bytes
        owners = {one.owner for one in each.lines}
        assert {"staging", "weights to copy", "weights"} <= owners
    assert any(one.owner == "expert slots" for each in streamed for one in each.lines)


def test_pictures_and_the_driver_are_counted_on_a_gpu_alone() -> None:
    for model in ("Qwen3.5-4B", "Gemma-3-4b", "Qwen3-8B"):
        on_gpu = {one.owner: one.bytes for one in Case("H200", model, "q4_k").placed().lines}
        on_cpu = {one.owner for one in Case(PROCESSOR, model, "q4_k").placed().lines}
        assert ("picture part" in on_gpu) is (model in PICTURES)
        assert "driver and graphs" in on_gpu
        assert not {"picture part", "driver and graphs"} & on_cpu
