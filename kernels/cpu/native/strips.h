/* Strips: LANES weight rows side by side, so that one vector holds one code of each row.
 *
 * Weights of the common formats are laid out so once, at load: the bytes are permuted, no value
 * changes (the 6-bit scales of Q4_K and Q5_K become bytes). A strip is a row of blocks; in a block
 * every item is stored for all LANES rows before the next item:
 *
 *   F_HEAD halves (d, and m or dmin), then for each group of 32 columns
 *   F_SCALES bytes of scales and minima,
 *   4 words of 4-bit codes (or 8 of 8-bit codes), then F_HIGH words with a 5th, or 5th and 6th, bit
 *
 * Codes come out two columns at a time, as the two int16 of a 32-bit lane:
 *   4 bits:  word w >> 4i & 0x000F000F    columns 8w + 2i and 8w + 2i + 1
 *   8 bits:  word w << 8 >> 8, word w >> 8 (as int16)   columns 4w, 4w + 1 and 4w + 2, 4w + 3
 *   5th bit: word >> p & 0x00010001       columns 2p and 2p + 1
 *   5th and 6th: word h >> 2p & 0x00030003   columns 16h + 2p and 16h + 2p + 1
 */
#ifndef HEARTH_STRIPS_H
#define HEARTH_STRIPS_H

#include "products.h"

enum { PAIRS = HEARTH_GROUP / 2 };

typedef struct {
    lanes scales[2]; /* of the first and second 16 columns; equal where one covers all 32 */
    lanes minimum;
} strip_scales;

#define STRIP_FORMAT(F, BITS8, HIGH, HEAD, SCALES, OFFSET, MINIMA)                               \
    enum {                                                                                       \
        F##_BITS8 = BITS8, F##_HIGH = HIGH, F##_HEAD = HEAD, F##_SCALES = SCALES,                \
        F##_OFFSET = OFFSET, F##_LEAST = MINIMA,                                                 \
        F##_WORDS = (BITS8 ? 8 : 4) + HIGH,                                                      \
        F##_GROUP_BYTES = LANES * (SCALES + 4 * F##_WORDS),                                      \
        F##_BLOCK_BYTES = LANES * 2 * HEAD + F##_GROUPS * F##_GROUP_BYTES,                       \
    };

/* format, 8-bit codes, high words, head halves, scale bytes, code offset, has a minimum */
STRIP_FORMAT(Q4_0, 0, 0, 1, 0, 8, 1)
STRIP_FORMAT(Q4_1, 0, 0, 2, 0, 0, 1)
STRIP_FORMAT(Q5_0, 0, 1, 1, 0, 16, 1)
STRIP_FORMAT(Q5_1, 0, 1, 2, 0, 0, 1)
STRIP_FORMAT(Q8_0, 1, 0, 1, 0, 0, 0)
STRIP_FORMAT(Q4_K, 0, 0, 2, 2, 0, 1)
STRIP_FORMAT(Q5_K, 0, 1, 2, 2, 0, 1)
STRIP_FORMAT(Q6_K, 0, 2, 1, 2, 32, 1)

#define HEARTH_STRIP_FORMATS(DO) \
    DO(Q4_0) DO(Q4_1) DO(Q5_0) DO(Q5_1) DO(Q8_0) DO(Q4_K) DO(Q5_K) DO(Q6_K)

/* ---- laying out ---- */

static inline void put_pair(uint8_t *words, int word, int row, int shift, int even, int odd) {
    uint32_t bits;
    uint8_t *at = words + (word * LANES + row) * 4;
    __builtin_memcpy(&bits, at, 4);
    bits |= (uint32_t)even << shift | (uint32_t)odd << (shift + 16);
    __builtin_memcpy(at, &bits, 4);
}

/* 32 codes, offset removed, of one row into a group's words, which were zero */
static inline void put_codes(const int16_t *codes, uint8_t *words, int row, int bits8, int high) {
    for (int p = 0; p < PAIRS; p++) {
        int even = codes[2 * p], odd = codes[2 * p + 1];
        if (bits8) {
            put_pair(words, p / 2, row, 8 * (p % 2), even & 255, odd & 255);
            continue;
        }
        put_pair(words, p / 4, row, 4 * (p % 4), even & 15, odd & 15);
        if (high == 1) {
            put_pair(words, 4, row, p, even >> 4, odd >> 4);
        } else if (high == 2) {
            put_pair(words, 4 + p / 8, row, 2 * (p % 8), even >> 4, odd >> 4);
        }
    }
}

/* Where a format keeps its head halves, and the bytes that scale a group. */
static inline const uint8_t *head_half(int32_t format, const uint8_t *block, int i) {
    return format == HEARTH_Q6_K ? block + 208 : block + 2 * i;
}

static inline void group_scales(int32_t format, const uint8_t *block, int j, uint8_t *to) {
    if (format == HEARTH_Q6_K) {
        to[0] = block[192 + 2 * j];
        to[1] = block[192 + 2 * j + 1];
        return;
    }
    const uint8_t *s = block + 4;
    if (j < 4) {
        to[0] = s[j] & 63;
        to[1] = s[j + 4] & 63;
    } else {
        to[0] = (uint8_t)((s[j + 4] & 15) | (s[j - 4] >> 6) << 4);
        to[1] = (uint8_t)(s[j + 4] >> 4 | (s[j] >> 6) << 4);
    }
}

#define DEFINE_LAYOUT(F)                                                                         \
    static void F##_layout(const hearth_weight *weight, int64_t strip, uint8_t *to) {            \
        int64_t blocks = weight->columns / (HEARTH_GROUP * F##_GROUPS);                          \
        __builtin_memset(to, 0, (size_t)(blocks * F##_BLOCK_BYTES));                             \
        for (int row = 0; row < LANES && strip * LANES + row < weight->rows; row++) {            \
            const uint8_t *from = weight->bytes + (strip * LANES + row) * weight->row_bytes;     \
            for (int64_t b = 0; b < blocks; b++, from += F##_BYTES) {                            \
                uint8_t *block = to + b * F##_BLOCK_BYTES, *group = block + LANES * 2 * F##_HEAD; \
                for (int i = 0; i < F##_HEAD; i++) {                                             \
                    __builtin_memcpy(block + (i * LANES + row) * 2,                              \
                                     head_half(HEARTH_##F, from, i), 2);                         \
                }                                                                                \
                for (int j = 0; j < F##_GROUPS; j++, group += F##_GROUP_BYTES) {                 \
                    int16_t codes[HEARTH_GROUP];                                                 \
                    codes_spill(codes, F##_codes(from, j));                                      \
                    for (int k = 0; k < HEARTH_GROUP; k++) {                                     \
                        codes[k] = (int16_t)(codes[k] + F##_OFFSET);                             \
                    }                                                                            \
                    if (F##_SCALES) {                                                            \
                        uint8_t two[2];                                                          \
                        group_scales(HEARTH_##F, from, j, two);                                  \
                        group[row] = two[0];                                                     \
                        group[LANES + row] = two[1];                                             \
                    }                                                                            \
                    put_codes(codes, group + LANES * F##_SCALES, row, F##_BITS8, F##_HIGH);      \
                }                                                                                \
            }                                                                                    \
        }                                                                                        \
    }
HEARTH_STRIP_FORMATS(DEFINE_LAYOUT)

/* ---- reading ---- */

/* The scales of group j: element == scale * code + minimum for codes without their offset. */
#define DEFINE_SCALES(F)                                                                         \
    static inline __attribute__((always_inline)) strip_scales F##_scales(                        \
        const uint8_t *block, const uint8_t *group) {                                            \
        strip_scales s;                                                                          \
        lanes d = lanes_half((const uint16_t *)block);                                           \
        if (F##_HEAD == 2) {                                                                     \
            s.minimum = lanes_half((const uint16_t *)block + LANES);                             \
        }                                                                                        \
        if (HEARTH_##F == HEARTH_Q6_K) {                                                         \
            s.scales[0] = lanes_mul(d, lanes_from_i8((const int8_t *)group));                    \
            s.scales[1] = lanes_mul(d, lanes_from_i8((const int8_t *)group + LANES));            \
        } else if (F##_SCALES) {                                                                 \
            s.scales[0] = s.scales[1] = lanes_mul(d, lanes_from_u8(group));                      \
            s.minimum = lanes_sub(lanes_zero(),                                                  \
                                  lanes_mul(s.minimum, lanes_from_u8(group + LANES)));           \
        } else {                                                                                 \
            s.scales[0] = s.scales[1] = d;                                                       \
        }                                                                                        \
        return s;                                                                                \
    }
HEARTH_STRIP_FORMATS(DEFINE_SCALES)

/* The codes of columns 2p and 2p + 1 of a group, offset not removed. */
static inline __attribute__((always_inline)) words32 strip_pair(const uint8_t *words, int p,
                                                                int bits8, int high) {
    if (bits8) {
        words32 w = words_load(words + p / 2 * 4 * LANES);
        if (bits8 == 2) { /* without a sign */
            return p % 2 ? words_shift_right(w, 8) : words_and(w, 0x00FF00FF);
        }
        return words_shift_signed(p % 2 ? w : words_shift_left(w, 8), 8);
    }
    words32 w = words_load(words + p / 4 * 4 * LANES);
    words32 codes = words_and(words_shift_right(w, 4 * (p % 4)), 0x000F000F);
    if (high == 1) {
        words32 bit = words_load(words + 4 * 4 * LANES);
        bit = p < 4 ? words_shift_left(bit, 4 - p) : words_shift_right(bit, p - 4);
        codes = words_or(codes, words_and(bit, 0x00100010));
    } else if (high == 2) {
        words32 bits = words_load(words + (4 + p / 8) * 4 * LANES);
        int at = 2 * (p % 8);
        bits = at < 4 ? words_shift_left(bits, 4 - at) : words_shift_right(bits, at - 4);
        codes = words_or(codes, words_and(bits, 0x00300030));
    }
    return codes;
}

enum { STRIP_AHEAD = 2048 }; /* bytes that the prefetch runs ahead; measured, 1 to 4 KiB are alike */
enum { STRIP_ROWS = 4 }; /* activation rows that share a strip's decoded codes */

/* Where a scale covers 16 columns: the offset is removed in integers, half by half. */
static inline __attribute__((always_inline)) void strip_halves(lanes *sum, const words32 dots[2],
                                                               strip_scales s, lanes scale,
                                                               int offset, const int16_t *codes) {
    for (int half = 0; half < 2; half++) {
        words32 shift = words_all(offset * half_sum(codes + half * 16));
        lanes dot = words_to_lanes(words_sub(dots[half], shift));
        *sum = lanes_fma(dot, lanes_mul(s.scales[half], scale), *sum);
    }
}

/* results[0 .. LANES) of one strip and `count` activation rows; inlined with a constant count.
 * Integer sums are exact, so their order is free; over groups each row adds in ascending order. */
#define DEFINE_STRIP_DOT(F)                                                                      \
    static inline __attribute__((always_inline)) void F##_strip_rows(                            \
        const uint8_t *strip, int64_t columns, const activation_row *x, float *const *results,   \
        int count) {                                                                             \
        lanes sums[STRIP_ROWS], least[STRIP_ROWS];                                               \
        for (int n = 0; n < count; n++) {                                                        \
            sums[n] = least[n] = lanes_zero();                                                   \
        }                                                                                        \
        int64_t blocks = columns / (HEARTH_GROUP * F##_GROUPS);                                  \
        for (int64_t b = 0; b < blocks; b++, strip += F##_BLOCK_BYTES) {                         \
            const uint8_t *group = strip + LANES * 2 * F##_HEAD;                                 \
            for (int j = 0; j < F##_GROUPS; j++, group += F##_GROUP_BYTES) {                     \
                int64_t g = b * F##_GROUPS + j;                                                  \
                const uint8_t *words = group + LANES * F##_SCALES;                               \
                for (int line = 0; line < F##_GROUP_BYTES; line += 64) {                         \
                    __builtin_prefetch(group + STRIP_AHEAD + line);                              \
                }                                                                                \
                strip_scales s = F##_scales(strip, group);                                       \
                words32 dots[STRIP_ROWS][2];                                                     \
                for (int n = 0; n < count; n++) {                                                \
                    dots[n][0] = dots[n][1] = words_zero();                                      \
                }                                                                                \
                _Pragma("clang loop unroll(full)") for (int p = 0; p < PAIRS; p++) {             \
                    words32 codes = strip_pair(words, p, F##_BITS8, F##_HIGH);                   \
                    for (int n = 0; n < count; n++) {                                            \
                        int part = F##_HALVES ? p / (PAIRS / 2) : p % 2;                         \
                        dots[n][part] = words_dot(dots[n][part], codes,                          \
                                                  x[n].codes + g * HEARTH_GROUP + 2 * p);        \
                    }                                                                            \
                }                                                                                \
                for (int n = 0; n < count; n++) {                                                \
                    lanes scale = lanes_all(x[n].scales[g]), sum = lanes_all(x[n].sums[g]);      \
                    if (F##_HALVES) {                                                            \
                        strip_halves(&sums[n], dots[n], s, scale, F##_OFFSET,                    \
                                     x[n].codes + g * HEARTH_GROUP);                             \
                        continue;                                                                \
                    }                                                                            \
                    lanes dot = words_to_lanes(words_add(dots[n][0], dots[n][1]));               \
                    sums[n] = lanes_fma(dot, lanes_mul(s.scales[0], scale), sums[n]);            \
                    if (F##_OFFSET) {                                                            \
                        lanes low = lanes_mul(s.scales[0], lanes_all(-(float)F##_OFFSET));       \
                        least[n] = lanes_fma(low, sum, least[n]);                                \
                    } else if (F##_LEAST) {                                                      \
                        least[n] = lanes_fma(s.minimum, sum, least[n]);                          \
                    }                                                                            \
                }                                                                                \
            }                                                                                    \
        }                                                                                        \
        for (int n = 0; n < count; n++) {                                                        \
            lanes_store(results[n], lanes_add(sums[n], least[n]));                               \
        }                                                                                        \
    }

HEARTH_STRIP_FORMATS(DEFINE_STRIP_DOT)

/* Columns [from, from + depth) of one strip as floats, [k * stride + row], each rounded as the
 * reference decoder rounds it. */
#define DEFINE_STRIP_FLOATS(F)                                                                   \
    static void F##_strip_floats(const hearth_weight *weight, const uint8_t *strip, int64_t from, \
                                 int64_t depth, float *to, int64_t stride) {                     \
        (void)weight;                                                                            \
        int64_t block_columns = HEARTH_GROUP * F##_GROUPS;                                       \
        for (int64_t k = from; k < from + depth; k += HEARTH_GROUP) {                            \
            const uint8_t *block = strip + k / block_columns * F##_BLOCK_BYTES;                  \
            const uint8_t *group = block + LANES * 2 * F##_HEAD +                                \
                                   k % block_columns / HEARTH_GROUP * F##_GROUP_BYTES;           \
            strip_scales s = F##_scales(block, group);                                           \
            float *at = to + (k - from) * stride;                                                \
            _Pragma("clang loop unroll(full)") for (int p = 0; p < PAIRS; p++) {                 \
                words32 pair = strip_pair(group + LANES * F##_SCALES, p, F##_BITS8, F##_HIGH);   \
                for (int odd = 0; odd < 2; odd++) {                                              \
                    words32 code = words_sub(words_half(pair, odd), words_all(F##_OFFSET));      \
                    lanes value = lanes_mul(words_to_lanes(code), s.scales[p / (PAIRS / 2)]);    \
                    if (F##_LEAST && !F##_OFFSET) {                                              \
                        value = lanes_add(value, s.minimum);                                     \
                    }                                                                            \
                    lanes_store(at + (2 * p + odd) * stride, value);                             \
                }                                                                                \
            }                                                                                    \
        }                                                                                        \
    }
HEARTH_STRIP_FORMATS(DEFINE_STRIP_FLOATS)

typedef struct {
    int32_t columns_a_block;
    int32_t block_bytes;
    void (*layout)(const hearth_weight *weight, int64_t strip, uint8_t *to);
    void (*rows)(const hearth_weight *weight, const uint8_t *strip, const activation_row *x,
                 float *const *results, int count);
    void (*floats)(const hearth_weight *weight, const uint8_t *strip, int64_t from, int64_t depth,
                   float *to, int64_t stride);
} strip_format;

#define DEFINE_STRIP_FORMAT(F)                                                                   \
    static void F##_strip(const hearth_weight *weight, const uint8_t *strip,                     \
                          const activation_row *x, float *const *results, int count) {           \
        int64_t columns = weight->columns;                                                       \
        switch (count) {                                                                         \
            case 1: F##_strip_rows(strip, columns, x, results, 1); break;                        \
            case 2: F##_strip_rows(strip, columns, x, results, 2); break;                        \
            case 3: F##_strip_rows(strip, columns, x, results, 3); break;                        \
            default: F##_strip_rows(strip, columns, x, results, STRIP_ROWS); break;              \
        }                                                                                        \
    }                                                                                            \
    static const strip_format F##_STRIPS = {HEARTH_GROUP * F##_GROUPS, F##_BLOCK_BYTES,          \
                                            F##_layout, F##_strip, F##_strip_floats};
HEARTH_STRIP_FORMATS(DEFINE_STRIP_FORMAT)

#define STRIP_CASE(F)  \
    case HEARTH_##F:   \
        return &F##_STRIPS;

#endif
