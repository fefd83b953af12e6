"""The planner on the processor: fills what is free, explains each line, refuses to the byte."""

from __future__ import annotations

import subprocess
import sys

import pytest

from engine.cache.formats import KvFormat, page_bytes
from engine.memory.placement import (
    Footprint,
    Geometry,
    Machine,
    Plan,
    Refused,
    Room,
    Wish,
    plan_placement,
)
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
FOOTPRINT = Footprint(weight_bytes=98 * MEBIBYTE, workspace_bytes=20 * MEBIBYTE, logit_bytes=1000)
SMOL_PAGE = page_bytes(SMOL.groups[0], KvFormat.FP16)


def fixed(streams: int) -> int:
    """Weights, workspace and logits of ``FOOTPRINT``."""
    return 118 * MEBIBYTE + 1000 * (streams + 1)


def on_cpu(free: int) -> Machine:
    return Machine(Room("ram", free, free + 7, (("another", 7),)))


def found(free: int, geometry: Geometry, wish: Wish) -> Plan | Refused:
    return plan_placement(on_cpu(free), FOOTPRINT, geometry, wish)


def planned(free: int, geometry: Geometry, wish: Wish) -> Plan:
    plan = found(free, geometry, wish)
    assert isinstance(plan, Plan)
    assert sum(line.bytes for line in plan.lines) == plan.peak_by_pool["ram"] <= free
    return plan


def line(plan: Plan | Refused, owner: str) -> int:
    return sum(each.bytes for each in plan.lines if each.owner == owner)


def reason(plan: Plan | Refused, owner: str) -> str:
    return next(each.reason for each in plan.lines if each.owner == owner)


def test_with_room_every_chat_has_its_full_context_and_states_have_theirs() -> None:
    plan = planned(16 * 1024 * MEBIBYTE, SMOL, Wish(None, 4))
    assert (plan.context_tokens, plan.streams, plan.states) == (8192, 4, 16)
    assert (plan.placement, plan.kv_format, plan.chunk_rows) == ("resident", KvFormat.FP16, 256)
    assert plan.page_counts == (5 * 32,)
    assert {line.owner: line.bytes for line in plan.lines} == {
        "weights": 98 * MEBIBYTE,
        "workspace": 20 * MEBIBYTE,
        "logits": 5000,
        "KV pages": 4 * 180 * MEBIBYTE,
        "kept states": 180 * MEBIBYTE,
        "kept states in memory": 4 * SMOL_PAGE + 256 * MEBIBYTE,
    }
    assert all(line.pool == "ram" and line.reason for line in plan.lines)
    assert plan.host_state_bytes == 4 * SMOL_PAGE + 256 * MEBIBYTE


def test_a_sliding_group_is_planned_by_its_window() -> None:
    plan = planned(16 * 1024 * MEBIBYTE, GEMMA, Wish(8192, 4))
    assert plan.page_counts == (5 * 32, 4 * 4 + 16 * 2)


def test_states_kept_inside_pages_have_a_last_page_of_their_own() -> None:
    finer = Geometry(GEMMA.groups, 32768, 256, KvFormat.FP16, grid_rows=64)
    plan = planned(16 * 1024 * MEBIBYTE, finer, Wish(8192, 4))
    assert plan.page_counts == (5 * 32 + 16, 4 * 4 + 16 * 3)


def test_a_chosen_context_is_the_longest_that_leaves_half_of_the_room_to_others() -> None:
    before = 0
    for room in (1300, 2000, 4000, 9000, 64_000):
        plan = planned(fixed(4) + room * MEBIBYTE, GEMMA, Wish(None, 4))
        beside = sum(line.bytes for line in plan.lines) - fixed(4) - plan.host_state_bytes
        assert beside + 4 * MEBIBYTE * 15 // 4 <= room * MEBIBYTE // 2
        assert (plan.streams, plan.states) == (4, 16)
        assert plan.context_tokens >= before
        before = plan.context_tokens
    assert before == 32768


def test_a_chosen_context_may_crowd_others_only_where_it_must() -> None:
    for room, crowds in ((500, False), (300, True), (112, True)):
        plan = planned(fixed(1) + room * MEBIBYTE, SMOL, Wish(None, 1))
        beside = plan.peak_by_pool["ram"] - fixed(1) - plan.host_state_bytes
        beside += 4 * SMOL_PAGE if plan.states else 0
        assert (beside > room * MEBIBYTE // 2) is crowds


def test_an_asked_context_is_kept_and_chats_give_way() -> None:
    plan = planned(fixed(1) + 180 * MEBIBYTE, SMOL, Wish(8192, 4))
    assert (plan.context_tokens, plan.streams, plan.page_counts) == (8192, 1, (32,))
    assert "1 of 4 chats" in reason(plan, "KV pages")
    assert "no room" in reason(plan, "kept states")
    assert (plan.states, plan.host_state_bytes) == (0, 0)


def test_fewer_kept_states_than_the_chats_should_have_are_told() -> None:
    plan = planned(fixed(4) + 5100 * MEBIBYTE, QWEN27, Wish(8192, 4))
    assert plan.states < 16
    assert f"{plan.states} kept prompt states, fewer than the 16" in reason(plan, "kept states")


def test_one_byte_less_than_the_least_is_refused_with_numbers() -> None:
    least = fixed(1) + 180 * MEBIBYTE
    assert isinstance(found(least, SMOL, Wish(8192, 4)), Plan)
    refused = found(least - 1, SMOL, Wish(8192, 4))
    assert isinstance(refused, Refused)
    assert (refused.pool, refused.needed_bytes, refused.free_bytes) == ("ram", least, least - 1)
    assert sum(line.bytes for line in refused.lines) == least
    assert refused.fitting_context_tokens == 8192 - 256
    for part in ("0.3 GiB of RAM", "8,192 tokens", "0.2 of 0.2 GiB", "another 0.1", "7,936"):
        assert part in refused.sentence


def test_what_would_fit_in_a_refusal_s_place_does_fit_and_not_a_page_more() -> None:
    free = fixed(1) + 100 * MEBIBYTE
    refused = found(free, SMOL, Wish(8192, 2))
    assert isinstance(refused, Refused)
    fitting = refused.fitting_context_tokens
    assert fitting == 100 * MEBIBYTE // SMOL_PAGE * 256
    assert isinstance(found(free, SMOL, Wish(fitting, 1)), Plan)
    assert isinstance(found(free, SMOL, Wish(fitting + 1, 1)), Refused)


def test_weights_that_do_not_fit_are_refused() -> None:
    refused = found(FOOTPRINT.weight_bytes, SMOL, Wish(None, 1))
    assert isinstance(refused, Refused)
    assert (refused.context_tokens, refused.fitting_context_tokens) == (4096, 0)
    assert "No context of any length would fit" in refused.sentence


def test_a_recurrent_model_has_a_slot_for_every_chat_and_kept_state() -> None:
    plan = planned(64 * 1024 * MEBIBYTE, QWEN27, Wish(8192, 4))
    assert plan.slot_count == 4 + 16
    assert line(plan, "recurrent states") == 20 * (144 * MEBIBYTE + 5_898_240)
    words = reason(plan, "recurrent states")
    assert "4 for running chats, 16 for kept prompt states" in words
    assert planned(64 * 1024 * MEBIBYTE, SMOL, Wish(None, 4)).slot_count == 0


def test_kept_recurrent_states_give_way_before_chats_but_not_below_their_number() -> None:
    """A chat takes 512 MiB of pages, all kept states together as much, each slot 149.6 MiB."""
    counts = {}
    for room in (6300, 5100, 4500, 3500, 2900, 2000, 1700, 700):
        plan = planned(fixed(4) + room * MEBIBYTE, QWEN27, Wish(8192, 4))
        assert plan.context_tokens == 8192
        counts[room] = (plan.streams, plan.states)
    assert counts == {
        6300: (4, 16),
        5100: (4, 8),
        4500: (4, 4),
        3500: (2, 4),
        2900: (2, 2),
        2000: (1, 1),
        1700: (1, 0),
        700: (1, 0),
    }


def test_a_recurrent_model_is_refused_by_one_byte_too() -> None:
    least = fixed(1) + 512 * MEBIBYTE + 144 * MEBIBYTE + 5_898_240
    plan = found(least, QWEN27, Wish(8192, 4))
    assert isinstance(plan, Plan)
    assert (plan.slot_count, plan.page_counts) == (1, (32,))
    refused = found(least - 1, QWEN27, Wish(8192, 4))
    assert isinstance(refused, Refused)
    assert refused.needed_bytes == least


def test_eight_bits_are_taken_only_where_allowed_and_needed() -> None:
    eight = page_bytes(SMOL.groups[0], KvFormat.FP8)
    free = fixed(4) + 5 * 32 * eight + 4 * SMOL_PAGE
    assert planned(free, SMOL, Wish(8192, 4)).kv_format is KvFormat.FP16
    allowed = planned(free, SMOL, Wish(8192, 4, "full-or-fp8"))
    assert (allowed.kv_format, allowed.placement) == (KvFormat.FP8, "fp8-kv")
    assert (allowed.streams, allowed.states) == (4, 16)
    assert "8 bits, as fp16 does not fit" in reason(allowed, "KV pages")
    roomy = planned(16 * 1024 * MEBIBYTE, SMOL, Wish(8192, 4, "full-or-fp8"))
    assert (roomy.kv_format, roomy.placement) == (KvFormat.FP16, "resident")
    asked = planned(16 * 1024 * MEBIBYTE, SMOL, Wish(8192, 4, "fp8"))
    assert (asked.kv_format, asked.placement) == (KvFormat.FP8, "resident")
    assert "8 bits as asked" in reason(asked, "KV pages")


def test_the_processor_s_chunks_are_never_made_smaller() -> None:
    for room in (181, 400, 2000):
        plan = planned(fixed(4) + room * MEBIBYTE, SMOL, Wish(8192, 4))
        assert (plan.chunk_rows, plan.placement) == (256, "resident")


def test_workspace_grows_with_the_context_and_chats_it_is_for() -> None:
    footprint = Footprint(
        weight_bytes=0, workspace_bytes=MEBIBYTE, row_bytes=10, stream_page_bytes=1000
    )
    for context, streams in ((300, 1), (8192, 1), (8192, 3)):
        plan = plan_placement(on_cpu(4096 * MEBIBYTE), footprint, SMOL, Wish(context, streams))
        assert isinstance(plan, Plan)
        pages = streams * -(-context // 256)
        assert line(plan, "workspace") == MEBIBYTE + 2560 + 1000 * pages
    loading = Footprint(weight_bytes=0, workspace_bytes=5, loading_bytes=900)
    assert loading.workspace(1, 1, 256) == 900


@pytest.mark.parametrize(("asked", "got"), [(100_000, 8192), (8192, 8192), (300, 300)])
def test_no_context_is_longer_than_the_model_was_made_for(asked: int, got: int) -> None:
    assert planned(16 * 1024 * MEBIBYTE, SMOL, Wish(asked, 1)).context_tokens == got


def test_planning_imports_no_torch() -> None:
    code = "import sys, engine.memory.placement; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
