/* What several operations do with a row: norms, the codes of its values, activation functions. */
#ifndef HEARTH_ROWS_H
#define HEARTH_ROWS_H

#include <math.h>

#include "operations.h"
#include "products.h"

static int64_t end_of(const hearth_rows *rows) { return rows->first + rows->rows; }

/* codes, scales and sums of groups [first, last) of one row */
static void prepare_groups(const hearth_activations *to, int64_t row, int64_t first, int64_t last) {
    const float *values = to->values + row * to->value_stride;
    int16_t *codes = to->codes + row * to->value_stride;
    float *scales = to->scales + row * to->group_stride, *sums = to->sums + row * to->group_stride;
    for (int64_t g = first; g < last; g++) {
        const float *group = values + g * HEARTH_GROUP;
        lanes top = lanes_zero(), odd = lanes_zero();
        for (int i = 0; i < HEARTH_GROUP; i += LANES) {
            lanes value = lanes_load(group + i);
            top = lanes_max(top, lanes_abs(value));
            odd = lanes_add(odd, lanes_sub(value, value));
        }
        float largest = lanes_top(top);
        float inverse = largest > 0.0f ? 32767.0f / largest : 0.0f;
        /* a NaN or an infinity has no code: the scale carries it on, as NaN; else this adds 0 */
        scales[g] = largest * (1.0f / 32767.0f) + lanes_sum(odd);
        sums[g] = scales[g] * (float)codes_store(codes + g * HEARTH_GROUP, group, inverse);
    }
}

/* the same for rows [start, start + rows), shared out over the team */
static void prepare_all(const hearth_team *team, const hearth_activations *to, int64_t start,
                        int64_t rows, int64_t columns) {
    int64_t groups = columns / HEARTH_GROUP, first, last;
    hearth_share(team, rows * groups, &first, &last);
    for (int64_t row = first / groups; row * groups < last; row++) {
        int64_t from = first > row * groups ? first - row * groups : 0;
        int64_t until = last < (row + 1) * groups ? last - row * groups : groups;
        prepare_groups(to, start + row, from, until);
    }
}

static float inverse_rms(const float *x, int64_t columns, float eps) {
    lanes sum = lanes_zero();
    for (int64_t k = 0; k < columns; k += LANES) {
        lanes v = lanes_load(x + k);
        sum = lanes_fma(v, v, sum);
    }
    return 1.0f / sqrtf(lanes_sum(sum) / (float)columns + eps);
}

static activation_row activation_row_of(const hearth_activations *from, int64_t row) {
    return (activation_row){from->values + row * from->value_stride,
                            from->codes + row * from->value_stride,
                            from->scales + row * from->group_stride,
                            from->sums + row * from->group_stride};
}

static lanes gelu(lanes x) {
    /* x * (1 + tanh(u)) / 2 == x / (1 + e^(-2u)) */
    lanes cube = lanes_mul(lanes_mul(x, x), x);
    lanes u = lanes_fma(cube, lanes_all(0.044715f), x);
    lanes e = lanes_exp(lanes_mul(u, lanes_all(-2.0f * 0.7978845608f)));
    return lanes_div(x, lanes_add(lanes_all(1.0f), e));
}

static lanes silu(lanes x) {
    lanes e = lanes_exp(lanes_sub(lanes_zero(), x));
    return lanes_div(x, lanes_add(lanes_all(1.0f), e));
}

/* lanes_exp gives a number for NaN; this adds NaN where x is no number, else 0 */
static lanes carried_on(lanes value, lanes x) { return lanes_add(value, lanes_sub(x, x)); }

static lanes sigmoid(lanes x) {
    lanes e = lanes_exp(lanes_sub(lanes_zero(), x));
    return carried_on(lanes_div(lanes_all(1.0f), lanes_add(lanes_all(1.0f), e)), x);
}

/* tanh: within 2^-24 of 1, not of itself, near 0 */
static lanes tangent(lanes x) {
    lanes e = lanes_exp(lanes_mul(x, lanes_all(-2.0f)));
    lanes found = lanes_div(lanes_sub(lanes_all(1.0f), e), lanes_add(lanes_all(1.0f), e));
    return carried_on(found, x);
}

/* to = x / rms(x) * weight; `to` may be x */
static void normed_row(float *to, const float *x, const float *weight, int64_t columns, float eps) {
    lanes factor = lanes_all(inverse_rms(x, columns, eps));
    for (int64_t k = 0; k < columns; k += LANES) {
        lanes v = lanes_mul(lanes_load(x + k), factor);
        lanes_store(to + k, lanes_mul(v, lanes_load(weight + k)));
    }
}

#endif
