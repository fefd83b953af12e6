"""The planner fills what is free, explains each line and refuses to the byte."""

from __future__ import annotations

import subprocess
import sys

import pytest

from engine.cache.pages import page_bytes
from engine.memory.ledger import PoolCensus
from engine.memory.placement import Footprint, Geometry, Plan, Refused, Wish, plan_placement
from engine.models.spec import PageGroupSpec

SMOL = Geometry(
    groups=(PageGroupSpec(window=None, layer_count=30, kv_head_count=3, head_dim=64),),
    context_tokens=8192,
    chunk_rows=256,
    element_bytes=2,
)
GEMMA = Geometry(
    groups=(
        PageGroupSpec(window=None, layer_count=3, kv_head_count=1, head_dim=256),
        PageGroupSpec(window=512, layer_count=15, kv_head_count=1, head_dim=256),
    ),
    context_tokens=32768,
    chunk_rows=256,
    element_bytes=2,
)
MEBIBYTE = 1024 * 1024
FOOTPRINT = Footprint(weight_bytes=98 * MEBIBYTE, workspace_bytes=20 * MEBIBYTE)


def ram(free: int) -> PoolCensus:
    return PoolCensus("ram", free + 7, 7, 0, (("another", 7),))


def planned(free: int, geometry: Geometry, wish: Wish) -> Plan:
    plan = plan_placement(ram(free), FOOTPRINT, geometry, wish)
    assert isinstance(plan, Plan)
    return plan


def test_with_room_every_chat_has_its_full_context_and_states_have_theirs() -> None:
    plan = planned(16 * 1024 * MEBIBYTE, SMOL, Wish(None, 4))
    assert plan.context_tokens == 8192
    assert plan.page_counts == (5 * 32,)
    assert {line.owner: line.bytes for line in plan.lines} == {
        "weights": 98 * MEBIBYTE,
        "workspace": 20 * MEBIBYTE,
        "KV pages": 4 * 180 * MEBIBYTE,
        "kept states": 180 * MEBIBYTE,
    }
    assert all(line.pool == "ram" and line.reason for line in plan.lines)


def test_a_sliding_group_is_planned_by_its_window() -> None:
    plan = planned(16 * 1024 * MEBIBYTE, GEMMA, Wish(None, 4))
    assert plan.context_tokens == 8192
    assert plan.page_counts == (5 * 32, 4 * 4 + 16 * 3)


def test_a_chosen_context_leaves_half_of_the_room_to_others() -> None:
    fixed = FOOTPRINT.weight_bytes + FOOTPRINT.workspace_bytes
    for room in (4000, 1000, 400, 150, 60):
        plan = planned(fixed + room * MEBIBYTE, SMOL, Wish(None, 4))
        kv = sum(line.bytes for line in plan.lines) - fixed
        assert kv <= room * MEBIBYTE // 2
        assert kv == sum(plan.page_counts) * page_bytes(SMOL.groups[0], 2)
    assert planned(fixed + 150 * MEBIBYTE, SMOL, Wish(None, 4)).context_tokens < 8192


def test_an_asked_context_is_kept_and_chats_give_way() -> None:
    fixed = FOOTPRINT.weight_bytes + FOOTPRINT.workspace_bytes
    plan = planned(fixed + 180 * MEBIBYTE, SMOL, Wish(8192, 4))
    assert (plan.context_tokens, plan.page_counts) == (8192, (32,))
    assert "1 of 4 chats" in plan.lines[2].reason
    assert "no room" in plan.lines[3].reason


def test_one_byte_less_than_the_least_is_refused_with_numbers() -> None:
    least = FOOTPRINT.weight_bytes + FOOTPRINT.workspace_bytes + 180 * MEBIBYTE
    assert isinstance(plan_placement(ram(least), FOOTPRINT, SMOL, Wish(8192, 4)), Plan)
    refused = plan_placement(ram(least - 1), FOOTPRINT, SMOL, Wish(8192, 4))
    assert isinstance(refused, Refused)
    assert (refused.needed_bytes, refused.free_bytes) == (least, least - 1)
    assert sum(line.bytes for line in refused.lines) == least
    for part in (f"{least:,}", f"{least - 1:,}", "another 7"):
        assert part in refused.sentence


def test_weights_that_do_not_fit_are_refused() -> None:
    refused = plan_placement(ram(FOOTPRINT.weight_bytes), FOOTPRINT, SMOL, Wish(None, 1))
    assert isinstance(refused, Refused)
    assert refused.context_tokens == 1024
    empty = PoolCensus("ram", 5, 0, 0, ())
    refused = plan_placement(empty, FOOTPRINT, SMOL, Wish(None, 1))
    assert isinstance(refused, Refused)
    assert "held: nobody" in refused.sentence


@pytest.mark.parametrize(("asked", "got"), [(100_000, 8192), (8192, 8192), (300, 300)])
def test_no_context_is_longer_than_the_model_was_made_for(asked: int, got: int) -> None:
    assert planned(16 * 1024 * MEBIBYTE, SMOL, Wish(asked, 1)).context_tokens == got


def test_planning_imports_no_torch() -> None:
    code = "import sys, engine.memory.placement; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
