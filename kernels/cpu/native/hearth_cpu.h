/* Hearth's CPU kernels: the public surface of the shared library and the records it is called with.
 *
 * The library computes generated rows: one call runs a whole step, a list of operations made once
 * when a model is loaded, on a pool of threads that meet at a barrier after each operation. It
 * also decodes weights for prompt products. It allocates nothing but the pool, keeps no state of
 * its own between calls, and reads and writes only what the records point to.
 *
 * A row's result depends on that row alone: each row runs the same instructions in the same order
 * whatever the number of rows, threads or pages. kernels/cpu/records.py mirrors these records.
 */
#ifndef HEARTH_CPU_H
#define HEARTH_CPU_H

#include <stdint.h>

#if defined(_WIN32)
#define HEARTH_API __declspec(dllexport)
#else
#define HEARTH_API __attribute__((visibility("default")))
#endif

enum {
    HEARTH_GROUP = 32,       /* elements that share one activation scale */
    HEARTH_HEAD_DIM = 1024,  /* the longest head */
    HEARTH_PAGE_ROWS = 256,  /* rows of a KV page; also the cut of attention partials */
};

/* The numbers that ggml gives its tensor types, and others above 1,000. */
enum hearth_format {
    HEARTH_F32 = 0,
    HEARTH_F16 = 1,
    HEARTH_Q4_0 = 2,
    HEARTH_Q4_1 = 3,
    HEARTH_Q5_0 = 6,
    HEARTH_Q5_1 = 7,
    HEARTH_Q8_0 = 8,
    HEARTH_Q2_K = 10,
    HEARTH_Q3_K = 11,
    HEARTH_Q4_K = 12,
    HEARTH_Q5_K = 13,
    HEARTH_Q6_K = 14,
    HEARTH_IQ4_NL = 20,
    HEARTH_IQ4_XS = 23,
    HEARTH_BF16 = 30,
    HEARTH_MXFP4 = 39,
    /* Of our own: codes whose scales lie apart, as joined.h says, and a format of scales. */
    HEARTH_AFFINE2 = 1002,
    HEARTH_AFFINE3 = 1003,
    HEARTH_AFFINE4 = 1004,
    HEARTH_AFFINE5 = 1005,
    HEARTH_AFFINE6 = 1006,
    HEARTH_AFFINE8 = 1008,
    HEARTH_E2M1 = 1010,
    HEARTH_E4M3 = 1011,
    HEARTH_E8M0 = 1012,
};

/* AVX2 includes FMA and F16C, AVX512 includes VNNI. */
enum hearth_isa { HEARTH_ISA_NONE = 0, HEARTH_ISA_AVX2 = 1, HEARTH_ISA_AVX512 = 2 };

/* Inputs of a product: rows of float values, and the same as int16 with a scale a group.
 * values[row * value_stride + k]; codes likewise; scales and sums[row * group_stride + k / 32].
 * value == code * scale up to half a step; sums are scale * (sum of the group's codes).
 * `codes` is NULL where only dense products follow. */
typedef struct {
    float *values;
    int16_t *codes;
    float *scales;
    float *sums;
    int64_t value_stride;
    int64_t group_stride;
} hearth_activations;

/* A weight (rows, columns): row after row of quant blocks as the file stores it, row_bytes each, or
 * strips as hearth_layout lays it out. Codes whose scales lie apart have a scale (and minimum)
 * every `group` columns of a row; strips hold them, so that the pointers are then not read. */
typedef struct {
    const uint8_t *bytes;
    const float *bias; /* rows floats, or NULL */
    int64_t rows;
    int64_t columns;
    int64_t row_bytes;
    int32_t format;
    int32_t is_strips;
    const uint8_t *scales; /* (rows, groups of columns); NULL for 1 */
    const uint8_t *minima; /* the same; NULL for none */
    int64_t group;
    int32_t scale_format; /* of both */
    int32_t reserved;
} hearth_weight;

/* Row `id` of the embedding, times `scale`, into `residual`. */
typedef struct {
    hearth_weight weight;
    float *residual;
    float scale;
    int32_t reserved;
} hearth_embed;

/* residual += post ? norm(added) * post : added; residual *= *scale; then activations =
 * norm(residual) * weight, or the residual itself where `raw`. `added` may be NULL (nothing to
 * add), `scale` too (1); where neither `weight` nor `raw` is given nothing is prepared. */
typedef struct {
    float *residual;
    const float *added;
    const float *post;
    const float *weight;
    const hearth_activations *to;
    int64_t columns;
    int64_t added_stride;
    float post_eps;
    float eps;
    const float *scale;
    int32_t raw;
    int32_t reserved;
} hearth_residual;

/* sum (+)= (post ? norm(added) * post : added) * sigmoid(gate): one branch of a layer. */
typedef struct {
    const float *added;
    const float *post;
    const float *gates; /* one a row; NULL for none */
    float *sum;         /* [row, columns] */
    int64_t columns;
    int64_t added_stride;
    int64_t gate_stride;
    float post_eps;
    int32_t first; /* 1: sum = ... */
} hearth_combine;

/* to[row, layer, width] = (embedding[id] * embedding_scale + norm(projected * projection_scale) *
 * norm) * scale: the inputs that each layer takes in, made once a row. */
typedef struct {
    hearth_weight embedding; /* (ids, layers * width) */
    const float *projected;
    const float *norm;
    float *to;
    int64_t stride; /* of projected */
    int64_t layers;
    int64_t width;
    float embedding_scale;
    float projection_scale;
    float scale;
    float eps;
} hearth_per_layer;

/* logits = cap * tanh(logits / cap), in place */
typedef struct {
    float *logits;
    int64_t stride;
    int64_t columns;
    float cap;
    int32_t reserved;
} hearth_cap;

/* output[row * stride + i] = activations . weight[i] for up to four weights, one after another. */
typedef struct {
    const hearth_activations *from;
    float *output;
    int64_t stride;
    hearth_weight weights[4];
    int64_t offsets[4]; /* where each weight's results begin in an output row */
    int64_t count;
    float *scratch; /* dense only: a piece of scratch_stride floats a thread */
    int64_t scratch_stride;
    float *packed; /* dense only: the inputs of all rows, up to a whole tile of 8 */
} hearth_product;

/* cosines and sines of position * frequency, for `pairs` frequencies. */
typedef struct {
    const double *frequencies;
    float *angles; /* [row, 2, pairs] */
    int64_t pairs;
    float magnitude;
    int32_t reserved;
} hearth_angles;

/* One layer's pages: fp16 [page, 2, kv_head, 256, head_dim]; with scales they are e4m3 codes in that
 * order, and value == code * scale, one scale a row: float [page, 2, kv_head, 256]. */
typedef struct {
    void *pages;
    int64_t kv_heads;
    int64_t head_dim;
    int32_t group;  /* whose block tables hold the page ids */
    int32_t window; /* rows attended, 0 for all */
    float *scales;  /* NULL: fp16 */
} hearth_layer_kv;

/* Norms and rotates q and k in place, and writes k and v into the row's slot of its page. A v_offset
 * equal to k_offset takes the values from the keys as they were before. */
typedef struct {
    hearth_layer_kv kv;
    float *rows; /* q at 0, k at k_offset, v at v_offset */
    const float *query_norm;
    const float *key_norm;
    const float *value_norm;
    const float *angles; /* NULL: no rotation */
    int64_t stride;
    int64_t heads;
    int64_t k_offset;
    int64_t v_offset;
    int64_t pairs;
    int32_t halves; /* 1: (p, p + pairs) rotate together; 0: (2p, 2p + 1) */
    float query_scale;
    float query_eps;
    float key_eps;
    float value_eps;
    int32_t borrows; /* 1: the pages are another layer's; there is no k and no v */
} hearth_rotate;

/* Partial softmax over each page: partials[row, head, page, head_dim + 2] = sums, maximum, total. */
typedef struct {
    hearth_layer_kv kv;
    const float *queries;
    const float *gates; /* as the queries lie; their sigmoid multiplies what is mixed; or NULL */
    float *partials;
    const hearth_activations *to;
    int64_t stride;
    int64_t heads;
    int64_t partial_pages; /* pages a head has room for */
} hearth_attend;

/* Softmax attention of a prompt chunk, straight to the next product's inputs: rows at consecutive
 * positions of one stream, whose table is that of the first row. */
typedef struct {
    hearth_layer_kv kv;
    const float *queries;
    const float *gates;
    const hearth_activations *to;
    float *scratch; /* a piece of scratch_stride floats a thread */
    int64_t stride;
    int64_t heads;
    int64_t scratch_stride;
} hearth_chunk;

/* activations = activation(gates) * ups, for `copies` rows in place of each. */
typedef struct {
    const float *gates;
    const float *ups;
    const hearth_activations *to;
    int64_t stride;
    int64_t up_stride;
    int64_t columns;
    int32_t gelu; /* 1: gelu, tanh form; 0: silu */
    int32_t copies;
} hearth_gate;

/* One gated delta rule layer. A row of `rows` holds q | k | v (key heads first), and from the
 * offsets on a gate of value_heads * value_dim numbers, and beta and alpha, one a value head.
 * MIX: q | k | v become silu of their causal convolution, q and k of length 1 (q times key_dim ^
 * -1/2), beta its sigmoid and alpha e^(decay * softplus(alpha + time_bias)).
 * RULE: S = S * alpha; S += k (beta * (v - k . S))'; v becomes q . S, row after row.
 * OUT: activations = norm(v) * silu(gate).
 * In a chunk all rows are consecutive ones of the first row's slot, else each row has its own. */
typedef struct {
    float *rows;
    const float *convolution; /* [kernel, channels], the newest input last */
    const float *decay;       /* a value head; negative */
    const float *time_bias;
    const float *norm;
    float *states; /* [slot][value_head, key_dim, value_dim], state_stride floats a slot */
    float *tails;  /* [slot][kernel - 1, channels], the oldest input first */
    const hearth_activations *to;
    int64_t stride;
    int64_t gate_offset;
    int64_t beta_offset;
    int64_t alpha_offset;
    int64_t state_stride;
    int64_t tail_stride;
    int64_t key_heads;
    int64_t value_heads;
    int64_t key_dim;
    int64_t value_dim;
    int64_t kernel;
    float length_eps;
    float norm_eps;
    int32_t tiled; /* 1: value head h has key head h % key_heads; 0: h / (heads a key head) */
    int32_t chunk;
} hearth_delta;

/* Softmax over a row's logits * scale: the `active` likeliest experts in ascending order, and their
 * weights, which sum to 1 before each is multiplied by its expert's scale. */
typedef struct {
    const float *logits;
    const float *scales; /* an expert; NULL for 1 */
    int32_t *chosen;     /* [row, active] */
    float *weights;      /* [row, active] */
    int32_t *places;     /* [row, active]: where a pair stands in order of experts; NULL in a step */
    int32_t *starts;     /* [experts + 1]: the first place of each expert */
    int64_t stride;
    int64_t experts;
    int64_t active;
    float scale;
    int32_t reserved;
} hearth_route;

/* Products of each row with its chosen experts' weights; a pair is a row and one of its experts.
 * IN: pairs[pair or place] = gate | up of the row's inputs.
 * OUT: output[row] = sum over its pairs of weight * (down of the pair's inputs).
 * DENSE: in float32 for many rows, whose pairs lie in order of experts; `gathered` is the rows'
 * inputs (IN) or each pair's output (OUT) in that order. */
typedef struct {
    const hearth_route *route;
    const hearth_activations *from;
    const hearth_weight *weights[2]; /* an expert */
    float *output;
    float *gathered;
    float *scratch;
    int64_t count; /* of weights, side by side */
    int64_t stride;
    int64_t scratch_stride;
} hearth_experts;

enum hearth_kind {
    HEARTH_EMBED = 0,
    HEARTH_RESIDUAL = 1,
    HEARTH_PRODUCT = 2,
    HEARTH_ANGLES = 3,
    HEARTH_ROTATE = 4,
    HEARTH_ATTEND = 5,
    HEARTH_MERGE = 6, /* hearth_attend again: partials to activations */
    HEARTH_GATE = 7,
    HEARTH_DENSE = 8, /* hearth_product in float32, for many rows */
    HEARTH_CHUNK = 9,
    HEARTH_CAP = 10,
    HEARTH_PER_LAYER = 11,
    HEARTH_COMBINE = 12,
    HEARTH_DELTA_MIX = 13,
    HEARTH_DELTA_RULE = 14,
    HEARTH_DELTA_OUT = 15,
    HEARTH_ROUTE = 16,
    HEARTH_EXPERTS_IN = 17,
    HEARTH_EXPERTS_OUT = 18,
    HEARTH_EXPERTS_DENSE_IN = 19,
    HEARTH_EXPERTS_DENSE_OUT = 20,
};

typedef struct {
    int64_t kind;
    const void *record;
} hearth_operation;

/* Rows [first, first + rows) of a step or chunk of `total` rows; every array is indexed by row.
 * tables[group * total + row] points to that row's page ids. */
typedef struct {
    const int32_t *ids;
    const int32_t *positions;
    const int32_t *const *tables;
    int64_t first;
    int64_t rows;
    int64_t total;
    const int32_t *slots; /* of recurrent states; NULL where the model has none */
} hearth_rows;

typedef struct hearth_pool hearth_pool;

/* The best instruction set that this library and this CPU share. */
HEARTH_API int32_t hearth_best_isa(void);
/* NULL where threads cannot be made. `isa` must not exceed hearth_best_isa(). */
HEARTH_API hearth_pool *hearth_pool_open(int32_t threads, int32_t isa);
HEARTH_API void hearth_pool_close(hearth_pool *pool);
/* 1 where products of this format are implemented. */
HEARTH_API int32_t hearth_has_format(int32_t format);
HEARTH_API void hearth_step(hearth_pool *pool, const hearth_operation *operations, int64_t count,
                            const hearth_rows *rows);
/* Bytes of a weight laid out in strips, 0 where its format has none. */
HEARTH_API int64_t hearth_layout_bytes(const hearth_pool *pool, const hearth_weight *weight);
/* Lays `weight`, as the file stores it, out in strips: a permutation, no value changes. */
HEARTH_API void hearth_layout(hearth_pool *pool, const hearth_weight *weight, uint8_t *to);
/* weight rows [first, first + rows) as floats into `to`, `to_stride` elements a row. */
/* Not for strips. */
HEARTH_API void hearth_decode(hearth_pool *pool, const hearth_weight *weight, int64_t first,
                              int64_t rows, float *to, int64_t to_stride);
/* Floats of scratch that a thread needs for dense products of at most `rows` rows. */
HEARTH_API int64_t hearth_dense_scratch(int32_t isa, int64_t rows);
/* Floats of scratch that a thread needs for a chunk's attention. */
HEARTH_API int64_t hearth_chunk_scratch(int64_t heads, int64_t kv_heads, int64_t head_dim);
/* values (rows, columns) into the codes, scales and sums of `to`; for tests. */
HEARTH_API void hearth_prepare(hearth_pool *pool, const hearth_activations *to, int64_t rows,
                               int64_t columns);
/* Every record in the order above: its size, the offsets of its fields, -1; a second -1 ends the
 * list. For tests. */
HEARTH_API const int64_t *hearth_record_layout(void);
/* SHA-256 of the sources and flags that this library was built from, as kernels/cpu/build.py
 * computes it; the first test of a stale binary. */
HEARTH_API const char *hearth_source_digest(void);

#endif
