/* Attention of a prompt chunk: consecutive rows of one stream, page by page.
 *
 * A piece of work is a kv head and a block of rows. Pages are taken in ascending order and cut by
 * logical position; every query head of the group shares the page's keys and values as floats. The
 * softmax runs along (maximum, total and sums are rescaled a page at a time), so a row's bits
 * depend on its own position and pages alone.
 */
#ifndef HEARTH_PROMPT_H
#define HEARTH_PROMPT_H

#include <math.h>

#include "dense.h"
#include "operations.h"
#include "pages.h"
#include "rows.h"

/* A thread's scratch, in floats; hearth_chunk_scratch() counts the same. */
typedef struct {
    float *keys;   /* [dim][PAGE_ROWS] */
    float *values; /* [PAGE_ROWS][dim] */
    float *scores; /* [HEARTH_CHUNK_BLOCK][PAGE_ROWS] */
    float *sums;   /* [shared heads][HEARTH_CHUNK_BLOCK][dim] */
    float *tops;   /* [shared heads][HEARTH_CHUNK_BLOCK], and as many totals */
} chunk_scratch;

static chunk_scratch scratch_of(const hearth_chunk *op, const hearth_team *team) {
    int64_t dim = op->kv.head_dim, shared = op->heads / op->kv.kv_heads;
    float *at = op->scratch + team->thread * op->scratch_stride;
    chunk_scratch s;
    s.keys = at;
    s.values = s.keys + HEARTH_PAGE_ROWS * dim;
    s.scores = s.values + HEARTH_PAGE_ROWS * dim;
    s.sums = s.scores + HEARTH_CHUNK_BLOCK * HEARTH_PAGE_ROWS;
    s.tops = s.sums + shared * HEARTH_CHUNK_BLOCK * dim;
    return s;
}

/* The slots of a page that a block of rows attends to, and the whole panels that hold them. */
typedef struct {
    int first, last;             /* slots that some row sees; beyond them may lie anything */
    int panel_first, panel_last; /* multiples of PANEL */
} chunk_span;

/* Elements [i, i + LANES) of a row as floats. */
static inline lanes value_lanes(const hearth_layer_kv *kv, int64_t row, int64_t i) {
    if (kv->scales == 0) {
        return stored_lanes(kv, row, i, 0);
    }
    return lanes_mul(stored_lanes(kv, row, i, 1), lanes_all(kv->scales[row] * CODE_UNIT));
}

/* Keys as [k][key] and values as floats. A value that no row sees becomes 0, for its weight of 0
 * would not silence a NaN. */
static void unpack_page(const hearth_chunk *op, int32_t page, int64_t kv_head, chunk_span span,
                        const chunk_scratch *s) {
    int64_t dim = op->kv.head_dim;
    int64_t keys = page_row(&op->kv, page, 0, kv_head, 0);
    int64_t values = page_row(&op->kv, page, 1, kv_head, 0);
    int first = span.panel_first, last = span.panel_last;
    for (int64_t j = first; j < last; j++) {
        int seen = j >= span.first && j < span.last;
        for (int64_t k = 0; k < dim; k += LANES) {
            lanes_store(s->values + j * dim + k,
                        seen ? value_lanes(&op->kv, values + j, k) : lanes_zero());
        }
    }
    for (int64_t j = first; j < last; j += 8) {
        float rows[8 * 16];
        for (int64_t k = 0; k < dim; k += 16) {
            for (int64_t r = 0; r < 8; r++) {
                for (int i = 0; i < 16; i += LANES) {
                    lanes_store(rows + r * 16 + i, value_lanes(&op->kv, keys + j + r, k + i));
                }
            }
            transpose8(rows, 16, s->keys + k * HEARTH_PAGE_ROWS + j, HEARTH_PAGE_ROWS);
            transpose8(rows + 8, 16, s->keys + (k + 8) * HEARTH_PAGE_ROWS + j, HEARTH_PAGE_ROWS);
        }
    }
}

/* One row's scores of a page into weights; rescales what it has gathered so far. */
static void soften(float *scores, int first, int last, int from, int until, float *top,
                   float *total, float *sums, int64_t dim) {
    if (from >= until) {
        __builtin_memset(scores + first, 0, (size_t)(last - first) * sizeof(float));
        return;
    }
    lanes largest = lanes_all(*top);
    for (int j = first; j < from; j++) {
        scores[j] = -INFINITY;
    }
    for (int j = until; j < last; j++) {
        scores[j] = -INFINITY;
    }
    for (int j = first; j < last; j += LANES) {
        largest = lanes_max(largest, lanes_load(scores + j));
    }
    float now = lanes_top(largest);
    lanes sum = lanes_zero(), high = lanes_all(now);
    for (int j = first; j < last; j += LANES) {
        lanes score = lanes_load(scores + j);
        lanes e = lanes_exp_or_zero(lanes_sub(score, high));
        lanes_store(scores + j, e);
        sum = lanes_add(sum, e);
    }
    float factor = lanes_top(lanes_exp_or_zero(lanes_all(*top - now)));
    *top = now;
    *total = *total * factor + lanes_sum(sum);
    if (factor != 1.0f) {
        for (int64_t k = 0; k < dim; k += LANES) {
            lanes_store(sums + k, lanes_mul(lanes_load(sums + k), lanes_all(factor)));
        }
    }
}

/* Columns [0, dim) of weights . values, PANEL at a time; a last half panel goes lane by lane. */
static void add_values(const chunk_scratch *s, int first, int last, float *sums, int64_t dim,
                       int64_t rows) {
    int64_t n = 0;
    for (; n + PANEL <= dim; n += PANEL) {
        spread_tiles(s->scores + first, HEARTH_PAGE_ROWS, s->values + first * dim + n, dim, last - first,
              sums + n, dim, 1, rows);
    }
    for (; n < dim; n += LANES) {
        for (int64_t r = 0; r < rows; r++) {
            lanes sum = lanes_load(sums + r * dim + n);
            for (int j = first; j < last; j++) {
                lanes weight = lanes_all(s->scores[r * HEARTH_PAGE_ROWS + j]);
                sum = lanes_fma(weight, lanes_load(s->values + j * dim + n), sum);
            }
            lanes_store(sums + r * dim + n, sum);
        }
    }
}

/* One query head's rows of a block against one page. */
static void chunk_head(const hearth_chunk *op, const hearth_rows *rows, int64_t row, int64_t count,
                       int64_t head, int64_t page, chunk_span span, const chunk_scratch *s) {
    int first = span.panel_first, last = span.panel_last;
    int64_t dim = op->kv.head_dim, shared = op->heads / op->kv.kv_heads, h = head % shared;
    const float *queries = op->queries + row * op->stride + head * dim;
    for (int j = first; j < last; j += PANEL) {
        spread_tiles(queries, op->stride, s->keys + j, HEARTH_PAGE_ROWS, dim, s->scores + j,
              HEARTH_PAGE_ROWS, 0, count);
    }
    float *tops = s->tops + h * HEARTH_CHUNK_BLOCK, *totals = tops + shared * HEARTH_CHUNK_BLOCK;
    float *sums = s->sums + h * HEARTH_CHUNK_BLOCK * dim;
    for (int64_t r = 0; r < count; r++) {
        int from, until;
        attended(&op->kv, rows->positions[row + r], page, &from, &until);
        soften(s->scores + r * HEARTH_PAGE_ROWS, first, last, from, until, tops + r, totals + r,
               sums + r * dim, dim);
    }
    add_values(s, first, last, sums, dim, count);
}

static void chunk_block(const hearth_chunk *op, const hearth_rows *rows, int64_t kv_head,
                        int64_t row, int64_t count, const chunk_scratch *s) {
    int64_t dim = op->kv.head_dim, shared = op->heads / op->kv.kv_heads;
    int32_t oldest = rows->positions[row], newest = rows->positions[row + count - 1];
    __builtin_memset(s->sums, 0, (size_t)(shared * HEARTH_CHUNK_BLOCK * dim) * sizeof(float));
    for (int64_t i = 0; i < shared * HEARTH_CHUNK_BLOCK; i++) {
        s->tops[i] = -INFINITY;
        s->tops[shared * HEARTH_CHUNK_BLOCK + i] = 0.0f;
    }
    const int32_t *table = rows->tables[op->kv.group * rows->total];
    for (int64_t page = first_page(&op->kv, oldest); page <= newest / HEARTH_PAGE_ROWS; page++) {
        chunk_span span;
        int ignored;
        attended(&op->kv, oldest, page, &span.first, &ignored);
        attended(&op->kv, newest, page, &ignored, &span.last);
        span.panel_first = span.first / PANEL * PANEL;
        span.panel_last = (span.last + PANEL - 1) / PANEL * PANEL;
        unpack_page(op, table[page], kv_head, span, s);
        for (int64_t h = 0; h < shared; h++) {
            chunk_head(op, rows, row, count, kv_head * shared + h, page, span, s);
        }
    }
    for (int64_t h = 0; h < shared; h++) {
        for (int64_t r = 0; r < count; r++) {
            const float *sums = s->sums + (h * HEARTH_CHUNK_BLOCK + r) * dim;
            lanes total = lanes_all(s->tops[(shared + h) * HEARTH_CHUNK_BLOCK + r]);
            float *to = op->to->values + (row + r) * op->to->value_stride +
                        (kv_head * shared + h) * dim;
            const float *gates = op->gates == 0
                                     ? 0
                                     : op->gates + (row + r) * op->stride +
                                           (kv_head * shared + h) * dim;
            for (int64_t k = 0; k < dim; k += LANES) {
                lanes v = lanes_div(lanes_load(sums + k), total);
                lanes_store(to + k, gates != 0 ? lanes_mul(v, sigmoid(lanes_load(gates + k))) : v);
            }
        }
    }
}

static void chunk(const hearth_team *team, const void *record, const hearth_rows *rows) {
    const hearth_chunk *op = record;
    chunk_scratch s = scratch_of(op, team);
    int64_t blocks = (rows->rows + HEARTH_CHUNK_BLOCK - 1) / HEARTH_CHUNK_BLOCK, pieces = blocks * op->kv.kv_heads;
    /* later blocks attend to more: every second round goes backwards over the team */
    for (int64_t i = 0; i < pieces; i++) {
        int64_t turn = i / team->threads, place = i % team->threads;
        if ((turn % 2 ? team->threads - 1 - place : place) != team->thread) {
            continue;
        }
        int64_t block = i / op->kv.kv_heads, row = rows->first + block * HEARTH_CHUNK_BLOCK;
        int64_t left = rows->first + rows->rows - row;
        chunk_block(op, rows, i % op->kv.kv_heads, row, left < HEARTH_CHUNK_BLOCK ? left : HEARTH_CHUNK_BLOCK,
                    &s);
    }
}

#endif
