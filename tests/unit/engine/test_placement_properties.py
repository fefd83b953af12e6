"""Whatever the model and the machine: plans fit, and more memory or less context is never worse."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.cache.formats import KvFormat
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
from engine.models.spec import PageGroupSpec, RecurrentSpec

MIB = 1 << 20
RUNGS = ("resident", "smaller-chunks", "fp8-kv", "pictures-apart", "streamed")

groups = st.lists(
    st.builds(
        PageGroupSpec,
        window=st.sampled_from([None, 1, 128, 512, 1000, 4096]),
        layer_count=st.integers(1, 40),
        kv_head_count=st.integers(1, 8),
        head_dim=st.sampled_from([64, 128, 256]),
    ),
    min_size=1,
    max_size=2,
)
recurrents = st.none() | st.builds(
    RecurrentSpec,
    layer_count=st.integers(1, 48),
    state_shape=st.just((16, 128, 128)),
    tail_shape=st.just((3, 4096)),
)
visions = st.none() | st.builds(
    VisionPart,
    weight_bytes=st.integers(1, 900 * MIB),
    workspace_bytes=st.integers(0, 300 * MIB),
    longest_block_rows=st.sampled_from([0, 256, 1120]),
)
streamables = st.none() | st.sampled_from(
    [
        Streamable((40 * MIB,) * 32),
        Streamable((9 * MIB,) * 40, 40 * 64 * 3 * MIB, 3 * MIB, 40, 64, 8),
    ]
)


@st.composite
def models(draw: st.DrawFn) -> tuple[Footprint, Geometry]:
    streamable = draw(streamables)
    parts = 0 if streamable is None else sum(streamable.layer_bytes) + streamable.experts_bytes
    footprint = Footprint(
        weight_bytes=parts + draw(st.integers(1, 4000 * MIB)),
        workspace_bytes=draw(st.integers(0, 200 * MIB)),
        row_bytes=draw(st.integers(0, 400_000)),
        stream_page_bytes=draw(st.integers(0, 50_000)),
        logit_bytes=draw(st.integers(0, MIB)),
        step_row_bytes=draw(st.integers(0, 5 * MIB)),
        steps_double=draw(st.booleans()),
        loading_bytes=draw(st.integers(0, 300 * MIB)),
        vision=draw(visions),
        streamable=streamable,
    )
    finer = draw(st.booleans())
    geometry = Geometry(
        groups=tuple(draw(groups)),
        context_tokens=draw(st.integers(1, 300_000)),
        chunk_rows=2048 if finer else 256,
        kv_format=draw(st.sampled_from([KvFormat.FP16, KvFormat.FP32])),
        recurrent=draw(recurrents),
        least_chunk_rows=64 if finer else 256,
        grid_rows=64 if finer else 256,
    )
    return footprint, geometry


def machines(gpu: int, ram: int) -> Machine:
    return Machine(Room("ram", ram), Room("gpu0", gpu) if gpu else None)


wishes = st.builds(
    Wish,
    context_tokens=st.none() | st.integers(1, 300_000),
    streams=st.integers(1, 64),
    kv=st.sampled_from(["full", "full-or-fp8", "fp8"]),
)
sizes = st.integers(0, 30_000 * MIB)


def rank(found: Plan | Refused) -> tuple[int, int, int, int]:
    if isinstance(found, Refused):
        return 0, 0, 0, 0
    rung = len(RUNGS) - RUNGS.index(found.placement)
    # Where weights lie elsewhere there may be room for more states than beside all of them.
    states = 0 if found.placement == "streamed" else found.states
    return found.context_tokens, found.streams, states + 1, rung


@settings(max_examples=60, deadline=None)
@given(models(), wishes, st.tuples(sizes, sizes), sizes, st.booleans())
def test_more_memory_is_never_worse(
    model: tuple[Footprint, Geometry],
    wish: Wish,
    memory: tuple[int, int],
    more: int,
    beside: bool,
) -> None:
    gpu, ram = memory
    small = machines(gpu if beside else 0, ram)
    large = machines(gpu + more if beside and gpu else 0, ram + more)
    worse, better = (rank(plan_placement(one, *model, wish)) for one in (small, large))
    assert all(a <= b for a, b in zip(worse, better, strict=True))


@settings(max_examples=60, deadline=None)
@given(models(), wishes, sizes, sizes)
def test_a_plan_fits_and_keeps_what_was_asked(
    model: tuple[Footprint, Geometry], wish: Wish, gpu: int, ram: int
) -> None:
    machine, (footprint, geometry) = machines(gpu, ram), model
    found = plan_placement(machine, footprint, geometry, wish)
    if isinstance(found, Refused):
        assert found.needed_bytes > found.free_bytes
        assert found.fitting_context_tokens <= found.context_tokens
        return
    assert all(need.needed_bytes <= need.free_bytes for need in found.needs)
    assert 1 <= found.streams <= wish.streams
    assert geometry.least_chunk_rows <= found.chunk_rows <= geometry.chunk_rows
    if wish.context_tokens is not None:
        assert found.context_tokens == min(wish.context_tokens, geometry.context_tokens)
    allowed = {"full": [geometry.kv_format], "fp8": [KvFormat.FP8]}
    assert found.kv_format in allowed.get(wish.kv, [geometry.kv_format, KvFormat.FP8])
    slots = 0 if geometry.recurrent is None else found.streams + found.states
    assert found.slot_count == slots
    assert len(found.page_counts) == len(geometry.groups)
    assert (found.host_state_bytes > 0) <= (found.states > 0)


@settings(max_examples=60, deadline=None)
@given(models(), st.integers(1, 200_000), st.integers(1, 100_000), st.booleans())
def test_a_longer_context_never_needs_less(
    model: tuple[Footprint, Geometry], context: int, more: int, beside: bool
) -> None:
    footprint, geometry = replace(model[0], streamable=None), model[1]
    nothing = machines(1, 0) if beside else machines(0, 0)
    needed = []
    for tokens in (context, context + more):
        found = plan_placement(nothing, footprint, geometry, Wish(tokens, 4))
        assert isinstance(found, Refused)
        needed.append(sum(line.bytes for line in found.lines if line.pool == found.pool))
    assert needed[0] <= needed[1]


@settings(max_examples=50, deadline=None)
@given(models(), wishes)
def test_the_least_that_is_told_fits_exactly_and_not_with_a_byte_less(
    model: tuple[Footprint, Geometry], wish: Wish
) -> None:
    """On the processor, and on a GPU beside more RAM than anything needs."""
    footprint, geometry = replace(model[0], streamable=None), model[1]
    for machine in (machines(0, 0), machines(1, 1 << 50)):
        none = plan_placement(machine, footprint, geometry, wish)
        assert isinstance(none, Refused)
        exact, short = none.needed_bytes, none.needed_bytes - 1
        on_gpu = machine.gpu is not None
        enough = machines(exact, 1 << 50) if on_gpu else machines(0, exact)
        less = machines(short, 1 << 50) if on_gpu else machines(0, short)
        assert isinstance(plan_placement(enough, footprint, geometry, wish), Plan)
        refused = plan_placement(less, footprint, geometry, wish)
        assert isinstance(refused, Refused)
        assert (refused.needed_bytes, refused.free_bytes) == (exact, short)


@settings(max_examples=50, deadline=None)
@given(models(), wishes, sizes)
def test_a_fitting_context_fits_and_a_page_more_does_not(
    model: tuple[Footprint, Geometry], wish: Wish, ram: int
) -> None:
    machine, (footprint, geometry) = machines(0, ram), model
    refused = plan_placement(machine, footprint, geometry, wish)
    if isinstance(refused, Plan):
        return
    fitting = refused.fitting_context_tokens
    if fitting:
        shorter = replace(wish, context_tokens=fitting)
        assert isinstance(plan_placement(machine, footprint, geometry, shorter), Plan)
    longer = replace(wish, context_tokens=fitting + 256)
    if fitting + 256 <= refused.context_tokens:
        assert isinstance(plan_placement(machine, footprint, geometry, longer), Refused)
