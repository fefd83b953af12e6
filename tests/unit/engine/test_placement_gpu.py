"""The planner for a GPU: its rungs one after the other, the pools beside it, what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.cache.formats import KvFormat, page_bytes
from engine.errors import MemoryRefused, RequestInvalid
from engine.loading.planning import loadable, machine_for, planned, room
from engine.memory.placement import (
    Footprint,
    Geometry,
    Machine,
    Plan,
    Refused,
    Room,
    Streamable,
    VisionPart,
    Wish,
    plan_placement,
)
from engine.memory.pools import PoolReading
from engine.models.spec import PageGroupSpec
from engine.protocol import GpuFacts

MIB, GIB = 1 << 20, 1 << 30
DRIVER = 832 * MIB
GROUP = PageGroupSpec(window=None, layer_count=16, kv_head_count=4, head_dim=256)
SLIDING = PageGroupSpec(window=1024, layer_count=40, kv_head_count=8, head_dim=256)
GEOMETRY = Geometry((GROUP,), 32_768, 2048, KvFormat.BF16, least_chunk_rows=64, grid_rows=64)
LAYERS = Streamable((100 * MIB,) * 40)
EXPERTS = Streamable((10 * MIB,) * 20, 20 * 64 * 2 * MIB, 2 * MIB, 20, 64, 8)
FOOTPRINT = Footprint(
    weight_bytes=4200 * MIB,
    workspace_bytes=64 * MIB,
    row_bytes=MIB // 4,
    logit_bytes=MIB,
)


def pages(tokens: int, chats: int, states: int) -> int:
    """Bytes of the full group: a chat each, one chat's worth for states, a tail each."""
    whole = -(-tokens // 256)
    return (chats * whole + (whole if states else 0) + states) * page_bytes(GROUP, KvFormat.BF16)


def place(
    gpu: int, wish: Wish, footprint: Footprint = FOOTPRINT, ram: int = 64 * GIB
) -> Plan | Refused:
    return plan_placement(Machine(Room("ram", ram), Room("gpu0", gpu)), footprint, GEOMETRY, wish)


def fits(gpu: int, wish: Wish, footprint: Footprint = FOOTPRINT, ram: int = 64 * GIB) -> Plan:
    found = place(gpu, wish, footprint, ram)
    assert isinstance(found, Plan)
    return found


def line(found: Plan | Refused, owner: str) -> tuple[str, int]:
    (one,) = [each for each in found.lines if each.owner == owner]
    return one.pool, one.bytes


WISH = Wish(8192, 4)
FIXED = 4200 * MIB + 64 * MIB + 5 * MIB + DRIVER


def test_a_gpu_with_room_computes_all_and_keeps_states_in_pinned_memory() -> None:
    found = fits(24 * GIB, WISH)
    assert (found.placement, found.chunk_rows, found.kv_format) == ("resident", 2048, KvFormat.BF16)
    assert line(found, "workspace") == ("gpu0", 64 * MIB + 512 * MIB)
    assert line(found, "driver and graphs") == ("gpu0", DRIVER)
    assert line(found, "KV pages")[1] + line(found, "kept states")[1] == pages(8192, 4, 16)
    assert line(found, "kept states in memory") == ("pinned", 8 * GIB)
    assert [(need.pool, need.needed_bytes) for need in found.needs] == [
        ("gpu0", FIXED + 512 * MIB + pages(8192, 4, 16)),
        ("ram", 8 * GIB),
        ("pinned", 8 * GIB),
    ]


def test_the_host_tier_is_half_of_free_ram_at_most_and_nothing_where_that_is_too_little() -> None:
    assert fits(24 * GIB, WISH, ram=10 * GIB).host_state_bytes == 5 * GIB
    extent = page_bytes(GROUP, KvFormat.BF16)
    least = fits(24 * GIB, WISH, ram=8 * extent)
    assert least.host_state_bytes == 4 * extent
    none = fits(24 * GIB, WISH, ram=8 * extent - 2)
    assert none.host_state_bytes == 0
    assert "kept states in memory" not in {each.owner for each in none.lines}


@pytest.mark.parametrize("rows", [2048, 1024, 512])
def test_chunks_get_smaller_before_anything_is_cut_and_fit_to_the_byte(rows: int) -> None:
    exact = FIXED + rows * MIB // 4 + pages(8192, 4, 16)
    found = fits(exact, WISH)
    assert (found.chunk_rows, found.streams, found.states) == (rows, 4, 16)
    assert found.placement == ("resident" if rows == 2048 else "smaller-chunks")
    less = fits(exact - 1, WISH)
    assert (less.chunk_rows, less.states) < (rows, 16) or less.states < 16


def test_the_smallest_chunk_is_one_grid() -> None:
    least = FIXED - 3 * MIB + 64 * MIB // 4 + pages(8192, 1, 0)
    found = fits(least, WISH)
    assert (found.chunk_rows, found.streams, found.states) == (64, 1, 0)
    assert found.host_state_bytes == 0
    refused = place(least - 1, WISH)
    assert isinstance(refused, Refused)
    assert (refused.pool, refused.needed_bytes, refused.free_bytes) == ("gpu0", least, least - 1)
    assert "GPU memory" in refused.sentence
    assert refused.fitting_context_tokens == 8192 - 256


@pytest.mark.parametrize(("chats", "rows"), [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8)])
def test_a_recorded_step_has_rows_for_a_power_of_two_of_chats(chats: int, rows: int) -> None:
    recorded = replace(FOOTPRINT, step_row_bytes=MIB, steps_double=True)
    assert recorded.workspace(256, chats, 64) == (64 + 16 + rows) * MIB
    assert recorded.logits(chats) == (rows + 1) * MIB


def test_pictures_are_counted_with_the_rows_of_the_longest_and_wait_in_ram_where_short() -> None:
    seeing = replace(FOOTPRINT, vision=VisionPart(800 * MIB, 200 * MIB, 1000))
    roomy = fits(24 * GIB, WISH, seeing)
    assert line(roomy, "picture part") == ("gpu0", 800 * MIB)
    rows = 2048 + 1000 + 2 * 64
    assert line(roomy, "workspace")[1] == 64 * MIB + rows * MIB // 4 + 200 * MIB
    # With 512 rows everything fits but for the picture part.
    work = 64 * MIB + (512 + 1128) * MIB // 4 + 300 * MIB
    exact = FIXED - 64 * MIB + work + pages(8192, 4, 16)
    apart = fits(exact, WISH, seeing)
    assert (apart.placement, apart.streams, apart.states) == ("pictures-apart", 4, 16)
    assert line(apart, "picture part") == ("pinned", 800 * MIB)
    assert line(apart, "workspace") == ("gpu0", work)
    # RAM that is too short for it refuses, and names that pool.
    refused = place(FIXED + 400 * MIB, WISH, seeing, ram=100 * MIB)
    assert isinstance(refused, Refused)
    like_text = replace(FOOTPRINT, vision=VisionPart(800 * MIB, 200 * MIB))
    rows_alone = line(fits(24 * GIB, WISH, like_text), "workspace")[1]
    assert rows_alone == 64 * MIB + 512 * MIB + 200 * MIB


def test_sliding_pages_follow_the_rows_of_a_chunk() -> None:
    geometry = replace(GEOMETRY, groups=(GROUP, SLIDING))
    machine = Machine(Room("ram", 64 * GIB), Room("gpu0", 80 * GIB))
    found = plan_placement(machine, FOOTPRINT, geometry, WISH)
    assert isinstance(found, Plan)
    # Window + chunk in whole pages and one for alignment; a state has its window and a tail.
    assert found.page_counts == (4 * 32 + 32 + 16, 4 * (12 + 1) + 16 * 5)


def test_layers_that_do_not_fit_are_streamed_from_pinned_memory_or_the_file() -> None:
    dense = replace(FOOTPRINT, streamable=LAYERS)
    work = 64 * MIB + 512 * MIB + 2 * MIB + DRIVER + pages(8192, 1, 2)
    room_for = work + 200 * MIB + 200 * MIB + 7 * 100 * MIB
    found = fits(room_for, WISH, dense)
    assert (found.placement, found.chunk_rows, found.streams) == ("streamed", 2048, 1)
    assert found.states == 2
    assert line(found, "weights") == ("gpu0", 200 * MIB + 7 * 100 * MIB)
    assert line(found, "staging") == ("gpu0", 200 * MIB)
    assert line(found, "weights to copy") == ("pinned", 33 * 100 * MIB)
    assert found.not_yet is not None
    from_file = fits(room_for, WISH, dense, ram=GIB)
    assert line(from_file, "weights to copy") == ("pinned", 64 * MIB)
    assert isinstance(place(room_for, WISH, dense, ram=100 * MIB), Refused)
    assert isinstance(place(GIB, WISH, dense), Refused)
    assert isinstance(place(room_for, WISH), Refused), "the control: nothing can be streamed"


def test_experts_have_the_largest_table_that_fits_down_to_the_active_ones() -> None:
    mixture = replace(FOOTPRINT, streamable=EXPERTS)
    fixed = 4200 * MIB - EXPERTS.experts_bytes
    work = 64 * MIB + 512 * MIB + 2 * MIB + DRIVER + pages(8192, 1, 2) + fixed + 32 * MIB
    for slots in (32, 16, 8):
        found = fits(work + slots * 40 * MIB, WISH, mixture)
        assert line(found, "expert slots") == ("gpu0", slots * 40 * MIB)
        assert line(found, "staging") == ("gpu0", 2 * 8 * 2 * MIB)
        assert line(found, "weights to copy") == ("pinned", EXPERTS.experts_bytes)
        assert found.chunk_rows == 2048
    thinner = fits(work + 8 * 40 * MIB - 1, WISH, mixture)
    assert (thinner.chunk_rows, thinner.states) == (2048, 1)
    none = pages(8192, 1, 2) - pages(8192, 1, 0)
    without = fits(work + 8 * 40 * MIB - none, WISH, mixture)
    assert (without.chunk_rows, without.states) == (2048, 0)
    assert fits(work + 8 * 40 * MIB - none - 1, WISH, mixture).chunk_rows == 1024
    least = work + 8 * 40 * MIB - none - (2048 - 64) * MIB // 4
    assert fits(least, WISH, mixture).chunk_rows == 64
    assert isinstance(place(least - 1, WISH, mixture), Refused)


def test_what_is_streamed_is_planned_and_not_loaded_yet() -> None:
    dense = replace(FOOTPRINT, streamable=LAYERS)
    found = fits(3 * GIB, WISH, dense)
    answer = planned(7, found, "GPU, x")
    assert (answer.request, answer.placement, answer.streams) == (7, "streamed", 1)
    assert answer.refusal is not None
    assert "cannot do yet. The model needs at least" in answer.refusal
    with pytest.raises(MemoryRefused, match="cannot do yet") as refused:
        loadable(found)
    numbers = refused.value.numbers
    assert int(numbers["needed_bytes"]) > int(numbers["free_bytes"]) == 3 * GIB
    assert numbers["pool"] == "gpu0"
    assert loadable(fits(24 * GIB, WISH)).placement == "resident"


def test_a_described_gpu_leaves_a_tenth_to_other_programs_and_a_gib_at_least() -> None:
    ram = room(PoolReading("ram", 32 * GIB, 20 * GIB, 12 * GIB, "RAM"))
    assert ram.free_bytes == 18 * GIB
    assert ram.holders == (
        ("other programs", 12 * GIB),
        ("reserve for other programs", 2 * GIB),
    )
    large = GpuFacts(name="x", total_bytes=40 * GIB, free_bytes=30 * GIB)
    made = machine_for(ram, large, "a CPU")
    assert made.gpu is not None
    assert (made.gpu.free_bytes, made.device) == (26 * GIB, "GPU, x")
    assert made.gpu.holders[0] == ("other programs", 10 * GIB)
    small = machine_for(ram, GpuFacts(name="x", total_bytes=6 * GIB, free_bytes=GIB // 2), "a CPU")
    assert small.gpu is not None
    assert (small.gpu.free_bytes, small.gpu.holders[1][1]) == (0, GIB // 2)
    assert machine_for(ram, None, "a CPU") == Machine(ram, None, "CPU, a CPU")
    with pytest.raises(RequestInvalid, match="cannot have"):
        machine_for(ram, GpuFacts(name="x", total_bytes=5, free_bytes=6), "a CPU")
    assert room(PoolReading("ram", 32 * GIB, 20 * GIB), 20 * GIB).holders == ()
