"""Routing of rows to experts, pairs in the order of experts, and sums over a row's experts.

Whole numbers alone decide who is chosen and where a pair goes, so nothing depends on the order in
which programs run.
"""

import triton
import triton.language as tl

from kernels.dependent import begin


@triton.jit
def route_kernel(
    logits,
    scales,
    weights,
    chosen,
    logit_stride,
    EXPERTS: tl.constexpr,
    WIDTH: tl.constexpr,
    ACTIVE: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """One row: softmax, the ACTIVE likeliest, their weights; by ascending expert.

    Likelihoods are compared as whole numbers, a NaN being the likeliest.
    """
    begin(DEPENDENT)
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, WIDTH)
    inside = at < EXPERTS
    values = tl.load(logits + row * logit_stride + at, mask=inside, other=float("-inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    likely = powers / tl.sum(powers, axis=0)
    rank = tl.where(inside, likely.to(tl.int32, bitcast=True) & 0x7FFFFFFF, -1)
    for _ in tl.static_range(ACTIVE):
        # Two maxima of 32 bits take less time than one of 64.
        lowest = tl.min(tl.where(rank == tl.max(rank, axis=0), at, WIDTH), axis=0)
        rank = tl.where(at == lowest, -1, rank)
    taken = inside & (rank < 0)
    place = tl.cumsum(taken.to(tl.int32), axis=0) - 1
    share = likely / tl.sum(tl.where(taken, likely, 0.0), axis=0)
    if scales is not None:
        share = share * tl.load(scales + at, mask=inside, other=0.0)
    to = row * ACTIVE + place
    tl.store(weights + to, share, mask=taken)
    tl.store(chosen + to, at, mask=taken)


@triton.jit(do_not_specialize=["pairs"])
def count_kernel(chosen, counts, pairs, EXPERTS: tl.constexpr, TILE: tl.constexpr):
    """How many pairs of a block one expert has: counts[block, expert]."""
    block = tl.program_id(1)
    expert = tl.program_id(0)
    at = block * TILE + tl.arange(0, TILE)
    found = tl.load(chosen + at, mask=at < pairs, other=-1)
    count = tl.sum((found == expert).to(tl.int32), axis=0)
    tl.store(counts + block * EXPERTS + expert, count)


@triton.jit(do_not_specialize=["pairs", "blocks"])
def place_kernel(
    chosen,
    counts,
    order,
    starts,
    pairs,
    blocks,
    EXPERTS: tl.constexpr,
    WIDTH: tl.constexpr,
    TILE: tl.constexpr,
):
    """Places of one expert's pairs of a block; the first block also says where the expert begins.

    Before them are all pairs of lower experts, and those of this expert in earlier blocks.
    """
    expert = tl.program_id(0)
    block = tl.program_id(1)
    experts = tl.arange(0, WIDTH)
    lower = tl.zeros((WIDTH,), tl.int32)
    earlier = tl.zeros((WIDTH,), tl.int32)
    each = 0
    while each < blocks:
        counted = tl.load(counts + each * EXPERTS + experts, mask=experts < EXPERTS, other=0)
        lower += counted
        earlier += tl.where(each < block, counted, 0)
        each += 1
    start = tl.sum(tl.where(experts < expert, lower, 0), axis=0)
    if block == 0:
        tl.store(starts + expert, start)
        if expert == EXPERTS - 1:
            tl.store(starts + EXPERTS, tl.sum(lower, axis=0))
    first = start + tl.sum(tl.where(experts == expert, earlier, 0), axis=0)
    at = block * TILE + tl.arange(0, TILE)
    own = tl.load(chosen + at, mask=at < pairs, other=-1) == expert
    tl.store(order + first + tl.cumsum(own.to(tl.int32), axis=0) - 1, at, mask=own)


@triton.jit
def sum_kernel(
    parts,
    weights,
    x,
    columns,
    row_stride,
    part_stride,
    weight_stride,
    x_stride,
    ACTIVE: tl.constexpr,
    TILE: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """``x += sum over a of weights[a] * parts[a]`` of one tile of a row, a ascending."""
    begin(DEPENDENT)
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inside = at < columns
    total = tl.zeros((TILE,), tl.float32)
    for each in tl.static_range(ACTIVE):
        weight = tl.load(weights + row * weight_stride + each)
        place = parts + row * row_stride + each * part_stride + at
        total += weight * tl.load(place, mask=inside, other=0.0).to(tl.float32)
    place = x + row * x_stride + at
    tl.store(place, tl.load(place, mask=inside, other=0.0) + total, mask=inside)
