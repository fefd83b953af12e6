/* A mixture of experts: the choice, and the products of each row with its own experts' weights.
 *
 * A step reads only the strips of the experts that its rows chose. A chunk gathers its pairs (a row
 * and one of its experts) in order of experts, so that an expert's weights are unpacked once.
 */
#ifndef HEARTH_EXPERTS_H
#define HEARTH_EXPERTS_H

#include <math.h>

#include "dense.h"
#include "operations.h"
#include "rows.h"

/* the largest of the experts after (value, index), the lower index first among equals */
static int64_t next_expert(const float *logits, int64_t experts, float value, int64_t index) {
    int64_t best = -1;
    for (int64_t e = 0; e < experts; e++) {
        int after = logits[e] < value || (logits[e] == value && e > index);
        if (after && (best < 0 || logits[e] > logits[best])) {
            best = e;
        }
    }
    return best;
}

static void route_row(const hearth_route *op, int64_t row) {
    const float *logits = op->logits + row * op->stride;
    int32_t *chosen = op->chosen + row * op->active;
    float *weights = op->weights + row * op->active, total = 0.0f, top = 0.0f, value = INFINITY;
    int64_t index = -1;
    for (int64_t j = 0; j < op->active; j++) {
        index = next_expert(logits, op->experts, value, index);
        if (index < 0) { /* a NaN among the logits: it must reach the output */
            for (int64_t i = 0; i < op->active; i++) {
                chosen[i] = (int32_t)i;
                weights[i] = NAN;
            }
            return;
        }
        value = logits[index];
        top = j == 0 ? value : top;
        int64_t at = j; /* kept in ascending order of experts */
        for (; at > 0 && chosen[at - 1] > index; at--) {
            chosen[at] = chosen[at - 1];
            weights[at] = weights[at - 1];
        }
        chosen[at] = (int32_t)index;
        weights[at] = expf((value - top) * op->scale);
    }
    for (int64_t j = 0; j < op->active; j++) {
        total += weights[j];
    }
    for (int64_t j = 0; j < op->active; j++) {
        float scale = op->scales != 0 ? op->scales[chosen[j]] : 1.0f;
        weights[j] = weights[j] / total * scale;
    }
}

/* where each pair stands in order of experts, earlier rows first */
static void place_pairs(const hearth_route *op, const hearth_rows *rows) {
    int64_t first = rows->first * op->active, last = end_of(rows) * op->active;
    for (int64_t e = 0; e <= op->experts; e++) {
        op->starts[e] = 0;
    }
    op->starts[0] = (int32_t)first;
    for (int64_t p = first; p < last; p++) {
        op->starts[op->chosen[p] + 1]++;
    }
    for (int64_t e = 0; e < op->experts; e++) {
        op->starts[e + 1] += op->starts[e];
    }
    for (int64_t p = first; p < last; p++) {
        op->places[p] = op->starts[op->chosen[p]]++;
    }
    for (int64_t e = op->experts; e > 0; e--) {
        op->starts[e] = op->starts[e - 1];
    }
    op->starts[0] = (int32_t)first;
}

static void route(const hearth_team *team, const void *record, const hearth_rows *rows) {
    const hearth_route *op = record;
    for (int64_t row = rows->first + team->thread; row < end_of(rows); row += team->threads) {
        route_row(op, row);
    }
    if (op->places != 0) {
        hearth_barrier(team);
        if (team->thread == 0) {
            place_pairs(op, rows);
        }
    }
}

/* Results [at, at + LANES) of one row, or as many as the weight has, its bias included. */
static int64_t some_results(const hearth_weight *weight, int64_t at, activation_row x, float *to) {
    int64_t left = weight->rows - at, count = left < LANES ? left : LANES;
    if (weight->is_strips) {
        const strip_format *format = strips_of(weight);
        int64_t bytes = strip_bytes(format, weight);
        format->rows(weight, weight->bytes + at / LANES * bytes, &x, &to, 1);
    } else {
        panel_product panel = panel_of(weight->format);
        for (int64_t i = 0; i < count; i += PANEL_ROWS) {
            int rows = count - i < PANEL_ROWS ? (int)(count - i) : PANEL_ROWS;
            panel(weight->bytes + (at + i) * weight->row_bytes, weight->row_bytes, weight->columns,
                  x, to + i, rows);
        }
    }
    for (int64_t i = 0; weight->bias != 0 && i < count; i++) {
        to[i] += weight->bias[at + i];
    }
    return count;
}

static void experts_in(const hearth_team *team, const void *record, const hearth_rows *rows) {
    const hearth_experts *op = record;
    int64_t active = op->route->active, width = op->weights[0][0].rows, first, last;
    int64_t pieces = (width + LANES - 1) / LANES, a_pair = op->count * pieces;
    hearth_share(team, rows->rows * active * a_pair, &first, &last);
    for (int64_t i = first; i < last; i++) {
        int64_t pair = rows->first * active + i / a_pair, part = i % a_pair / pieces;
        int64_t at = i % pieces * LANES;
        const hearth_weight *weight = &op->weights[part][op->route->chosen[pair]];
        float results[LANES];
        int64_t count =
            some_results(weight, at, activation_row_of(op->from, pair / active), results);
        __builtin_memcpy(op->output + pair * op->stride + part * width + at, results,
                         (size_t)count * sizeof(float));
    }
}

static void experts_out(const hearth_team *team, const void *record, const hearth_rows *rows) {
    const hearth_experts *op = record;
    int64_t active = op->route->active, width = op->weights[0][0].rows, first, last;
    int64_t pieces = (width + LANES - 1) / LANES;
    hearth_share(team, rows->rows * pieces, &first, &last);
    for (int64_t i = first; i < last; i++) {
        int64_t row = rows->first + i / pieces, at = i % pieces * LANES, count = 0;
        float sum[LANES] = {0};
        for (int64_t pair = row * active; pair < (row + 1) * active; pair++) {
            const hearth_weight *weight = &op->weights[0][op->route->chosen[pair]];
            float results[LANES];
            count = some_results(weight, at, activation_row_of(op->from, pair), results);
            for (int64_t n = 0; n < count; n++) {
                sum[n] = __builtin_fmaf(op->route->weights[pair], results[n], sum[n]);
            }
        }
        __builtin_memcpy(op->output + row * op->stride + at, sum, (size_t)count * sizeof(float));
    }
}

/* One panel of one expert's weight times its `count` rows of x. */
static void expert_panel(const hearth_weight *weight, int64_t panel,
                         const float *x, int64_t x_stride, float *to, int64_t to_stride,
                         int64_t count, float *packed) {
    int64_t at = panel * PANEL, left = weight->rows - at, columns = left < PANEL ? left : PANEL;
    float *decoded = packed + HEARTH_DEPTH * PANEL, *spare = decoded + HEARTH_BLOCK * HEARTH_DEPTH;
    float *results = columns == PANEL ? to + at : spare;
    int64_t stride = columns == PANEL ? to_stride : PANEL;
    for (int64_t k = 0; k < weight->columns; k += HEARTH_DEPTH) {
        int64_t depth = weight->columns - k < HEARTH_DEPTH ? weight->columns - k : HEARTH_DEPTH;
        pack_weight(weight, at, k, depth, packed, decoded);
        spread_tiles(x + k, x_stride, packed, PANEL, depth, results, stride, k > 0, count);
    }
    if (columns == PANEL && weight->bias == 0) {
        return;
    }
    for (int64_t r = 0; r < count; r++) {
        for (int64_t i = 0; i < columns; i++) {
            float bias = weight->bias != 0 ? weight->bias[at + i] : 0.0f;
            to[r * to_stride + at + i] = results[r * stride + i] + bias;
        }
    }
}

/* Every expert's panels, dealt out one by one; x and `to` lie in order of experts. */
static void expert_panels(const hearth_team *team, const hearth_experts *op, const float *x,
                          int64_t x_stride, float *to, int64_t to_stride) {
    int64_t width = op->weights[0][0].rows, panels = (width + PANEL - 1) / PANEL, turn = 0;
    float *scratch = op->scratch + team->thread * op->scratch_stride;
    for (int64_t e = 0; e < op->route->experts; e++) {
        int64_t from = op->route->starts[e], count = op->route->starts[e + 1] - from;
        for (int64_t i = 0; count > 0 && i < op->count * panels; i++, turn++) {
            if (turn % team->threads != team->thread) {
                continue;
            }
            int64_t part = i / panels;
            expert_panel(&op->weights[part][e], i % panels, x + from * x_stride, x_stride,
                         to + from * to_stride + part * width, to_stride, count, scratch);
        }
    }
}

static void experts_dense_in(const hearth_team *team, const void *record, const hearth_rows *rows) {
    const hearth_experts *op = record;
    int64_t active = op->route->active, columns = op->weights[0][0].columns, first, last;
    hearth_share(team, rows->rows * active, &first, &last);
    for (int64_t i = first; i < last; i++) {
        int64_t p = rows->first * active + i;
        const float *x = op->from->values + p / active * op->from->value_stride;
        __builtin_memcpy(op->gathered + op->route->places[p] * columns, x,
                         (size_t)columns * sizeof(float));
    }
    hearth_barrier(team);
    expert_panels(team, op, op->gathered, columns, op->output, op->stride);
}

static void experts_dense_out(const hearth_team *team, const void *record,
                              const hearth_rows *rows) {
    const hearth_experts *op = record;
    int64_t active = op->route->active, width = op->weights[0][0].rows, first, last;
    expert_panels(team, op, op->from->values, op->from->value_stride, op->gathered, width);
    hearth_barrier(team);
    hearth_share(team, rows->rows, &first, &last);
    for (int64_t row = rows->first + first; row < rows->first + last; row++) {
        float *to = op->output + row * op->stride;
        const float *weights = op->route->weights + row * active;
        for (int64_t k = 0; k < width; k += LANES) {
            lanes sum = lanes_zero();
            for (int64_t j = 0; j < active; j++) {
                const float *x = op->gathered + op->route->places[row * active + j] * width + k;
                sum = lanes_fma(lanes_all(weights[j]), lanes_load(x), sum);
            }
            lanes_store(to + k, sum);
        }
    }
}

#endif
