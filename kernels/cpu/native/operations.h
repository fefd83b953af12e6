/* What one instruction set offers: an operation a kind, and the decoder. */
#ifndef HEARTH_OPERATIONS_H
#define HEARTH_OPERATIONS_H

#include "pool.h"

enum {
    HEARTH_KINDS = 21,
    HEARTH_DEPTH = 1024,     /* columns of a weight packed at a time; 64 or 128 KiB of floats */
    HEARTH_BLOCK = 8,        /* weight rows decoded and transposed at a time */
    HEARTH_CHUNK_BLOCK = 48, /* rows of a prompt attended at a time: whole tiles of 6 */
};

typedef void (*hearth_operate)(const hearth_team *team, const void *record, const hearth_rows *rows);

typedef struct {
    const hearth_weight *weight;
    int64_t first;
    int64_t rows;
    float *to;
    int64_t to_stride;
} hearth_decoding;

typedef struct {
    const hearth_activations *to;
    int64_t rows;
    int64_t columns;
} hearth_preparing;

typedef struct {
    const hearth_weight *weight;
    uint8_t *to;
} hearth_laying;

typedef struct {
    hearth_operate kinds[HEARTH_KINDS];
    void (*decode)(const hearth_team *team, const hearth_decoding *decoding);
    int64_t (*layout_bytes)(const hearth_weight *weight);
    void (*layout)(const hearth_team *team, const hearth_laying *laying);
    void (*prepare)(const hearth_team *team, const hearth_preparing *preparing);
} hearth_operations;

extern const hearth_operations hearth_operations_avx2;
extern const hearth_operations hearth_operations_avx512;

/* This thread's share [*first, *last) of `total` equal pieces. */
static inline void hearth_share(const hearth_team *team, int64_t total, int64_t *first,
                                int64_t *last) {
    *first = total * team->thread / team->threads;
    *last = total * (team->thread + 1) / team->threads;
}

#endif
