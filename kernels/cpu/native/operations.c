/* The operations of a step for one instruction set; compiled once each with HEARTH_OPERATIONS set.
 *
 * Every function shares its work out over the team and may write only its own pieces; the barrier
 * after each operation (step.c) makes them visible. Columns and head sizes are multiples of 32
 * and 16, which engine/models/native_limits.py checks.
 */
#include <float.h>

#include "delta.h"
#include "experts.h"
#include "prompt.h"
#include "rows.h"

static const float HALF_LARGEST = 65504.0f;

static void prepare(const hearth_team *team, const hearth_preparing *work) {
    prepare_all(team, work->to, 0, work->rows, work->columns);
}

static void embed(const hearth_team *team, const void *record, const hearth_rows *rows) {
    const hearth_embed *op = record;
    int64_t columns = op->weight.columns;
    for (int64_t row = rows->first + team->thread; row < end_of(rows); row += team->threads) {
        float *x = op->residual + row * columns;
        weight_row(&op->weight, rows->ids[row], 0, columns, x);
        for (int64_t k = 0; k < columns; k += LANES) {
            lanes_store(x + k, lanes_mul(lanes_load(x + k), lanes_all(op->scale)));
        }
    }
}

static void add_normed(float *x, const float *added, const float *post, int64_t columns,
                       float factor) {
    for (int64_t k = 0; k < columns; k += LANES) {
        lanes v = lanes_load(added + k);
        if (post != 0) {
            v = lanes_mul(lanes_mul(v, lanes_all(factor)), lanes_load(post + k));
        }
        lanes_store(x + k, lanes_add(lanes_load(x + k), v));
    }
}

/* rows of activations from `x`: as they are, or their norm times `weight` */
static void to_inputs(const hearth_activations *to, int64_t row, const float *x,
                      const float *weight, int64_t columns, float eps) {
    float *values = to->values + row * to->value_stride;
    if (weight != 0) {
        normed_row(values, x, weight, columns, eps);
    } else {
        __builtin_memcpy(values, x, (size_t)columns * sizeof(float));
    }
    if (to->codes != 0) {
        prepare_groups(to, row, 0, columns / HEARTH_GROUP);
    }
}

static void residual(const hearth_team *team, const void *record, const hearth_rows *rows) {
    const hearth_residual *op = record;
    int64_t columns = op->columns;
    for (int64_t row = rows->first + team->thread; row < end_of(rows); row += team->threads) {
        float *x = op->residual + row * columns;
        if (op->added != 0) {
            const float *added = op->added + row * op->added_stride;
            float factor = op->post != 0 ? inverse_rms(added, columns, op->post_eps) : 1.0f;
            add_normed(x, added, op->post, columns, factor);
        }
        for (int64_t k = 0; op->scale != 0 && k < columns; k += LANES) {
            lanes_store(x + k, lanes_mul(lanes_load(x + k), lanes_all(*op->scale)));
        }
        if (op->weight != 0 || op->raw) {
            to_inputs(op->to, row, x, op->weight, columns, op->eps);
        }
    }
}

static void combine(const hearth_team *team, const void *record, const hearth_rows *rows) {
    const hearth_combine *op = record;
    int64_t columns = op->columns;
    for (int64_t row = rows->first + team->thread; row < end_of(rows); row += team->threads) {
        const float *added = op->added + row * op->added_stride;
        float *sum = op->sum + row * columns;
        lanes factor = lanes_all(op->post != 0 ? inverse_rms(added, columns, op->post_eps) : 1.0f);
        lanes gate = lanes_all(1.0f);
        if (op->gates != 0) {
            gate = sigmoid(lanes_all(op->gates[row * op->gate_stride]));
        }
        for (int64_t k = 0; k < columns; k += LANES) {
            lanes v = lanes_mul(lanes_load(added + k), factor);
            if (op->post != 0) {
                v = lanes_mul(v, lanes_load(op->post + k));
            }
            v = lanes_mul(v, gate);
            lanes_store(sum + k, op->first ? v : lanes_add(lanes_load(sum + k), v));
        }
    }
}

static void per_layer(const hearth_team *team, const void *record, const hearth_rows *rows) {
    const hearth_per_layer *op = record;
    int64_t columns = op->layers * op->width;
    lanes of_embedding = lanes_all(op->embedding_scale), scale = lanes_all(op->scale);
    for (int64_t row = rows->first + team->thread; row < end_of(rows); row += team->threads) {
        float *to = op->to + row * columns;
        weight_row(&op->embedding, rows->ids[row], 0, columns, to);
        for (int64_t at = 0; at < columns; at += op->width) {
            const float *projected = op->projected + row * op->stride + at;
            /* the norm of x * c, eps and all, is that of x with eps / c^2 */
            float eps = op->eps / (op->projection_scale * op->projection_scale);
            lanes factor = lanes_all(inverse_rms(projected, op->width, eps));
            for (int64_t k = 0; k < op->width; k += LANES) {
                lanes v = lanes_mul(lanes_load(projected + k), factor);
                v = lanes_mul(v, lanes_load(op->norm + k));
                v = lanes_fma(lanes_load(to + at + k), of_embedding, v);
                lanes_store(to + at + k, lanes_mul(v, scale));
            }
        }
    }
}

static void cap(const hearth_team *team, const void *record, const hearth_rows *rows) {
    const hearth_cap *op = record;
    int64_t pieces = (op->columns + LANES - 1) / LANES, first, last;
    hearth_share(team, rows->rows * pieces, &first, &last);
    for (int64_t i = first; i < last; i++) {
        int64_t at = i % pieces * LANES, left = op->columns - at;
        float *logits = op->logits + (rows->first + i / pieces) * op->stride + at, piece[LANES];
        size_t bytes = (size_t)(left < LANES ? left : LANES) * sizeof(float);
        __builtin_memset(piece, 0, sizeof piece);
        __builtin_memcpy(piece, logits, bytes);
        lanes_store(piece, lanes_mul(tangent(lanes_div(lanes_load(piece), lanes_all(op->cap))),
                                     lanes_all(op->cap)));
        __builtin_memcpy(logits, piece, bytes);
    }
}

/* Strips: LANES results of up to STRIP_ROWS rows at a time. */
static void one_strips(const hearth_team *team, const hearth_product *op, int part,
                       const hearth_rows *rows) {
    const hearth_weight *weight = &op->weights[part];
    const strip_format *format = strips_of(weight);
    int64_t bytes = strip_bytes(format, weight), first, last;
    hearth_share(team, (weight->rows + LANES - 1) / LANES, &first, &last);
    for (int64_t s = first; s < last; s++) {
        int64_t at = s * LANES, left = weight->rows - at, count = left < LANES ? left : LANES;
        for (int64_t row = rows->first; row < end_of(rows); row += STRIP_ROWS) {
            float results[STRIP_ROWS][LANES], *each[STRIP_ROWS];
            activation_row x[STRIP_ROWS];
            int together = end_of(rows) - row < STRIP_ROWS ? (int)(end_of(rows) - row) : STRIP_ROWS;
            for (int n = 0; n < together; n++) {
                x[n] = activation_row_of(op->from, row + n);
                each[n] = results[n];
            }
            format->rows(weight, weight->bytes + s * bytes, x, each, together);
            for (int n = 0; n < together; n++) {
                float *to = op->output + (row + n) * op->stride + op->offsets[part] + at;
                for (int64_t i = 0; i < count; i++) {
                    to[i] = results[n][i] + (weight->bias != 0 ? weight->bias[at + i] : 0.0f);
                }
            }
        }
    }
}

static void one_weight(const hearth_team *team, const hearth_product *op, int part,
                       const hearth_rows *rows) {
    const hearth_weight *weight = &op->weights[part];
    panel_product panel = panel_of(weight->format);
    int64_t first, last;
    hearth_share(team, (weight->rows + PANEL_ROWS - 1) / PANEL_ROWS, &first, &last);
    for (int64_t p = first; p < last; p++) {
        int64_t at = p * PANEL_ROWS, left = weight->rows - at;
        int count = left < PANEL_ROWS ? (int)left : PANEL_ROWS;
        for (int64_t row = rows->first; row < end_of(rows); row++) {
            float *to = op->output + row * op->stride + op->offsets[part] + at;
            panel(weight->bytes + at * weight->row_bytes, weight->row_bytes, weight->columns,
                  activation_row_of(op->from, row), to, count);
            for (int i = 0; weight->bias != 0 && i < count; i++) {
                to[i] += weight->bias[at + i];
            }
        }
    }
}

static void product(const hearth_team *team, const void *record, const hearth_rows *rows) {
    const hearth_product *op = record;
    for (int part = 0; part < op->count; part++) {
        if (op->weights[part].is_strips) {
            one_strips(team, op, part, rows);
        } else {
            one_weight(team, op, part, rows);
        }
    }
}

/* One panel of one weight times every row, whose inputs lie packed tile after tile. */
static void dense_panel(const hearth_product *op, int part, int64_t panel, const hearth_rows *rows,
                        float *packed) {
    const hearth_weight *weight = &op->weights[part];
    int64_t at = panel * PANEL, left = weight->rows - at, columns = left < PANEL ? left : PANEL;
    float *decoded = packed + HEARTH_DEPTH * PANEL, *spare = decoded + HEARTH_BLOCK * HEARTH_DEPTH;
    float *to = op->output + op->offsets[part] + at;
    int64_t stride = columns == PANEL ? op->stride : PANEL;
    float *results = columns == PANEL ? to + rows->first * op->stride : spare;
    for (int64_t k = 0; k < weight->columns; k += HEARTH_DEPTH) {
        int64_t depth = weight->columns - k < HEARTH_DEPTH ? weight->columns - k : HEARTH_DEPTH;
        pack_weight(weight, at, k, depth, packed, decoded);
        for (int64_t r = 0; r < rows->rows; r += TILE_ROWS) {
            const float *x = op->packed + r * weight->columns + k * TILE_ROWS;
            int count = rows->rows - r < TILE_ROWS ? (int)(rows->rows - r) : TILE_ROWS;
            packed_tile(x, packed, depth, results + r * stride, stride, k > 0, count);
        }
    }
    if (columns == PANEL && weight->bias == 0) {
        return;
    }
    for (int64_t row = 0; row < rows->rows; row++) {
        float *done = to + (rows->first + row) * op->stride;
        for (int64_t i = 0; i < columns; i++) {
            float bias = weight->bias != 0 ? weight->bias[at + i] : 0.0f;
            done[i] = results[row * stride + i] + bias;
        }
    }
}

/* the panels of every weight are one row of work, so that a small weight is shared out too */
static void dense(const hearth_team *team, const void *record, const hearth_rows *rows) {
    const hearth_product *op = record;
    int64_t columns = op->weights[0].columns, total = 0, first, last, before = 0;
    hearth_share(team, (rows->rows + TILE_ROWS - 1) / TILE_ROWS, &first, &last);
    for (int64_t t = first; t < last; t++) {
        int64_t r = t * TILE_ROWS, left = rows->rows - r;
        const float *x = op->from->values + (rows->first + r) * op->from->value_stride;
        pack_inputs(x, op->from->value_stride, columns, left < TILE_ROWS ? (int)left : TILE_ROWS,
                    op->packed + r * columns);
    }
    hearth_barrier(team);
    for (int part = 0; part < op->count; part++) {
        total += (op->weights[part].rows + PANEL - 1) / PANEL;
    }
    hearth_share(team, total, &first, &last);
    for (int part = 0; part < op->count; part++) {
        int64_t panels = (op->weights[part].rows + PANEL - 1) / PANEL;
        for (int64_t p = 0; p < panels; p++) {
            if (before + p >= first && before + p < last) {
                dense_panel(op, part, p, rows, op->scratch + team->thread * op->scratch_stride);
            }
        }
        before += panels;
    }
}

static void angles(const hearth_team *team, const void *record, const hearth_rows *rows) {
    const hearth_angles *op = record;
    int64_t first, last;
    hearth_share(team, rows->rows * op->pairs, &first, &last);
    for (int64_t i = first; i < last; i++) {
        int64_t row = rows->first + i / op->pairs, p = i % op->pairs;
        double angle = (double)rows->positions[row] * op->frequencies[p];
        float *to = op->angles + row * 2 * op->pairs;
        to[p] = (float)cos(angle) * op->magnitude;
        to[op->pairs + p] = (float)sin(angle) * op->magnitude;
    }
}

static void rotate_head(const hearth_rotate *op, float *x, const float *cosines) {
    const float *sines = cosines + op->pairs;
    int64_t step = op->halves ? 1 : 2, apart = op->halves ? op->pairs : 1;
    for (int64_t p = 0; p < op->pairs; p++) {
        float a = x[p * step], b = x[p * step + apart];
        x[p * step] = a * cosines[p] - b * sines[p];
        x[p * step + apart] = a * sines[p] + b * cosines[p];
    }
}

/* fp16 with the ends of its range in place of infinities: one wild value must not become NaN */
static void store_halves(uint16_t *to, const float *x, int64_t columns) {
    for (int64_t k = 0; k < columns; k += LANES) {
        lanes v = lanes_min(lanes_load(x + k), lanes_all(HALF_LARGEST));
        lanes_store_half(to + k, lanes_max(v, lanes_all(-HALF_LARGEST)));
    }
}

/* The e4m3 code nearest to x, ties to even, the ends of its range in place of more. */
static uint8_t code_of(float x) {
    float size = fminf(fabsf(x), CODE_LARGEST);
    uint32_t sign = signbit(x) ? 0x80 : 0, bits;
    if (size < CODE_NORMAL) { /* steps of 2^-9: adding 2^23 rounds to a whole number of them */
        float steps = size * 512.0f + 8388608.0f;
        __builtin_memcpy(&bits, &steps, 4);
        return (uint8_t)(sign | (bits & 0xF));
    }
    __builtin_memcpy(&bits, &size, 4);
    bits += 0x7FFFF + (bits >> 20 & 1);
    return (uint8_t)(sign | ((bits >> 20) - (120 << 3)));
}

/* e4m3 codes and their scale: the largest magnitude gets the largest code */
static void store_codes(uint8_t *to, float *scale, const float *x, int64_t columns) {
    float largest = 0.0f;
    for (int64_t k = 0; k < columns; k++) {
        float size = fabsf(x[k]);
        largest = size > largest ? size : largest; /* a NaN is never larger */
    }
    *scale = fminf(largest, FLT_MAX) / CODE_LARGEST;
    for (int64_t k = 0; k < columns; k++) {
        to[k] = *scale > 0.0f && x[k] == x[k] ? code_of(x[k] / *scale) : 0;
    }
}

static void store_row(const hearth_layer_kv *kv, int64_t row, const float *x) {
    if (kv->scales == 0) {
        store_halves(half_row(kv, row), x, kv->head_dim);
    } else {
        store_codes(code_row(kv, row), kv->scales + row, x, kv->head_dim);
    }
}

static void rotate_one(const hearth_rotate *op, const hearth_rows *rows, int64_t row, int64_t head) {
    int64_t dim = op->kv.head_dim, heads = op->heads;
    float *base = op->rows + row * op->stride;
    const float *cosines = op->angles != 0 ? op->angles + row * 2 * op->pairs : 0;
    int32_t position = rows->positions[row], slot = position % HEARTH_PAGE_ROWS;
    int32_t page = rows->tables[op->kv.group * rows->total + row][position / HEARTH_PAGE_ROWS];
    if (head < heads) {
        float *q = base + head * dim;
        if (op->query_norm != 0) {
            normed_row(q, q, op->query_norm, dim, op->query_eps);
        }
        if (cosines != 0) {
            rotate_head(op, q, cosines);
        }
        for (int64_t k = 0; k < dim; k += LANES) {
            lanes_store(q + k, lanes_mul(lanes_load(q + k), lanes_all(op->query_scale)));
        }
        return;
    }
    head -= heads;
    const float *v = base + op->v_offset + head * dim;
    float normed[HEARTH_HEAD_DIM];
    if (op->value_norm != 0) {
        normed_row(normed, v, op->value_norm, dim, op->value_eps);
        v = normed;
    }
    store_row(&op->kv, page_row(&op->kv, page, 1, head, slot), v);
    float *k = base + op->k_offset + head * dim; /* perhaps v, which is done with */
    if (op->key_norm != 0) {
        normed_row(k, k, op->key_norm, dim, op->key_eps);
    }
    if (cosines != 0) {
        rotate_head(op, k, cosines);
    }
    store_row(&op->kv, page_row(&op->kv, page, 0, head, slot), k);
}

static void rotate(const hearth_team *team, const void *record, const hearth_rows *rows) {
    const hearth_rotate *op = record;
    int64_t heads = op->heads + (op->borrows ? 0 : op->kv.kv_heads), first, last;
    hearth_share(team, rows->rows * heads, &first, &last);
    for (int64_t i = first; i < last; i++) {
        rotate_one(op, rows, rows->first + i / heads, i % heads);
    }
}

static float *partial_of(const hearth_attend *op, int64_t row, int64_t head, int64_t index) {
    return op->partials +
           ((row * op->heads + head) * op->partial_pages + index) * (op->kv.head_dim + 2);
}

/* Query heads that share a key-value head are taken up to HEADS at a time, so that keys and values
 * are converted once for all of them. */
enum { HEADS = 3, KEYS = 8 };

typedef struct {
    float weights[HEADS][HEARTH_PAGE_ROWS];
    const float *queries[HEADS];
    float *to[HEADS];
} head_block;

/* weights[h][j] = q[h] . k[j], KEYS keys at a time; slots around [first, last) get nonsense */
static inline __attribute__((always_inline)) void scores(head_block *block,
                                                         const hearth_layer_kv *kv, int64_t keys,
                                                         int first, int last, int heads,
                                                         int codes) {
    int64_t dim = kv->head_dim;
    for (int j = first / KEYS * KEYS; j < last; j += KEYS) {
        float partial[HEADS][KEYS][8], turned[8][8];
        for (int i = 0; i < KEYS; i++) {
            lanes sums[HEADS];
            for (int h = 0; h < heads; h++) {
                sums[h] = lanes_zero();
            }
            for (int64_t k = 0; k < dim; k += LANES) {
                lanes key = stored_lanes(kv, keys + j + i, k, codes);
                for (int h = 0; h < heads; h++) {
                    sums[h] = lanes_fma(key, lanes_load(block->queries[h] + k), sums[h]);
                }
            }
            for (int h = 0; h < heads; h++) {
                _mm256_storeu_ps(partial[h][i], lanes_fold(sums[h]));
            }
        }
        for (int h = 0; h < heads; h++) {
            transpose8(partial[h][0], 8, turned[0], 8);
            __m256 sum = _mm256_loadu_ps(turned[0]);
            for (int i = 1; i < 8; i++) {
                sum = _mm256_add_ps(sum, _mm256_loadu_ps(turned[i]));
            }
            if (codes) {
                __m256 unit = _mm256_set1_ps(CODE_UNIT);
                sum = _mm256_mul_ps(sum, _mm256_mul_ps(unit, _mm256_loadu_ps(kv->scales + keys + j)));
            }
            _mm256_storeu_ps(block->weights[h] + j, sum);
        }
    }
}

/* weights[j] = e^(weights[j] - largest), 0 outside [first, last); returns their sum */
static float exponentials(float *weights, int first, int last, float *largest) {
    lanes total = lanes_zero(), top = lanes_all(-INFINITY);
    int start = first - first % LANES, end = (last + LANES - 1) / LANES * LANES;
    for (int j = start; j < first; j++) {
        weights[j] = -INFINITY;
    }
    for (int j = last; j < end; j++) {
        weights[j] = -INFINITY;
    }
    for (int j = start; j < end; j += LANES) {
        top = lanes_max(top, lanes_load(weights + j));
    }
    *largest = lanes_top(top);
    for (int j = start; j < end; j += LANES) {
        lanes e = lanes_exp_or_zero(lanes_sub(lanes_load(weights + j), lanes_all(*largest)));
        lanes_store(weights + j, e);
        total = lanes_add(total, e);
    }
    return lanes_sum(total);
}

/* to[h][k] = weights[h] . v[:, k] for `strip` vectors of columns */
static inline __attribute__((always_inline)) void values_strip(const head_block *block,
                                                               const hearth_layer_kv *kv,
                                                               int64_t values, int64_t k, int first,
                                                               int last, int heads, int strip,
                                                               int codes) {
    lanes sums[HEADS][4];
    for (int h = 0; h < heads; h++) {
        for (int i = 0; i < strip; i++) {
            sums[h][i] = lanes_zero();
        }
    }
    for (int j = first; j < last; j++) {
        lanes weights[HEADS];
        for (int h = 0; h < heads; h++) {
            weights[h] = lanes_all(block->weights[h][j]);
        }
        for (int i = 0; i < strip; i++) {
            lanes value = stored_lanes(kv, values + j, k + i * LANES, codes);
            for (int h = 0; h < heads; h++) {
                sums[h][i] = lanes_fma(weights[h], value, sums[h][i]);
            }
        }
    }
    for (int h = 0; h < heads; h++) {
        for (int i = 0; i < strip; i++) {
            lanes_store(block->to[h] + k + i * LANES, sums[h][i]);
        }
    }
}

static inline __attribute__((always_inline)) void attend_heads(head_block *block,
                                                               const hearth_layer_kv *kv,
                                                               int64_t keys, int64_t values,
                                                               int first, int last, int heads,
                                                               int codes) {
    int64_t dim = kv->head_dim;
    scores(block, kv, keys, first, last, heads, codes);
    for (int h = 0; h < heads; h++) {
        float *found = block->to[h] + dim; /* the maximum, then the total */
        found[1] = exponentials(block->weights[h], first, last, found);
        for (int j = first; codes && j < last; j++) {
            block->weights[h][j] *= kv->scales[values + j] * CODE_UNIT;
        }
    }
    int64_t k = 0;
    for (; k + 4 * LANES <= dim; k += 4 * LANES) {
        values_strip(block, kv, values, k, first, last, heads, 4, codes);
    }
    for (; k < dim; k += LANES) {
        values_strip(block, kv, values, k, first, last, heads, 1, codes);
    }
}

static void attend_head_block(head_block *block, const hearth_layer_kv *kv, int64_t keys,
                              int64_t values, int first, int last, int heads) {
    switch (heads + (kv->scales != 0 ? HEADS : 0)) {
        case 1: attend_heads(block, kv, keys, values, first, last, 1, 0); break;
        case 2: attend_heads(block, kv, keys, values, first, last, 2, 0); break;
        case HEADS: attend_heads(block, kv, keys, values, first, last, HEADS, 0); break;
        case HEADS + 1: attend_heads(block, kv, keys, values, first, last, 1, 1); break;
        case HEADS + 2: attend_heads(block, kv, keys, values, first, last, 2, 1); break;
        default: attend_heads(block, kv, keys, values, first, last, HEADS, 1); break;
    }
}

static void attend_page(const hearth_attend *op, const hearth_rows *rows, int64_t row,
                        int64_t kv_head, int64_t page) {
    int64_t dim = op->kv.head_dim, shared = op->heads / op->kv.kv_heads;
    int32_t position = rows->positions[row];
    int32_t id = rows->tables[op->kv.group * rows->total + row][page];
    int64_t keys = page_row(&op->kv, id, 0, kv_head, 0);
    int64_t values = page_row(&op->kv, id, 1, kv_head, 0);
    int first, last;
    attended(&op->kv, position, page, &first, &last);
    int64_t head = kv_head * shared, end = head + shared;
    while (head < end) {
        int together = end - head == 4 ? 2 : end - head < HEADS ? (int)(end - head) : HEADS;
        head_block block;
        for (int h = 0; h < together; h++) {
            block.queries[h] = op->queries + row * op->stride + (head + h) * dim;
            block.to[h] = partial_of(op, row, head + h, page - first_page(&op->kv, position));
        }
        attend_head_block(&block, &op->kv, keys, values, first, last, together);
        head += together;
    }
}

static void attend(const hearth_team *team, const void *record, const hearth_rows *rows) {
    const hearth_attend *op = record;
    int64_t item = 0;
    for (int64_t row = rows->first; row < end_of(rows); row++) {
        int32_t position = rows->positions[row];
        for (int64_t page = first_page(&op->kv, position); page <= position / HEARTH_PAGE_ROWS;
             page++) {
            for (int64_t head = 0; head < op->kv.kv_heads; head++, item++) {
                if (item % team->threads == team->thread) {
                    attend_page(op, rows, row, head, page);
                }
            }
        }
    }
}

static void merge_head(const hearth_attend *op, int64_t row, int64_t head, int64_t pages) {
    int64_t dim = op->kv.head_dim;
    float *to = op->to->values + row * op->to->value_stride + head * dim;
    float largest = -INFINITY, total = 0.0f;
    for (int64_t i = 0; i < pages; i++) {
        float top = partial_of(op, row, head, i)[dim];
        largest = top > largest ? top : largest;
    }
    for (int64_t k = 0; k < dim; k += LANES) {
        lanes_store(to + k, lanes_zero());
    }
    for (int64_t i = 0; i < pages; i++) {
        const float *partial = partial_of(op, row, head, i);
        lanes factor = lanes_exp(lanes_all(partial[dim] - largest));
        total += lanes_top(factor) * partial[dim + 1];
        for (int64_t k = 0; k < dim; k += LANES) {
            lanes_store(to + k, lanes_fma(factor, lanes_load(partial + k), lanes_load(to + k)));
        }
    }
    const float *gates = op->gates != 0 ? op->gates + row * op->stride + head * dim : 0;
    for (int64_t k = 0; k < dim; k += LANES) {
        lanes mixed = lanes_div(lanes_load(to + k), lanes_all(total));
        lanes_store(to + k, gates != 0 ? lanes_mul(mixed, sigmoid(lanes_load(gates + k))) : mixed);
    }
}

static void merge(const hearth_team *team, const void *record, const hearth_rows *rows) {
    const hearth_attend *op = record;
    int64_t first, last;
    hearth_share(team, rows->rows * op->heads, &first, &last);
    for (int64_t i = first; i < last; i++) {
        int64_t row = rows->first + i / op->heads;
        int32_t position = rows->positions[row];
        int64_t pages = position / HEARTH_PAGE_ROWS + 1 - first_page(&op->kv, position);
        merge_head(op, row, i % op->heads, pages);
    }
    hearth_barrier(team); /* a group of 32 may span two heads */
    prepare_all(team, op->to, rows->first, rows->rows, op->heads * op->kv.head_dim);
}

static void gate(const hearth_team *team, const void *record, const hearth_rows *rows) {
    const hearth_gate *op = record;
    int64_t groups = op->columns / HEARTH_GROUP, first, last;
    hearth_share(team, rows->rows * op->copies * groups, &first, &last);
    for (int64_t i = first; i < last; i++) {
        int64_t row = rows->first * op->copies + i / groups, at = i % groups * HEARTH_GROUP;
        const float *gates = op->gates + row * op->stride + at;
        const float *ups = op->ups + row * op->up_stride + at;
        float *to = op->to->values + row * op->to->value_stride + at;
        for (int k = 0; k < HEARTH_GROUP; k += LANES) {
            lanes g = lanes_load(gates + k), up = lanes_load(ups + k);
            lanes_store(to + k, lanes_mul(op->gelu ? gelu(g) : silu(g), up));
        }
        if (op->to->codes != 0) {
            prepare_groups(op->to, row, i % groups, i % groups + 1);
        }
    }
}

static void decode(const hearth_team *team, const hearth_decoding *work) {
    const hearth_weight *weight = work->weight;
    int64_t first, last;
    hearth_share(team, work->rows, &first, &last);
    for (int64_t row = first; row < last; row++) {
        weight_row(weight, work->first + row, 0, weight->columns, work->to + row * work->to_stride);
    }
}

static int64_t layout_bytes(const hearth_weight *weight) {
    const strip_format *format = strips_of(weight);
    int64_t strips = (weight->rows + LANES - 1) / LANES;
    return format != 0 ? strips * strip_bytes(format, weight) : 0;
}

static void layout(const hearth_team *team, const hearth_laying *work) {
    const hearth_weight *weight = work->weight;
    const strip_format *format = strips_of(weight);
    int64_t bytes = strip_bytes(format, weight), first, last;
    hearth_share(team, (weight->rows + LANES - 1) / LANES, &first, &last);
    for (int64_t s = first; s < last; s++) {
        format->layout(weight, s, work->to + s * bytes);
    }
}

const hearth_operations HEARTH_OPERATIONS = {
    .kinds = {embed, residual, product, angles, rotate, attend, merge, gate, dense, chunk, cap,
              per_layer, combine, delta_mix, delta_rule, delta_out, route, experts_in, experts_out,
              experts_dense_in, experts_dense_out},
    .decode = decode,
    .layout_bytes = layout_bytes,
    .layout = layout,
    .prepare = prepare,
};
