/* Entry points: runs operation lists and decoders with the pool's instruction set. */
#include <cpuid.h>
#include <stddef.h>

#include "operations.h"

static const hearth_operations *operations_of(const hearth_pool *pool) {
    return hearth_pool_isa(pool) == HEARTH_ISA_AVX512 ? &hearth_operations_avx512
                                                      : &hearth_operations_avx2;
}

/* Register states that the operating system saves: bits of XCR0. */
enum { SAVES_AVX = 0x6, SAVES_AVX512 = 0xE6 };

static uint32_t saved_states(void) {
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

int32_t hearth_best_isa(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) {
        return HEARTH_ISA_NONE;
    }
    unsigned wanted = bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C;
    if ((c & wanted) != wanted || (saved_states() & SAVES_AVX) != SAVES_AVX) {
        return HEARTH_ISA_NONE;
    }
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2)) {
        return HEARTH_ISA_NONE;
    }
    wanted = bit_AVX512F | bit_AVX512BW | bit_AVX512VL | bit_AVX512DQ;
    if ((b & wanted) == wanted && (c & bit_AVX512VNNI) && (saved_states() & SAVES_AVX512) == SAVES_AVX512) {
        return HEARTH_ISA_AVX512;
    }
    return HEARTH_ISA_AVX2;
}

int32_t hearth_has_format(int32_t format) {
    switch (format) {
        case HEARTH_F32: case HEARTH_F16: case HEARTH_BF16:
        case HEARTH_Q4_0: case HEARTH_Q4_1: case HEARTH_Q5_0: case HEARTH_Q5_1: case HEARTH_Q8_0:
        case HEARTH_Q2_K: case HEARTH_Q3_K: case HEARTH_Q4_K: case HEARTH_Q5_K: case HEARTH_Q6_K:
        case HEARTH_IQ4_NL: case HEARTH_IQ4_XS: case HEARTH_MXFP4:
        case HEARTH_AFFINE2: case HEARTH_AFFINE3: case HEARTH_AFFINE4: case HEARTH_AFFINE5:
        case HEARTH_AFFINE6: case HEARTH_AFFINE8: case HEARTH_E2M1: case HEARTH_E4M3:
            return 1;
    }
    return 0;
}

int64_t hearth_dense_scratch(int32_t isa, int64_t rows) {
    int64_t panel = isa == HEARTH_ISA_AVX512 ? 32 : 16;
    return HEARTH_DEPTH * panel + HEARTH_BLOCK * HEARTH_DEPTH + rows * panel;
}

int64_t hearth_chunk_scratch(int64_t heads, int64_t kv_heads, int64_t head_dim) {
    int64_t shared = heads / kv_heads;
    return 2 * HEARTH_PAGE_ROWS * head_dim + HEARTH_CHUNK_BLOCK * HEARTH_PAGE_ROWS +
           shared * HEARTH_CHUNK_BLOCK * (head_dim + 2);
}

typedef struct {
    const hearth_operations *table;
    const hearth_operation *list;
    int64_t count;
    const hearth_rows *rows;
} step;

static void run_step(const hearth_team *team, const void *argument) {
    const step *work = argument;
    for (int64_t i = 0; i < work->count; i++) {
        work->table->kinds[work->list[i].kind](team, work->list[i].record, work->rows);
        if (i + 1 < work->count) {
            hearth_barrier(team);
        }
    }
}

void hearth_step(hearth_pool *pool, const hearth_operation *operations, int64_t count,
                 const hearth_rows *rows) {
    step work = {operations_of(pool), operations, count, rows};
    hearth_pool_run(pool, run_step, &work);
}

typedef struct {
    const hearth_operations *table;
    hearth_decoding decoding;
} decoding;

static void run_decoding(const hearth_team *team, const void *argument) {
    const decoding *work = argument;
    work->table->decode(team, &work->decoding);
}

void hearth_decode(hearth_pool *pool, const hearth_weight *weight, int64_t first, int64_t rows,
                   float *to, int64_t to_stride) {
    decoding work = {operations_of(pool), {weight, first, rows, to, to_stride}};
    hearth_pool_run(pool, run_decoding, &work);
}

typedef struct {
    const hearth_operations *table;
    hearth_preparing preparing;
} preparing;

static void run_preparing(const hearth_team *team, const void *argument) {
    const preparing *work = argument;
    work->table->prepare(team, &work->preparing);
}

void hearth_prepare(hearth_pool *pool, const hearth_activations *to, int64_t rows,
                    int64_t columns) {
    preparing work = {operations_of(pool), {to, rows, columns}};
    hearth_pool_run(pool, run_preparing, &work);
}

int64_t hearth_layout_bytes(const hearth_pool *pool, const hearth_weight *weight) {
    return operations_of(pool)->layout_bytes(weight);
}

typedef struct {
    const hearth_operations *table;
    hearth_laying laying;
} laying;

static void run_laying(const hearth_team *team, const void *argument) {
    const laying *work = argument;
    work->table->layout(team, &work->laying);
}

void hearth_layout(hearth_pool *pool, const hearth_weight *weight, uint8_t *to) {
    laying work = {operations_of(pool), {weight, to}};
    hearth_pool_run(pool, run_laying, &work);
}
