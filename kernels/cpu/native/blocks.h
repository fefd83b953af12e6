/* Quant blocks of every format that products know, opened group by group.
 *
 * For a format F with F_GROUPS groups of 32 in a block of F_BYTES bytes:
 *   F_open(head, block)   decodes the block's scales: element = scale * code + minimum
 *   F_codes(block, j)     the 32 codes of group j, in element order
 * Formats whose scale covers 16 elements (F_HALVES) have two scales and minima a group.
 * Layouts: kernels/quant; all arithmetic is float32 and equals the reference decoder bit for bit.
 */
#ifndef HEARTH_BLOCKS_H
#define HEARTH_BLOCKS_H

#include "lanes.h"

typedef struct {
    float scales[16];
    float minima[16];
} block_head;

static inline uint32_t word_at(const uint8_t *p) {
    uint32_t word;
    __builtin_memcpy(&word, p, 4);
    return word;
}

static inline __m256i bytes32(const uint8_t *p) { return _mm256_loadu_si256((const void *)p); }

/* 16 bytes to 32 nibbles: the low ones first, as blocks of 32 store them */
static inline __m256i nibbles32(const uint8_t *p) {
    __m128i both = _mm_loadu_si128((const void *)p);
    __m256i spread = _mm256_set_m128i(_mm_srli_epi16(both, 4), both);
    return _mm256_and_si256(spread, _mm256_set1_epi8(15));
}

/* 32 bits to 32 bytes of 0 or 16 */
static inline __m256i fifth_bits(uint32_t bits) {
    __m256i each = _mm256_shuffle_epi8(
        _mm256_set1_epi32((int32_t)bits),
        _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2,
                         3, 3, 3, 3, 3, 3, 3, 3));
    __m256i mask = _mm256_set1_epi64x((int64_t)0x8040201008040201ULL);
    __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(each, mask), mask);
    return _mm256_and_si256(set, _mm256_set1_epi8(16));
}

/* `p` shifted right by `shift` and masked, byte by byte */
static inline __m256i bytes_shifted(const uint8_t *p, int shift, int mask) {
    __m256i moved = _mm256_srl_epi16(bytes32(p), _mm_cvtsi32_si128(shift));
    return _mm256_and_si256(moved, _mm256_set1_epi8((char)mask));
}

static inline __m256i looked_up(__m256i nibbles, const int8_t table[16]) {
    __m256i values = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)table));
    return _mm256_shuffle_epi8(values, nibbles);
}

enum { Q4_0_GROUPS = 1, Q4_0_BYTES = 18, Q4_0_HALVES = 0, Q4_0_MINIMA = 0 };
static inline void Q4_0_open(block_head *head, const uint8_t *block) {
    head->scales[0] = half_at(block);
}
static inline codes32 Q4_0_codes(const uint8_t *block, int j) {
    (void)j;
    return codes_from_i8(_mm256_sub_epi8(nibbles32(block + 2), _mm256_set1_epi8(8)));
}

enum { Q4_1_GROUPS = 1, Q4_1_BYTES = 20, Q4_1_HALVES = 0, Q4_1_MINIMA = 1 };
static inline void Q4_1_open(block_head *head, const uint8_t *block) {
    head->scales[0] = half_at(block);
    head->minima[0] = half_at(block + 2);
}
static inline codes32 Q4_1_codes(const uint8_t *block, int j) {
    (void)j;
    return codes_from_u8(nibbles32(block + 4));
}

enum { Q5_0_GROUPS = 1, Q5_0_BYTES = 22, Q5_0_HALVES = 0, Q5_0_MINIMA = 0 };
static inline void Q5_0_open(block_head *head, const uint8_t *block) {
    head->scales[0] = half_at(block);
}
static inline codes32 Q5_0_codes(const uint8_t *block, int j) {
    (void)j;
    __m256i codes = _mm256_or_si256(nibbles32(block + 6), fifth_bits(word_at(block + 2)));
    return codes_from_i8(_mm256_sub_epi8(codes, _mm256_set1_epi8(16)));
}

enum { Q5_1_GROUPS = 1, Q5_1_BYTES = 24, Q5_1_HALVES = 0, Q5_1_MINIMA = 1 };
static inline void Q5_1_open(block_head *head, const uint8_t *block) {
    head->scales[0] = half_at(block);
    head->minima[0] = half_at(block + 2);
}
static inline codes32 Q5_1_codes(const uint8_t *block, int j) {
    (void)j;
    return codes_from_u8(_mm256_or_si256(nibbles32(block + 8), fifth_bits(word_at(block + 4))));
}

enum { Q8_0_GROUPS = 1, Q8_0_BYTES = 34, Q8_0_HALVES = 0, Q8_0_MINIMA = 0 };
static inline void Q8_0_open(block_head *head, const uint8_t *block) {
    head->scales[0] = half_at(block);
}
static inline codes32 Q8_0_codes(const uint8_t *block, int j) {
    (void)j;
    return codes_from_i8(bytes32(block + 2));
}

enum { IQ4_NL_GROUPS = 1, IQ4_NL_BYTES = 18, IQ4_NL_HALVES = 0, IQ4_NL_MINIMA = 0 };
static const int8_t IQ4_NL_TABLE[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                        1,    13,   25,  38,  53,  69,  89,  113};
static inline void IQ4_NL_open(block_head *head, const uint8_t *block) {
    head->scales[0] = half_at(block);
}
static inline codes32 IQ4_NL_codes(const uint8_t *block, int j) {
    (void)j;
    return codes_from_i8(looked_up(nibbles32(block + 2), IQ4_NL_TABLE));
}

enum { MXFP4_GROUPS = 1, MXFP4_BYTES = 17, MXFP4_HALVES = 0, MXFP4_MINIMA = 0 };
static const int8_t MXFP4_TABLE[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
static inline void MXFP4_open(block_head *head, const uint8_t *block) {
    /* 2^(e - 128): exponents 0 and 1 are denormal */
    uint32_t bits = block[0] < 2 ? 0x00200000u << block[0] : (uint32_t)(block[0] - 1) << 23;
    __builtin_memcpy(&head->scales[0], &bits, 4);
}
static inline codes32 MXFP4_codes(const uint8_t *block, int j) {
    (void)j;
    return codes_from_i8(looked_up(nibbles32(block + 1), MXFP4_TABLE));
}

enum { IQ4_XS_GROUPS = 8, IQ4_XS_BYTES = 136, IQ4_XS_HALVES = 0, IQ4_XS_MINIMA = 0 };
static inline void IQ4_XS_open(block_head *head, const uint8_t *block) {
    float d = half_at(block);
    int high = block[2] | block[3] << 8;
    for (int j = 0; j < 8; j++) {
        int low = block[4 + j / 2] >> 4 * (j % 2) & 15;
        head->scales[j] = d * (float)((low | (high >> 2 * j & 3) << 4) - 32);
    }
}
static inline codes32 IQ4_XS_codes(const uint8_t *block, int j) {
    return codes_from_i8(looked_up(nibbles32(block + 8 + 16 * j), IQ4_NL_TABLE));
}

/* Eight 6-bit scales and minima in 12 bytes, times d and -dmin; shared by Q4_K and Q5_K. */
static inline void six_bit_pairs(block_head *head, const uint8_t *block) {
    uint32_t a = word_at(block + 4), b = word_at(block + 8), c = word_at(block + 12);
    uint32_t scales[2] = {a & 0x3F3F3F3Fu, (c & 0x0F0F0F0Fu) | (a >> 6 & 0x03030303u) << 4};
    uint32_t minima[2] = {b & 0x3F3F3F3Fu, (c >> 4 & 0x0F0F0F0Fu) | (b >> 6 & 0x03030303u) << 4};
    __m256i s = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)scales));
    __m256i m = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)minima));
    __m256 d = _mm256_set1_ps(half_at(block)), dmin = _mm256_set1_ps(-half_at(block + 2));
    _mm256_storeu_ps(head->scales, _mm256_mul_ps(_mm256_cvtepi32_ps(s), d));
    _mm256_storeu_ps(head->minima, _mm256_mul_ps(_mm256_cvtepi32_ps(m), dmin));
}

enum { Q4_K_GROUPS = 8, Q4_K_BYTES = 144, Q4_K_HALVES = 0, Q4_K_MINIMA = 1 };
static inline void Q4_K_open(block_head *head, const uint8_t *block) { six_bit_pairs(head, block); }
static inline codes32 Q4_K_codes(const uint8_t *block, int j) {
    return codes_from_u8(bytes_shifted(block + 16 + 32 * (j / 2), 4 * (j % 2), 15));
}

enum { Q5_K_GROUPS = 8, Q5_K_BYTES = 176, Q5_K_HALVES = 0, Q5_K_MINIMA = 1 };
static inline void Q5_K_open(block_head *head, const uint8_t *block) { six_bit_pairs(head, block); }
static inline codes32 Q5_K_codes(const uint8_t *block, int j) {
    __m256i low = bytes_shifted(block + 48 + 32 * (j / 2), 4 * (j % 2), 15);
    __m256i high = _mm256_slli_epi16(bytes_shifted(block + 16, j, 1), 4);
    return codes_from_u8(_mm256_or_si256(low, high));
}

enum { Q6_K_GROUPS = 8, Q6_K_BYTES = 210, Q6_K_HALVES = 1, Q6_K_MINIMA = 0 };
static inline void Q6_K_open(block_head *head, const uint8_t *block) {
    __m256 d = _mm256_set1_ps(half_at(block + 208));
    for (int k = 0; k < 16; k += 8) {
        __m256i s = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)(block + 192 + k)));
        _mm256_storeu_ps(head->scales + k, _mm256_mul_ps(_mm256_cvtepi32_ps(s), d));
    }
}
static inline codes32 Q6_K_codes(const uint8_t *block, int j) {
    const uint8_t *low = block + 64 * (j / 4) + 32 * (j % 2), *high = block + 128 + 32 * (j / 4);
    __m256i nibble = bytes_shifted(low, 4 * (j % 4 / 2), 15);
    __m256i top = _mm256_slli_epi16(bytes_shifted(high, 2 * (j % 4), 3), 4);
    __m256i codes = _mm256_sub_epi8(_mm256_or_si256(nibble, top), _mm256_set1_epi8(32));
    return codes_from_i8(codes);
}

enum { Q3_K_GROUPS = 8, Q3_K_BYTES = 110, Q3_K_HALVES = 1, Q3_K_MINIMA = 0 };
static inline void Q3_K_open(block_head *head, const uint8_t *block) {
    const uint8_t *s = block + 96;
    float d = half_at(block + 108);
    for (int j = 0; j < 16; j++) {
        int low = s[j % 8] >> 4 * (j / 8) & 15, high = s[8 + j % 4] >> 2 * (j / 4) & 3;
        head->scales[j] = d * (float)((low | high << 4) - 32);
    }
}
static inline codes32 Q3_K_codes(const uint8_t *block, int j) {
    __m256i low = bytes_shifted(block + 32 + 32 * (j / 4), 2 * (j % 4), 3);
    __m256i high = _mm256_slli_epi16(bytes_shifted(block, j, 1), 2);
    __m256i codes = _mm256_sub_epi8(_mm256_or_si256(low, high), _mm256_set1_epi8(4));
    return codes_from_i8(codes);
}

enum { Q2_K_GROUPS = 8, Q2_K_BYTES = 84, Q2_K_HALVES = 1, Q2_K_MINIMA = 1 };
static inline void Q2_K_open(block_head *head, const uint8_t *block) {
    float d = half_at(block + 80), dmin = half_at(block + 82);
    for (int j = 0; j < 16; j++) {
        head->scales[j] = d * (float)(block[j] & 15);
        head->minima[j] = -(dmin * (float)(block[j] >> 4));
    }
}
static inline codes32 Q2_K_codes(const uint8_t *block, int j) {
    return codes_from_u8(bytes_shifted(block + 16 + 32 * (j / 4), 2 * (j % 4), 3));
}

#define HEARTH_INTEGER_FORMATS(DO) \
    DO(Q4_0) DO(Q4_1) DO(Q5_0) DO(Q5_1) DO(Q8_0) DO(IQ4_NL) DO(MXFP4) DO(IQ4_XS) DO(Q4_K) \
    DO(Q5_K) DO(Q6_K) DO(Q3_K) DO(Q2_K)

#endif
