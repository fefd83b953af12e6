"""The planner fills what is free, explains each line and refuses to the byte."""

from __future__ import annotations

import subprocess
import sys

import pytest

from engine.cache.formats import KvFormat, page_bytes
from engine.memory.ledger import PoolCensus
from engine.memory.placement import Footprint, Geometry, Plan, Refused, Wish, plan_placement
from engine.models.spec import PageGroupSpec, RecurrentSpec

SMOL = Geometry(
    groups=(PageGroupSpec(window=None, layer_count=30, kv_head_count=3, head_dim=64),),
    context_tokens=8192,
    chunk_rows=256,
    kv_format=KvFormat.FP16,
)
GEMMA = Geometry(
    groups=(
        PageGroupSpec(window=None, layer_count=3, kv_head_count=1, head_dim=256),
        PageGroupSpec(window=512, layer_count=15, kv_head_count=1, head_dim=256),
    ),
    context_tokens=32768,
    chunk_rows=256,
    kv_format=KvFormat.FP16,
)
QWEN27 = Geometry(
    groups=(PageGroupSpec(window=None, layer_count=16, kv_head_count=4, head_dim=256),),
    context_tokens=262_144,
    chunk_rows=256,
    kv_format=KvFormat.FP16,
    recurrent=RecurrentSpec(layer_count=48, state_shape=(48, 128, 128), tail_shape=(3, 10_240)),
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
        assert kv == sum(plan.page_counts) * page_bytes(SMOL.groups[0], KvFormat.FP16)
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


def test_a_recurrent_model_has_a_slot_for_every_chat_and_kept_state() -> None:
    plan = planned(64 * 1024 * MEBIBYTE, QWEN27, Wish(None, 4))
    assert plan.slot_count == 4 + 16
    line = plan.lines[-1]
    assert line.owner == "recurrent states"
    assert line.bytes == 20 * (144 * MEBIBYTE + 5_898_240)
    assert "4 for running chats, 16 for kept prompt states" in line.reason
    assert planned(64 * 1024 * MEBIBYTE, SMOL, Wish(None, 4)).slot_count == 0


def test_kept_recurrent_states_give_way_before_chats_but_not_below_their_number() -> None:
    """Each row: MiB of room (asked, so all of it may be taken), chats and kept states.

    A chat takes 512 MiB of pages, all kept states together as much, each slot 149.6 MiB.
    """
    fixed = FOOTPRINT.weight_bytes + FOOTPRINT.workspace_bytes
    found = {}
    for room in (5700, 4500, 3900, 2900, 2000, 1400, 700):
        plan = planned(fixed + room * MEBIBYTE, QWEN27, Wish(8192, 4))
        taken = sum(line.bytes for line in plan.lines) - fixed
        assert taken <= room * MEBIBYTE
        assert plan.context_tokens == 8192
        found[room] = plan.lines[-1].reason.split(": ")[1]
    counts = {
        room: tuple(int(word) for word in reason.split() if word.isdecimal())
        for room, reason in found.items()
    }
    assert counts == {
        5700: (4, 16),
        4500: (4, 8),
        3900: (4, 4),
        2900: (2, 4),
        2000: (1, 4),
        1400: (1, 1),
        700: (1, 0),
    }


def test_a_recurrent_model_is_refused_by_one_byte_too() -> None:
    fixed = FOOTPRINT.weight_bytes + FOOTPRINT.workspace_bytes
    least = fixed + 512 * MEBIBYTE + 144 * MEBIBYTE + 5_898_240
    plan = plan_placement(ram(least), FOOTPRINT, QWEN27, Wish(8192, 4))
    assert isinstance(plan, Plan)
    assert (plan.slot_count, plan.page_counts) == (1, (32,))
    refused = plan_placement(ram(least - 1), FOOTPRINT, QWEN27, Wish(8192, 4))
    assert isinstance(refused, Refused)
    assert refused.needed_bytes == least


def test_workspace_grows_with_the_context_it_is_for() -> None:
    footprint = Footprint(weight_bytes=0, workspace_bytes=MEBIBYTE, workspace_page_bytes=1000)
    for context in (300, 8192):
        plan = plan_placement(ram(2048 * MEBIBYTE), footprint, SMOL, Wish(context, 1))
        assert isinstance(plan, Plan)
        assert plan.lines[1].bytes == MEBIBYTE + 1000 * -(-context // 256)


@pytest.mark.parametrize(("asked", "got"), [(100_000, 8192), (8192, 8192), (300, 300)])
def test_no_context_is_longer_than_the_model_was_made_for(asked: int, got: int) -> None:
    assert planned(16 * 1024 * MEBIBYTE, SMOL, Wish(asked, 1)).context_tokens == got


def test_planning_imports_no_torch() -> None:
    code = "import sys, engine.memory.placement; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
