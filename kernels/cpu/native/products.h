/* Dot products of weight rows and one row of activations, for every format.
 *
 * Integer formats multiply int16 activations: exact within a group of 32, then one fused
 * multiply-add a group (two where a scale covers 16) into the row's own lanes. Q2_K, whose minima
 * cover 16 elements, and the float formats multiply the float values. Four weight rows share the
 * loads of the activations; each keeps its own order of additions, so a result does not depend on
 * how rows were grouped.
 */
#ifndef HEARTH_PRODUCTS_H
#define HEARTH_PRODUCTS_H

#include "blocks.h"
#include "hearth_cpu.h"

enum { PANEL_ROWS = 4 };

typedef struct {
    const float *values;
    const int16_t *codes;
    const float *scales;
    const float *sums;
} activation_row;

/* results[i] for `count` weight rows; always inlined with a constant count */
#define DEFINE_DOT(F)                                                                             \
    static inline __attribute__((always_inline)) void F##_dot(                                    \
        const uint8_t *weight, int64_t row_bytes, int64_t columns, activation_row x,              \
        float *results, int count) {                                                              \
        lanes sums[PANEL_ROWS];                                                                   \
        float minima[PANEL_ROWS];                                                                 \
        for (int r = 0; r < count; r++) {                                                         \
            sums[r] = lanes_zero();                                                               \
            minima[r] = 0.0f;                                                                     \
        }                                                                                         \
        int64_t blocks = columns / (HEARTH_GROUP * F##_GROUPS);                                   \
        for (int64_t b = 0; b < blocks; b++) {                                                    \
            for (int r = 0; r < count; r++) {                                                     \
                const uint8_t *block = weight + r * row_bytes + b * F##_BYTES;                    \
                block_head head;                                                                  \
                F##_open(&head, block);                                                           \
                for (int j = 0; j < F##_GROUPS; j++) {                                            \
                    int64_t g = b * F##_GROUPS + j;                                               \
                    const int16_t *codes = x.codes + g * HEARTH_GROUP;                            \
                    if (F##_HALVES) {                                                             \
                        sums[r] = codes_fma2(sums[r], F##_codes(block, j), codes,                 \
                                             head.scales[2 * j] * x.scales[g],                    \
                                             head.scales[2 * j + 1] * x.scales[g]);               \
                    } else {                                                                      \
                        sums[r] = codes_fma(sums[r], F##_codes(block, j), codes,                  \
                                            head.scales[j] * x.scales[g]);                        \
                    }                                                                             \
                    if (F##_MINIMA) {                                                             \
                        minima[r] = __builtin_fmaf(head.minima[j], x.sums[g], minima[r]);         \
                    }                                                                             \
                }                                                                                 \
            }                                                                                     \
        }                                                                                         \
        for (int r = 0; r < count; r++) {                                                         \
            results[r] = lanes_sum(sums[r]) + minima[r];                                          \
        }                                                                                         \
    }

/* 32 elements as floats, each rounded as the reference decoder rounds it */
#define DEFINE_FLOATS(F)                                                                          \
    static inline void F##_floats(const uint8_t *block, const block_head *head, int j,            \
                                  float *to) {                                                    \
        codes_to_floats(F##_codes(block, j), to);                                                 \
        for (int i = 0; i < HEARTH_GROUP; i += LANES) {                                           \
            int k = F##_HALVES ? 2 * j + i / 16 : j;                                              \
            lanes value = lanes_mul(lanes_load(to + i), lanes_all(head->scales[k]));              \
            if (F##_MINIMA) {                                                                     \
                value = lanes_add(value, lanes_all(head->minima[k]));                             \
            }                                                                                     \
            lanes_store(to + i, value);                                                           \
        }                                                                                         \
    }

HEARTH_INTEGER_FORMATS(DEFINE_FLOATS)
DEFINE_DOT(Q4_0)
DEFINE_DOT(Q4_1)
DEFINE_DOT(Q5_0)
DEFINE_DOT(Q5_1)
DEFINE_DOT(Q8_0)
DEFINE_DOT(IQ4_NL)
DEFINE_DOT(MXFP4)
DEFINE_DOT(IQ4_XS)
DEFINE_DOT(Q4_K)
DEFINE_DOT(Q5_K)
DEFINE_DOT(Q6_K)
DEFINE_DOT(Q3_K)

static inline __attribute__((always_inline)) void Q2_K_dot(const uint8_t *weight,
                                                           int64_t row_bytes, int64_t columns,
                                                           activation_row x, float *results,
                                                           int count) {
    float floats[HEARTH_GROUP];
    for (int r = 0; r < count; r++) {
        lanes sum = lanes_zero();
        for (int64_t g = 0; g < columns / HEARTH_GROUP; g++) {
            const uint8_t *block = weight + r * row_bytes + g / Q2_K_GROUPS * Q2_K_BYTES;
            block_head head;
            Q2_K_open(&head, block);
            Q2_K_floats(block, &head, (int)(g % Q2_K_GROUPS), floats);
            for (int i = 0; i < HEARTH_GROUP; i += LANES) {
                const float *values = x.values + g * HEARTH_GROUP + i;
                sum = lanes_fma(lanes_load(floats + i), lanes_load(values), sum);
            }
        }
        results[r] = lanes_sum(sum);
    }
}

#define DEFINE_FLOAT_DOT(F, TYPE, LOAD)                                                           \
    static inline __attribute__((always_inline)) void F##_dot(                                    \
        const uint8_t *weight, int64_t row_bytes, int64_t columns, activation_row x,              \
        float *results, int count) {                                                              \
        lanes sums[PANEL_ROWS];                                                                   \
        for (int r = 0; r < count; r++) {                                                         \
            sums[r] = lanes_zero();                                                               \
        }                                                                                         \
        for (int64_t k = 0; k < columns; k += LANES) {                                            \
            lanes value = lanes_load(x.values + k);                                               \
            for (int r = 0; r < count; r++) {                                                     \
                const TYPE *row = (const TYPE *)(weight + r * row_bytes);                         \
                sums[r] = lanes_fma(LOAD(row + k), value, sums[r]);                               \
            }                                                                                     \
        }                                                                                         \
        for (int r = 0; r < count; r++) {                                                         \
            results[r] = lanes_sum(sums[r]);                                                      \
        }                                                                                         \
    }

DEFINE_FLOAT_DOT(F32, float, lanes_load)
DEFINE_FLOAT_DOT(F16, uint16_t, lanes_half)
DEFINE_FLOAT_DOT(BF16, uint16_t, lanes_bf16)

typedef void (*panel_product)(const uint8_t *weight, int64_t row_bytes, int64_t columns,
                              activation_row x, float *results, int count);

#define DEFINE_PANEL(F)                                                                           \
    static void F##_panel(const uint8_t *weight, int64_t row_bytes, int64_t columns,              \
                          activation_row x, float *results, int count) {                          \
        if (count == PANEL_ROWS) {                                                                \
            F##_dot(weight, row_bytes, columns, x, results, PANEL_ROWS);                          \
            return;                                                                               \
        }                                                                                         \
        for (int r = 0; r < count; r++) {                                                         \
            F##_dot(weight + r * row_bytes, row_bytes, columns, x, results + r, 1);               \
        }                                                                                         \
    }
HEARTH_INTEGER_FORMATS(DEFINE_PANEL)
DEFINE_PANEL(F32)
DEFINE_PANEL(F16)
DEFINE_PANEL(BF16)

#define PANEL_CASE(F)   \
    case HEARTH_##F:    \
        return F##_panel;

static inline panel_product panel_of(int32_t format) {
    switch (format) {
        HEARTH_INTEGER_FORMATS(PANEL_CASE)
        PANEL_CASE(F32)
        PANEL_CASE(F16)
        PANEL_CASE(BF16)
    }
    return 0;
}

#define DECODE_CASE(F)                                                                            \
    case HEARTH_##F: {                                                                            \
        block_head head;                                                                          \
        for (int64_t b = 0; b < columns / (HEARTH_GROUP * F##_GROUPS); b++) {                     \
            F##_open(&head, row + b * F##_BYTES);                                                 \
            for (int j = 0; j < F##_GROUPS; j++) {                                                \
                F##_floats(row + b * F##_BYTES, &head, j,                                         \
                           to + (b * F##_GROUPS + j) * HEARTH_GROUP);                             \
            }                                                                                     \
        }                                                                                         \
        break;                                                                                    \
    }

/* One row of a weight as floats, exactly as the reference decoder gives them. */
static inline void decode_row(int32_t format, const uint8_t *row, int64_t columns, float *to) {
    switch (format) {
        HEARTH_INTEGER_FORMATS(DECODE_CASE)
        case HEARTH_F32:
            __builtin_memcpy(to, row, (size_t)columns * sizeof(float));
            break;
        case HEARTH_F16:
            for (int64_t k = 0; k < columns; k += LANES) {
                lanes_store(to + k, lanes_half((const uint16_t *)row + k));
            }
            break;
        case HEARTH_BF16:
            for (int64_t k = 0; k < columns; k += LANES) {
                lanes_store(to + k, lanes_bf16((const uint16_t *)row + k));
            }
            break;
    }
}

#endif
