/* Dense products of many rows: the tile, and the packing of inputs and weights for it.
 *
 * A tile multiplies up to TILE_ROWS rows by a panel of PANEL weight rows. Inputs lie packed as
 * [k][TILE_ROWS] and weights as [k][PANEL], so that a tile reads two streams; attention's small
 * products read their rows where they are. Each result is one chain of fused multiply-adds over k
 * in ascending order, cut every HEARTH_DEPTH columns, so a row's bits do not depend on the rows
 * beside it.
 */
#ifndef HEARTH_DENSE_H
#define HEARTH_DENSE_H

#include "operations.h"
#include "joined.h"

enum {
    TILE_ROWS = LANES == 16 ? 8 : 6, /* with 12 rows AVX-512 ran at a third of the speed, measured */
    SPREAD_ROWS = 6,                  /* rows that need an address register each */
    PANEL = 2 * LANES,
};

/* to[r, 0 .. PANEL) (+)= x[r * row + k * column] . panel[k]; inlined with constant count */
static inline __attribute__((always_inline)) void tile_of(const float *x, int64_t row,
                                                          int64_t column, const float *panel,
                                                          int64_t panel_stride, int64_t depth,
                                                          float *to, int64_t to_stride, int adds,
                                                          int count) {
    lanes low[TILE_ROWS], high[TILE_ROWS];
    for (int r = 0; r < count; r++) {
        low[r] = adds ? lanes_load(to + r * to_stride) : lanes_zero();
        high[r] = adds ? lanes_load(to + r * to_stride + LANES) : lanes_zero();
    }
    for (int64_t k = 0; k < depth; k++) {
        lanes a = lanes_load(panel + k * panel_stride);
        lanes b = lanes_load(panel + k * panel_stride + LANES);
        for (int r = 0; r < count; r++) {
            lanes v = lanes_all(x[r * row + k * column]);
            low[r] = lanes_fma(v, a, low[r]);
            high[r] = lanes_fma(v, b, high[r]);
        }
    }
    for (int r = 0; r < count; r++) {
        lanes_store(to + r * to_stride, low[r]);
        lanes_store(to + r * to_stride + LANES, high[r]);
    }
}

#define SPREAD_CASE(N)                                                                        \
    case N:                                                                                   \
        tile_of(x + r * x_stride, x_stride, 1, panel, panel_stride, depth, to + r * to_stride, \
                to_stride, adds, N);                                                          \
        break;

/* any number of rows of x where they are */
static void spread_tiles(const float *x, int64_t x_stride, const float *panel,
                         int64_t panel_stride, int64_t depth, float *to, int64_t to_stride,
                         int adds, int64_t rows) {
    for (int64_t r = 0; r < rows; r += SPREAD_ROWS) {
        switch (rows - r < SPREAD_ROWS ? rows - r : SPREAD_ROWS) {
            SPREAD_CASE(1) SPREAD_CASE(2) SPREAD_CASE(3) SPREAD_CASE(4) SPREAD_CASE(5)
            SPREAD_CASE(6)
        }
    }
}

#if defined(__AVX512F__)
#define EACH_TILE_COUNT(DO) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8)
#else
#define EACH_TILE_COUNT(DO) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6)
#endif

#define PACKED_CASE(N)                                                                       \
    case N:                                                                                  \
        tile_of(x, 1, TILE_ROWS, panel, PANEL, depth, to, to_stride, adds, N);               \
        break;

/* up to TILE_ROWS rows of packed x */
static void packed_tile(const float *x, const float *panel, int64_t depth, float *to,
                        int64_t to_stride, int adds, int count) {
    switch (count) { EACH_TILE_COUNT(PACKED_CASE) }
}

/* Rows of one tile as [k][TILE_ROWS]. */
static void pack_inputs(const float *x, int64_t x_stride, int64_t columns, int count, float *to) {
    for (int r = 0; r < count; r++) {
        for (int64_t k = 0; k < columns; k++) {
            to[k * TILE_ROWS + r] = x[r * x_stride + k];
        }
    }
}

/* to[k * stride + r] = from[r * from_stride + k] for 8 rows and 8 columns */
static inline void transpose8(const float *from, int64_t from_stride, float *to, int64_t stride) {
    __m256 r[8], s[8];
    for (int i = 0; i < 8; i++) {
        r[i] = _mm256_loadu_ps(from + i * from_stride);
    }
    for (int i = 0; i < 8; i += 2) {
        s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        r[i] = _mm256_shuffle_ps(s[i], s[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(s[i], s[i + 2], 0xEE);
        r[i + 2] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0xEE);
    }
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_ps(to + i * stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
        _mm256_storeu_ps(to + (i + 4) * stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    }
}

/* Weight rows [row, row + PANEL), columns [from, from + depth) as [k][PANEL] floats; rows past the
 * weight's end are zero. `decoded` has room for HEARTH_BLOCK rows of HEARTH_DEPTH floats. */
static void pack_weight(const hearth_weight *weight, int64_t row, int64_t from, int64_t depth,
                        float *packed, float *decoded) {
    if (weight->is_strips) {
        const strip_format *format = strips_of(weight);
        for (int64_t lane = 0; lane < PANEL && row + lane < weight->rows; lane += LANES) {
            const uint8_t *strip =
                weight->bytes + (row + lane) / LANES * strip_bytes(format, weight);
            format->floats(weight, strip, from, depth, packed + lane, PANEL);
        }
        return;
    }
    for (int64_t block = 0; block < PANEL; block += HEARTH_BLOCK) {
        for (int64_t r = 0; r < HEARTH_BLOCK; r++) {
            int64_t at = row + block + r;
            if (at < weight->rows) {
                weight_row(weight, at, from, depth, decoded + r * HEARTH_DEPTH);
            } else {
                __builtin_memset(decoded + r * HEARTH_DEPTH, 0, (size_t)depth * sizeof(float));
            }
        }
        for (int64_t k = 0; k < depth; k += 8) {
            transpose8(decoded + k, HEARTH_DEPTH, packed + k * PANEL + block, PANEL);
        }
    }
}

#endif
