/* Where rows of a KV page lie, and which of them a position attends to. */
#ifndef HEARTH_PAGES_H
#define HEARTH_PAGES_H

#include "hearth_cpu.h"
#include "lanes.h"

static const float CODE_UNIT = 256.0f;       /* what codes that were read are divided by */
static const float CODE_LARGEST = 448.0f;
static const float CODE_NORMAL = 0.015625f;  /* below it codes are evenly spaced */

/* A row among all rows of the layer; the same number finds its scale. */
static inline int64_t page_row(const hearth_layer_kv *kv, int32_t page, int value, int64_t head,
                               int64_t slot) {
    return (((int64_t)page * 2 + value) * kv->kv_heads + head) * HEARTH_PAGE_ROWS + slot;
}

static inline uint16_t *half_row(const hearth_layer_kv *kv, int64_t row) {
    return (uint16_t *)kv->pages + row * kv->head_dim;
}

static inline uint8_t *code_row(const hearth_layer_kv *kv, int64_t row) {
    return (uint8_t *)kv->pages + row * kv->head_dim;
}

/* Elements [i, i + LANES) from a row on, as they are stored: codes come divided by CODE_UNIT. */
static inline __attribute__((always_inline)) lanes stored_lanes(const hearth_layer_kv *kv,
                                                                int64_t row, int64_t i,
                                                                int codes) {
    return codes ? lanes_code(code_row(kv, row) + i) : lanes_half(half_row(kv, row) + i);
}

/* The rows [first, last) of page `page` that the row at `position` attends to. */
static inline void attended(const hearth_layer_kv *kv, int32_t position, int64_t page, int *first,
                            int *last) {
    int64_t start = page * HEARTH_PAGE_ROWS, end = (int64_t)position + 1 - start;
    int64_t oldest = kv->window > 0 ? (int64_t)position + 1 - kv->window - start : 0;
    *first = oldest > 0 ? (int)oldest : 0;
    *last = end < HEARTH_PAGE_ROWS ? (int)end : HEARTH_PAGE_ROWS;
}

static inline int64_t first_page(const hearth_layer_kv *kv, int32_t position) {
    int64_t oldest = kv->window > 0 ? (int64_t)position + 1 - kv->window : 0;
    return oldest > 0 ? oldest / HEARTH_PAGE_ROWS : 0;
}

#endif
