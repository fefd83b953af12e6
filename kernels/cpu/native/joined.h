/* Weights whose scales lie in tensors of their own, as published and MLX checkpoints have them.
 *
 * An element is code * scale + minimum (no minimum: code * scale); a scale is shared by `group`
 * columns of one row. Codes are whole numbers of 2 to 8 bits in one stream of bits a row, lowest
 * first (AFFINE), or floats of 4 or 8 bits (E2M1, E4M3). In strips a block is a group:
 *
 *   AFFINE, E2M1   scales, then minima, of all LANES rows as the file has them (2 or 4 bytes each;
 *                  E2M1: floats, and no minima), then for each 32 columns the words of strips.h.
 *                  2 and 3 bits take nibbles; E2M1 too, and looks its values up.
 *   E4M3           scales as floats, times 256, then LANES bytes a column.
 */
#ifndef HEARTH_JOINED_H
#define HEARTH_JOINED_H

#include "strips.h"

static inline int is_joined(int32_t format) {
    return format >= HEARTH_AFFINE2 && format <= HEARTH_E4M3;
}

static inline int affine_bits(int32_t format) { return format - HEARTH_AFFINE2 + 2; }

/* ---- single numbers ---- */

static const int8_t DOUBLED_E2M1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

static inline float float_of_bits(uint32_t bits) {
    float x;
    __builtin_memcpy(&x, &bits, 4);
    return x;
}

static inline float e4m3_value(uint8_t b) {
    uint16_t half = (uint16_t)((b & 0x7F) == 0x7F ? 0x7E00 : (b & 0x7F) << 7 | (b & 0x80) << 8);
    return _cvtsh_ss(half) * 256.0f;
}

static inline float companion_value(int32_t format, const uint8_t *p, int64_t i) {
    switch (format) {
        case HEARTH_F32: return float_of_bits(word_at(p + 4 * i));
        case HEARTH_F16: return half_at(p + 2 * i);
        case HEARTH_BF16: return float_of_bits((uint32_t)p[2 * i] << 16 | (uint32_t)p[2 * i + 1] << 24);
        case HEARTH_E4M3: return e4m3_value(p[i]);
        default: /* E8M0 */
            return float_of_bits(p[i] == 255 ? 0x7FC00000u
                                             : p[i] == 0 ? 0x00400000u : (uint32_t)p[i] << 23);
    }
}

static inline int64_t companion_bytes(int32_t format) {
    return format == HEARTH_F32 ? 4 : format == HEARTH_F16 || format == HEARTH_BF16 ? 2 : 1;
}

static inline int64_t groups_of(const hearth_weight *weight) {
    return (weight->columns + weight->group - 1) / weight->group;
}

static inline float scale_value(const hearth_weight *weight, int64_t row, int64_t group) {
    int64_t size = companion_bytes(weight->scale_format);
    if (weight->scales == 0) {
        return 1.0f;
    }
    return companion_value(weight->scale_format,
                           weight->scales + row * groups_of(weight) * size, group);
}

static inline int stream_code(const uint8_t *row, int64_t i, int bits) {
    int64_t at = i * bits;
    int low = row[at / 8] >> at % 8;
    if (at % 8 + bits > 8) {
        low |= row[at / 8 + 1] << (8 - at % 8);
    }
    return low & ((1 << bits) - 1);
}

/* One row as floats, each rounded as the reference decoder rounds it. */
static inline void joined_row(const hearth_weight *weight, int64_t row, int64_t from, int64_t depth,
                              float *to) {
    const uint8_t *codes = weight->bytes + row * weight->row_bytes;
    int64_t size = companion_bytes(weight->scale_format), groups = groups_of(weight);
    for (int64_t k = from; k < from + depth;) {
        int64_t g = k / weight->group, end = (g + 1) * weight->group;
        float scale = scale_value(weight, row, g), minimum = 0.0f;
        if (weight->minima != 0) {
            minimum = companion_value(weight->scale_format, weight->minima + row * groups * size, g);
        }
        for (end = end < from + depth ? end : from + depth; k < end; k++) {
            float value;
            if (weight->format == HEARTH_E4M3) {
                value = e4m3_value(codes[k]) * scale;
            } else if (weight->format == HEARTH_E2M1) {
                value = (float)DOUBLED_E2M1[stream_code(codes, k, 4)] * 0.5f * scale;
            } else {
                value = (float)stream_code(codes, k, affine_bits(weight->format)) * scale;
            }
            to[k - from] = weight->minima != 0 ? value + minimum : value;
        }
    }
}

/* Columns [from, from + depth) of a row of any weight as the file stores it. */
static inline void weight_row(const hearth_weight *weight, int64_t row, int64_t from, int64_t depth,
                              float *to) {
    if (is_joined(weight->format)) {
        joined_row(weight, row, from, depth, to);
        return;
    }
    const uint8_t *bytes = weight->bytes + row * weight->row_bytes;
    decode_row(weight->format, bytes + from * weight->row_bytes / weight->columns, depth, to);
}

/* ---- whole numbers in strips ---- */

typedef struct {
    int bits8; /* 2: bytes without a sign */
    int high;
    int table; /* nibbles that are looked up */
} joined_kind;

static inline __attribute__((always_inline)) joined_kind joined_kind_of(int32_t format) {
    switch (format) {
        case HEARTH_AFFINE5: return (joined_kind){0, 1, 0};
        case HEARTH_AFFINE6: return (joined_kind){0, 2, 0};
        case HEARTH_AFFINE8: return (joined_kind){2, 0, 0};
        case HEARTH_E2M1: return (joined_kind){0, 0, 1};
        default: return (joined_kind){0, 0, 0};
    }
}

/* bytes of one scale in a strip's head */
static inline int64_t head_bytes(const hearth_weight *weight) {
    return weight->format == HEARTH_E2M1 || weight->scale_format == HEARTH_F32 ? 4 : 2;
}

static inline int64_t coded_group_bytes(joined_kind kind) {
    return LANES * 4 * ((kind.bits8 ? 8 : 4) + kind.high);
}

static inline int64_t coded_block_bytes(const hearth_weight *weight) {
    int64_t heads = weight->format == HEARTH_E2M1 ? 1 : 2;
    return LANES * heads * head_bytes(weight) +
           weight->group / HEARTH_GROUP * coded_group_bytes(joined_kind_of(weight->format));
}

static inline void put_head(const hearth_weight *weight, const uint8_t *companion, int64_t at,
                            uint8_t *to) {
    if (weight->format == HEARTH_E2M1) {
        float scale = companion_value(weight->scale_format, companion, at) * 0.5f;
        __builtin_memcpy(to, &scale, 4);
        return;
    }
    int64_t size = head_bytes(weight);
    __builtin_memcpy(to, companion + at * size, (size_t)size);
}

static void coded_layout(const hearth_weight *weight, int64_t strip, uint8_t *to) {
    joined_kind kind = joined_kind_of(weight->format);
    int64_t blocks = groups_of(weight), block_bytes = coded_block_bytes(weight);
    int64_t head = head_bytes(weight), size = companion_bytes(weight->scale_format);
    int bits = weight->format == HEARTH_E2M1 ? 4 : affine_bits(weight->format);
    __builtin_memset(to, 0, (size_t)(blocks * block_bytes));
    for (int64_t lane = 0; lane < LANES && strip * LANES + lane < weight->rows; lane++) {
        int64_t row = strip * LANES + lane;
        const uint8_t *from = weight->bytes + row * weight->row_bytes;
        for (int64_t b = 0; b < blocks; b++) {
            uint8_t *block = to + b * block_bytes, *group = block + LANES * head;
            put_head(weight, weight->scales + row * blocks * size, b, block + lane * head);
            if (!kind.table) {
                put_head(weight, weight->minima + row * blocks * size, b, group + lane * head);
                group += LANES * head;
            }
            for (int64_t k = b * weight->group; k < (b + 1) * weight->group; k += HEARTH_GROUP) {
                int16_t codes[HEARTH_GROUP];
                for (int i = 0; i < HEARTH_GROUP; i++) {
                    codes[i] = (int16_t)stream_code(from, k + i, bits);
                }
                put_codes(codes, group, (int)lane, kind.bits8, kind.high);
                group += coded_group_bytes(kind);
            }
        }
    }
}

static inline lanes head_lanes(const hearth_weight *weight, const uint8_t *head) {
    if (head_bytes(weight) == 4) {
        return lanes_load((const float *)head);
    }
    return weight->scale_format == HEARTH_BF16 ? lanes_bf16((const uint16_t *)head)
                                               : lanes_half((const uint16_t *)head);
}

static inline __attribute__((always_inline)) words32 joined_pair(const uint8_t *words, int p,
                                                                 joined_kind kind) {
    words32 codes = strip_pair(words, p, kind.bits8, kind.high);
    return kind.table ? words_looked_up(codes, DOUBLED_E2M1) : codes;
}

static inline __attribute__((always_inline)) void coded_rows(const hearth_weight *weight,
                                                             const uint8_t *block,
                                                             joined_kind kind,
                                                             const activation_row *x,
                                                             float *const *results, int count) {
    lanes sums[STRIP_ROWS], least[STRIP_ROWS];
    for (int n = 0; n < count; n++) {
        sums[n] = least[n] = lanes_zero();
    }
    int64_t a_block = weight->group / HEARTH_GROUP, head = LANES * head_bytes(weight);
    int64_t bytes = coded_group_bytes(kind), groups = weight->columns / HEARTH_GROUP;
    for (int64_t g = 0; g < groups;) {
        lanes scale = head_lanes(weight, block), minimum = lanes_zero();
        block += head;
        if (!kind.table) {
            minimum = head_lanes(weight, block);
            block += head;
        }
        for (int64_t end = g + a_block; g < end; g++, block += bytes) {
            for (int line = 0; line < bytes; line += 64) {
                __builtin_prefetch(block + STRIP_AHEAD + line);
            }
            words32 dots[STRIP_ROWS][2];
            for (int n = 0; n < count; n++) {
                dots[n][0] = dots[n][1] = words_zero();
            }
            _Pragma("clang loop unroll(full)") for (int p = 0; p < PAIRS; p++) {
                words32 codes = joined_pair(block, p, kind);
                for (int n = 0; n < count; n++) {
                    dots[n][p % 2] = words_dot(dots[n][p % 2], codes,
                                               x[n].codes + g * HEARTH_GROUP + 2 * p);
                }
            }
            for (int n = 0; n < count; n++) {
                lanes dot = words_to_lanes(words_add(dots[n][0], dots[n][1]));
                sums[n] = lanes_fma(dot, lanes_mul(scale, lanes_all(x[n].scales[g])), sums[n]);
                if (!kind.table) {
                    least[n] = lanes_fma(minimum, lanes_all(x[n].sums[g]), least[n]);
                }
            }
        }
    }
    for (int n = 0; n < count; n++) {
        lanes_store(results[n], lanes_add(sums[n], least[n]));
    }
}

static inline __attribute__((always_inline)) void coded_floats(const hearth_weight *weight,
                                                               const uint8_t *strip,
                                                               joined_kind kind, int64_t from,
                                                               int64_t depth, float *to,
                                                               int64_t stride) {
    int64_t head = LANES * head_bytes(weight), block_bytes = coded_block_bytes(weight);
    for (int64_t k = from; k < from + depth; k += HEARTH_GROUP, to += HEARTH_GROUP * stride) {
        const uint8_t *block = strip + k / weight->group * block_bytes;
        const uint8_t *words = block + (kind.table ? head : 2 * head) +
                               k % weight->group / HEARTH_GROUP * coded_group_bytes(kind);
        lanes scale = head_lanes(weight, block);
        lanes minimum = kind.table ? lanes_zero() : head_lanes(weight, block + head);
        _Pragma("clang loop unroll(full)") for (int p = 0; p < PAIRS; p++) {
            words32 pair = joined_pair(words, p, kind);
            for (int odd = 0; odd < 2; odd++) {
                lanes value = lanes_mul(words_to_lanes(words_half(pair, odd)), scale);
                lanes_store(to + (2 * p + odd) * stride,
                            kind.table ? value : lanes_add(value, minimum));
            }
        }
    }
}

#define DEFINE_CODED(F)                                                                          \
    static void F##_coded(const hearth_weight *weight, const uint8_t *strip,                     \
                          const activation_row *x, float *const *results, int count) {           \
        joined_kind kind = joined_kind_of(HEARTH_##F);                                           \
        switch (count) {                                                                         \
            case 1: coded_rows(weight, strip, kind, x, results, 1); break;                       \
            case 2: coded_rows(weight, strip, kind, x, results, 2); break;                       \
            case 3: coded_rows(weight, strip, kind, x, results, 3); break;                       \
            default: coded_rows(weight, strip, kind, x, results, STRIP_ROWS); break;             \
        }                                                                                        \
    }                                                                                            \
    static void F##_coded_floats(const hearth_weight *weight, const uint8_t *strip, int64_t from, \
                                 int64_t depth, float *to, int64_t stride) {                     \
        coded_floats(weight, strip, joined_kind_of(HEARTH_##F), from, depth, to, stride);        \
    }                                                                                            \
    static const strip_format F##_STRIPS = {0, 0, coded_layout, F##_coded, F##_coded_floats};
DEFINE_CODED(AFFINE4)
DEFINE_CODED(AFFINE5)
DEFINE_CODED(AFFINE6)
DEFINE_CODED(AFFINE8)
DEFINE_CODED(E2M1)

/* ---- floats of 8 bits in strips ---- */

static inline int64_t e4m3_bytes(const hearth_weight *weight) {
    return LANES * (4 * groups_of(weight) + weight->columns);
}

static void e4m3_layout(const hearth_weight *weight, int64_t strip, uint8_t *to) {
    __builtin_memset(to, 0, (size_t)e4m3_bytes(weight));
    for (int64_t lane = 0; lane < LANES && strip * LANES + lane < weight->rows; lane++) {
        int64_t row = strip * LANES + lane;
        const uint8_t *from = weight->bytes + row * weight->row_bytes;
        for (int64_t k = 0; k < weight->columns; k++) {
            int64_t g = k / weight->group;
            uint8_t *block = to + LANES * (4 * (g + 1) + k);
            if (k % weight->group == 0) {
                float scale = scale_value(weight, row, g) * 256.0f;
                __builtin_memcpy(block - LANES * 4 + lane * 4, &scale, 4);
            }
            block[lane] = from[k];
        }
    }
}

static inline __attribute__((always_inline)) void e4m3_rows(const hearth_weight *weight,
                                                            const uint8_t *strip,
                                                            const activation_row *x,
                                                            float *const *results, int count) {
    lanes sums[STRIP_ROWS];
    for (int n = 0; n < count; n++) {
        sums[n] = lanes_zero();
    }
    for (int64_t k = 0; k < weight->columns;) {
        lanes scale = lanes_load((const float *)strip), parts[STRIP_ROWS][2];
        int64_t end = k + weight->group < weight->columns ? k + weight->group : weight->columns;
        strip += 4 * LANES;
        for (int n = 0; n < count; n++) {
            parts[n][0] = parts[n][1] = lanes_zero();
        }
        for (; k < end; k += 2, strip += 2 * LANES) {
            __builtin_prefetch(strip + STRIP_AHEAD);
            lanes both[2];
            lanes_e4m3(strip, both);
            for (int n = 0; n < count; n++) {
                for (int odd = 0; odd < 2; odd++) {
                    lanes value = lanes_all(x[n].values[k + odd]);
                    parts[n][odd] = lanes_fma(both[odd], value, parts[n][odd]);
                }
            }
        }
        for (int n = 0; n < count; n++) {
            sums[n] = lanes_fma(lanes_add(parts[n][0], parts[n][1]), scale, sums[n]);
        }
    }
    for (int n = 0; n < count; n++) {
        lanes_store(results[n], sums[n]);
    }
}

static void e4m3_strip(const hearth_weight *weight, const uint8_t *strip, const activation_row *x,
                       float *const *results, int count) {
    switch (count) {
        case 1: e4m3_rows(weight, strip, x, results, 1); break;
        case 2: e4m3_rows(weight, strip, x, results, 2); break;
        case 3: e4m3_rows(weight, strip, x, results, 3); break;
        default: e4m3_rows(weight, strip, x, results, STRIP_ROWS); break;
    }
}

static void e4m3_floats(const hearth_weight *weight, const uint8_t *strip, int64_t from,
                        int64_t depth, float *to, int64_t stride) {
    for (int64_t k = from; k < from + depth; k += 2, to += 2 * stride) {
        int64_t g = k / weight->group;
        const uint8_t *codes = strip + LANES * (4 * (g + 1) + k);
        lanes both[2], scale = lanes_load((const float *)(strip + LANES * (4 * g + g * weight->group)));
        lanes_e4m3(codes, both);
        lanes_store(to, lanes_mul(both[0], scale));
        lanes_store(to + stride, lanes_mul(both[1], scale));
    }
}

static const strip_format E4M3_STRIPS = {0, 0, e4m3_layout, e4m3_strip, e4m3_floats};

/* ---- any weight ---- */

static inline const strip_format *strips_of(const hearth_weight *weight) {
    switch (weight->format) {
        HEARTH_STRIP_FORMATS(STRIP_CASE)
        case HEARTH_AFFINE2: case HEARTH_AFFINE3: case HEARTH_AFFINE4:
            return weight->group % HEARTH_GROUP == 0 ? &AFFINE4_STRIPS : 0;
        case HEARTH_AFFINE5:
            return weight->group % HEARTH_GROUP == 0 ? &AFFINE5_STRIPS : 0;
        case HEARTH_AFFINE6:
            return weight->group % HEARTH_GROUP == 0 ? &AFFINE6_STRIPS : 0;
        case HEARTH_AFFINE8:
            return weight->group % HEARTH_GROUP == 0 ? &AFFINE8_STRIPS : 0;
        case HEARTH_E2M1:
            return weight->group % HEARTH_GROUP == 0 ? &E2M1_STRIPS : 0;
        case HEARTH_E4M3:
            return weight->group % 2 == 0 ? &E4M3_STRIPS : 0;
    }
    return 0;
}

static inline int64_t strip_bytes(const strip_format *format, const hearth_weight *weight) {
    if (weight->format == HEARTH_E4M3) {
        return e4m3_bytes(weight);
    }
    if (is_joined(weight->format)) {
        return groups_of(weight) * coded_block_bytes(weight);
    }
    return weight->columns / format->columns_a_block * format->block_bytes;
}

#endif
