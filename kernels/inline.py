"""Instructions that Triton has no name for, each beside a twin in plain Triton.

``ASM`` chooses: true for compiled code, false for the interpreter. Both give the same bits. Words
are int32; bytes of a word count from its lowest.
"""

import triton
import triton.language as tl


@triton.jit
def dp4a(codes, activations, total, ASM: tl.constexpr):
    """``total`` plus the products of four signed bytes with four signed bytes, int32."""
    if ASM:
        return tl.inline_asm_elementwise(
            "dp4a.s32.s32 $0, $1, $2, $3;",
            "=r,r,r,r",
            [codes, activations, total],
            dtype=tl.int32,
            is_pure=True,
            pack=1,
        )
    else:  # noqa: RET505 - Triton follows a constexpr branch only so
        for byte in tl.static_range(4):
            left = (codes << (24 - 8 * byte)) >> 24
            right = (activations << (24 - 8 * byte)) >> 24
            total += left * right
        return total


@triton.jit
def dp4a_unsigned(codes, activations, total, ASM: tl.constexpr):
    """The same for codes that are unsigned bytes."""
    if ASM:
        return tl.inline_asm_elementwise(
            "dp4a.u32.s32 $0, $1, $2, $3;",
            "=r,r,r,r",
            [codes, activations, total],
            dtype=tl.int32,
            is_pure=True,
            pack=1,
        )
    else:  # noqa: RET505 - as above
        for byte in tl.static_range(4):
            left = (codes >> (8 * byte)) & 255
            right = (activations << (24 - 8 * byte)) >> 24
            total += left * right
        return total


@triton.jit
def pick_bytes(first, second, selector, ASM: tl.constexpr):
    """Four of the eight bytes of two words: half-byte i of the selector, 0 to 7, picks byte i."""
    if ASM:
        return tl.inline_asm_elementwise(
            "prmt.b32 $0, $1, $2, $3;",
            "=r,r,r,r",
            [first, second, selector],
            dtype=tl.int32,
            is_pure=True,
            pack=1,
        )
    else:  # noqa: RET505 - as above
        picked = first & 0
        for byte in tl.static_range(4):
            number = (selector >> (4 * byte)) & 7
            word = tl.where(number < 4, first, second)
            picked |= ((word >> (8 * (number & 3))) & 255) << (8 * byte)
        return picked


@triton.jit
def looked_up(
    codes,
    T0: tl.constexpr,
    T1: tl.constexpr,
    T2: tl.constexpr,
    T3: tl.constexpr,
    ASM: tl.constexpr,
):
    """What the eight half-bytes of a word stand for, out of a table of 16 bytes in four words.

    Returns:
        Two words: of the low half of each byte, and of the high half.
    """
    zero = codes & 0
    low_half = codes & 0x77777777
    upper = ((codes >> 1) & 0x44444444) | 0x32103210
    first = _four(low_half, upper, zero + T0, zero + T1, zero + T2, zero + T3, ASM)
    low_half >>= 16
    upper >>= 16
    second = _four(low_half, upper, zero + T0, zero + T1, zero + T2, zero + T3, ASM)
    evens = pick_bytes(first, second, zero + 0x6420, ASM)
    odds = pick_bytes(first, second, zero + 0x7531, ASM)
    return evens, odds


@triton.jit
def _four(low_half, upper, t0, t1, t2, t3, ASM: tl.constexpr):
    below = pick_bytes(t0, t1, low_half, ASM)
    above = pick_bytes(t2, t3, low_half, ASM)
    return pick_bytes(below, above, upper, ASM)


@triton.jit
def fetch(pointers, live, ASM: tl.constexpr):
    """Ask for the lines of L2 cache that ``pointers`` point into, where ``live``; wait for none."""
    if ASM:
        tl.inline_asm_elementwise(
            "{ .reg .pred p; setp.ne.s32 p, $2, 0; @p prefetch.global.L2 [$1]; mov.b32 $0, 0; }",
            "=r,l,r",
            [pointers.to(tl.int64), live.to(tl.int32)],
            dtype=tl.int32,
            is_pure=False,
            pack=1,
        )


@triton.jit
def tile_16x8(totals, a0, a1, a2, a3, b0, b1, UNSIGNED: tl.constexpr, ASM: tl.constexpr):
    """``totals`` plus a warp's product of bytes, 16 rows x 32 with 32 x 8 columns: four int32.

    Threads lie along the first dimension, [32 * warps, 1, 1]. Thread t of a warp has four bytes,
    and four further on, of row t // 4 (a0, a2), of row t // 4 + 8 (a1, a3) and of column t // 4
    (b0, b1); which of the 32 they are is one and the same for rows and columns. It receives columns
    2 * (t % 4) and the next one of row t // 4, then of row t // 4 + 8.
    """
    if ASM:
        kind: tl.constexpr = "u8" if UNSIGNED else "s8"
        return tl.inline_asm_elementwise(
            "mma.sync.aligned.m16n8k32.row.col.s32."
            + kind
            + ".s8.s32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};",
            "=r,=r,=r,=r,r,r,r,r,r,r,r,r,r,r",
            [a0, a1, a2, a3, b0, b1, totals[0], totals[1], totals[2], totals[3]],
            dtype=(tl.int32, tl.int32, tl.int32, tl.int32),
            is_pure=True,
            pack=1,
        )
    else:  # noqa: RET505 - as above
        c0, c1 = _pairs_of_columns(a0, b0, UNSIGNED)
        c2, c3 = _pairs_of_columns(a1, b0, UNSIGNED)
        d0, d1 = _pairs_of_columns(a2, b1, UNSIGNED)
        d2, d3 = _pairs_of_columns(a3, b1, UNSIGNED)
        first, second = totals[0] + c0 + d0, totals[1] + c1 + d1
        return first, second, totals[2] + c2 + d2, totals[3] + c3 + d3


@triton.jit
def _pairs_of_columns(a, b, UNSIGNED: tl.constexpr):
    """Rows of a, four threads each, with columns of b, four threads each."""
    warps: tl.constexpr = a.shape[0] // 32
    rows = tl.reshape(a, (warps, 8, 1, 4))
    columns = tl.reshape(b, (warps, 1, 8, 4))
    total = tl.zeros((warps, 8, 8, 4), dtype=tl.int32)
    for byte in tl.static_range(4):
        left = (rows >> (8 * byte)) & 255 if UNSIGNED else (rows << (24 - 8 * byte)) >> 24
        total += left * ((columns << (24 - 8 * byte)) >> 24)
    even, odd = tl.split(tl.reshape(tl.sum(total, axis=3), (warps, 8, 4, 2)))
    return tl.reshape(even, (warps * 32, 1, 1)), tl.reshape(odd, (warps * 32, 1, 1))
