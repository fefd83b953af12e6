/* Where rows of a KV page lie, and which of them a position attends to. */
#ifndef HEARTH_PAGES_H
#define HEARTH_PAGES_H

#include "hearth_cpu.h"

static inline uint16_t *page_row(const hearth_layer_kv *kv, int32_t page, int value, int64_t head,
                                 int64_t slot) {
    int64_t row = (((int64_t)page * 2 + value) * kv->kv_heads + head) * HEARTH_PAGE_ROWS + slot;
    return kv->pages + row * kv->head_dim;
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
