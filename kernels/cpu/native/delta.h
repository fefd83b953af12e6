/* The gated delta rule: convolution and scalars, the recurrence, the gated norm.
 *
 * A chunk takes its rows one after the other, as steps do: for each row and head the recurrence is
 * 4 * key_dim * value_dim operations, fewer than the block form with its triangular solve needs
 * at the widths of all known models, and it gives a row the same bits wherever a prompt is cut.
 */
#ifndef HEARTH_DELTA_H
#define HEARTH_DELTA_H

#include <math.h>

#include "operations.h"
#include "rows.h"

static int64_t key_columns(const hearth_delta *op) { return op->key_heads * op->key_dim; }

static int64_t channels_of(const hearth_delta *op) {
    return 2 * key_columns(op) + op->value_heads * op->value_dim;
}

/* Channels [at, at + LANES) of `count` consecutive rows of one slot, in place, the last row first,
 * for a row needs the inputs of those before it. */
static void convolve(const hearth_delta *op, int64_t slot, int64_t row, int64_t count, int64_t at) {
    int64_t channels = channels_of(op), before = op->kernel - 1;
    float *x = op->rows + row * op->stride + at;
    float *tail = op->tails + slot * op->tail_stride + at;
    float kept[8][LANES]; /* the newest inputs: the tail after these rows */
    for (int64_t j = 0; j < before; j++) {
        int64_t from = count - before + j; /* row of the chunk, or behind it in the tail */
        lanes_store(kept[j], from >= 0 ? lanes_load(x + from * op->stride)
                                       : lanes_load(tail + (before + from) * channels));
    }
    for (int64_t r = count - 1; r >= 0; r--) {
        lanes sum = lanes_zero();
        for (int64_t j = 0; j <= before; j++) {
            int64_t from = r - before + j;
            lanes input = from >= 0 ? lanes_load(x + from * op->stride)
                                    : lanes_load(tail + (before + from) * channels);
            sum = lanes_fma(input, lanes_load(op->convolution + j * channels + at), sum);
        }
        lanes_store(x + r * op->stride, silu(sum));
    }
    for (int64_t j = 0; j < before; j++) {
        lanes_store(tail + j * channels, lanes_load(kept[j]));
    }
}

static void unit_length(float *x, int64_t columns, float eps, float scale) {
    lanes sum = lanes_zero();
    for (int64_t k = 0; k < columns; k += LANES) {
        lanes v = lanes_load(x + k);
        sum = lanes_fma(v, v, sum);
    }
    lanes factor = lanes_all(1.0f / sqrtf(lanes_sum(sum) + eps) * scale);
    for (int64_t k = 0; k < columns; k += LANES) {
        lanes_store(x + k, lanes_mul(lanes_load(x + k), factor));
    }
}

/* beta and alpha of one row become factors */
static void delta_factors(const hearth_delta *op, float *row) {
    for (int64_t h = 0; h < op->value_heads; h++) {
        float *beta = row + op->beta_offset + h, *alpha = row + op->alpha_offset + h;
        float x = *alpha + op->time_bias[h];
        float soft = x > 20.0f ? x : log1pf(expf(x));
        *beta = 1.0f / (1.0f + expf(-*beta));
        *alpha = expf(op->decay[h] * soft);
    }
}

static void delta_mix(const hearth_team *team, const void *record, const hearth_rows *rows) {
    const hearth_delta *op = record;
    int64_t streams = op->chunk ? 1 : rows->rows, pieces = channels_of(op) / LANES, first, last;
    hearth_share(team, streams * pieces, &first, &last);
    for (int64_t i = first; i < last; i++) {
        int64_t row = rows->first + i / pieces;
        convolve(op, rows->slots[row], row, op->chunk ? rows->rows : 1, i % pieces * LANES);
    }
    hearth_barrier(team);
    float scale = 1.0f / sqrtf((float)op->key_dim);
    int64_t heads = 2 * op->key_heads + 1;
    hearth_share(team, rows->rows * heads, &first, &last);
    for (int64_t i = first; i < last; i++) {
        float *row = op->rows + (rows->first + i / heads) * op->stride;
        int64_t head = i % heads;
        if (head + 1 == heads) {
            delta_factors(op, row);
        } else {
            unit_length(row + head * op->key_dim, op->key_dim, op->length_eps,
                        head < op->key_heads ? scale : 1.0f);
        }
    }
}

static float dot_of(const float *a, const float *b, int64_t columns) {
    lanes sum = lanes_zero();
    for (int64_t k = 0; k < columns; k += LANES) {
        sum = lanes_fma(lanes_load(a + k), lanes_load(b + k), sum);
    }
    return lanes_sum(sum);
}

enum {
    DELTA_STRIP = 4,  /* vectors of columns at a time: 16 KiB of a state of 128 x 128 */
    DELTA_KEYS = 256, /* of a copied state at most: 32 KiB, or 64 */
};

/* `strip` vectors of columns of one head's state, row after row; v becomes the output. */
static inline __attribute__((always_inline)) void delta_columns(
    const hearth_delta *op, float *state, int64_t stride, const float *key, const float *query,
    float *value, const float *beta, const float *alpha, int64_t rows, int strip) {
    for (int64_t r = 0; r < rows; r++, key += op->stride, query += op->stride, value += op->stride) {
        lanes decay = lanes_all(alpha[r * op->stride]), share = lanes_all(beta[r * op->stride]);
        lanes found[DELTA_STRIP], out[DELTA_STRIP];
        for (int i = 0; i < strip; i++) {
            found[i] = out[i] = lanes_zero();
        }
        float *s = state;
        for (int64_t k = 0; k < op->key_dim; k++, s += stride) {
            lanes ks = lanes_all(key[k]), qs = lanes_all(query[k]);
            for (int i = 0; i < strip; i++) {
                lanes old = lanes_load(s + i * LANES);
                found[i] = lanes_fma(ks, old, found[i]);
                out[i] = lanes_fma(qs, old, out[i]);
            }
        }
        lanes change[DELTA_STRIP], both = lanes_all(dot_of(key, query, op->key_dim));
        for (int i = 0; i < strip; i++) {
            lanes missing = lanes_sub(lanes_load(value + i * LANES), lanes_mul(found[i], decay));
            change[i] = lanes_mul(share, missing);
            lanes_store(value + i * LANES, lanes_fma(both, change[i], lanes_mul(out[i], decay)));
        }
        s = state;
        for (int64_t k = 0; k < op->key_dim; k++, s += stride) {
            lanes ks = lanes_all(key[k]);
            for (int i = 0; i < strip; i++) {
                lanes old = lanes_mul(lanes_load(s + i * LANES), decay);
                lanes_store(s + i * LANES, lanes_fma(ks, change[i], old));
            }
        }
    }
}

/* The same for many rows, on a copy whose lines do not share a few sets of the cache. */
static void delta_many(const hearth_delta *op, float *state, const float *key, const float *query,
                       float *value, const float *beta, const float *alpha, int64_t rows) {
    enum { WIDTH = DELTA_STRIP * LANES };
    float copy[DELTA_KEYS * WIDTH];
    for (int64_t k = 0; k < op->key_dim; k++) {
        __builtin_memcpy(copy + k * WIDTH, state + k * op->value_dim, WIDTH * sizeof(float));
    }
    delta_columns(op, copy, WIDTH, key, query, value, beta, alpha, rows, DELTA_STRIP);
    for (int64_t k = 0; k < op->key_dim; k++) {
        __builtin_memcpy(state + k * op->value_dim, copy + k * WIDTH, WIDTH * sizeof(float));
    }
}

static void delta_rule(const hearth_team *team, const void *record, const hearth_rows *rows) {
    const hearth_delta *op = record;
    int64_t streams = op->chunk ? 1 : rows->rows, count = op->chunk ? rows->rows : 1;
    int64_t width = DELTA_STRIP * LANES, first, last;
    int64_t strips = (op->value_dim + width - 1) / width, a_head = op->value_heads / op->key_heads;
    hearth_share(team, streams * op->value_heads * strips, &first, &last);
    for (int64_t i = first; i < last; i++) {
        int64_t row = rows->first + i / (op->value_heads * strips);
        int64_t head = i / strips % op->value_heads, at = i % strips * width;
        int64_t key_head = op->tiled ? head % op->key_heads : head / a_head;
        float *x = op->rows + row * op->stride;
        float *state = op->states + rows->slots[row] * op->state_stride +
                       head * op->key_dim * op->value_dim;
        const float *query = x + key_head * op->key_dim, *key = query + key_columns(op);
        float *value = x + 2 * key_columns(op) + head * op->value_dim;
        const float *beta = x + op->beta_offset + head, *alpha = x + op->alpha_offset + head;
        if (at + width <= op->value_dim && count > 1 && op->key_dim <= DELTA_KEYS) {
            delta_many(op, state + at, key, query, value + at, beta, alpha, count);
        } else if (at + width <= op->value_dim) {
            delta_columns(op, state + at, op->value_dim, key, query, value + at, beta, alpha, count,
                          DELTA_STRIP);
        } else {
            for (; at < op->value_dim; at += LANES) {
                delta_columns(op, state + at, op->value_dim, key, query, value + at, beta, alpha,
                              count, 1);
            }
        }
    }
}

static void delta_out(const hearth_team *team, const void *record, const hearth_rows *rows) {
    const hearth_delta *op = record;
    int64_t dim = op->value_dim, first, last;
    hearth_share(team, rows->rows * op->value_heads, &first, &last);
    for (int64_t i = first; i < last; i++) {
        int64_t row = rows->first + i / op->value_heads, head = i % op->value_heads;
        const float *x = op->rows + row * op->stride;
        const float *gates = x + op->gate_offset + head * dim;
        float *to = op->to->values + row * op->to->value_stride + head * dim;
        normed_row(to, x + 2 * key_columns(op) + head * dim, op->norm, dim, op->norm_eps);
        for (int64_t k = 0; k < dim; k += LANES) {
            lanes_store(to + k, lanes_mul(lanes_load(to + k), silu(lanes_load(gates + k))));
        }
    }
    if (op->to->codes != 0) {
        hearth_barrier(team); /* a group of 32 may span two heads */
        prepare_all(team, op->to, rows->first, rows->rows, op->value_heads * dim);
    }
}

#endif
