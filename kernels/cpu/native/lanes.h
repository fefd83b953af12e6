/* Vectors of one instruction set, behind a few names: `lanes` floats, and 32 weights as int16.
 *
 * Included by operations.c, which is compiled once an instruction set. Every function here is one
 * to three instructions and rounds the same on each call.
 */
#ifndef HEARTH_LANES_H
#define HEARTH_LANES_H

#include <immintrin.h>
#include <stdint.h>

#if defined(__AVX512F__)

enum { LANES = 16 };
typedef __m512 lanes;
typedef __m512i codes32; /* 32 int16 */

static inline lanes lanes_zero(void) { return _mm512_setzero_ps(); }
static inline lanes lanes_all(float x) { return _mm512_set1_ps(x); }
static inline lanes lanes_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void lanes_store(float *p, lanes v) { _mm512_storeu_ps(p, v); }
static inline lanes lanes_add(lanes a, lanes b) { return _mm512_add_ps(a, b); }
static inline lanes lanes_sub(lanes a, lanes b) { return _mm512_sub_ps(a, b); }
static inline lanes lanes_mul(lanes a, lanes b) { return _mm512_mul_ps(a, b); }
static inline lanes lanes_div(lanes a, lanes b) { return _mm512_div_ps(a, b); }
static inline lanes lanes_max(lanes a, lanes b) { return _mm512_max_ps(a, b); }
static inline lanes lanes_min(lanes a, lanes b) { return _mm512_min_ps(a, b); }
static inline lanes lanes_fma(lanes a, lanes b, lanes c) { return _mm512_fmadd_ps(a, b, c); }
static inline lanes lanes_abs(lanes a) { return _mm512_abs_ps(a); }
/* `value` where v >= limit, else 0 */
static inline lanes lanes_zero_below(lanes v, lanes limit, lanes value) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(v, limit, _CMP_NLT_UQ), value);
}
static inline float lanes_sum(lanes v) { return _mm512_reduce_add_ps(v); }
static inline float lanes_top(lanes v) { return _mm512_reduce_max_ps(v); }
/* half as many sums, or the same eight */
static inline __m256 lanes_fold(lanes v) {
    return _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
}
static inline lanes lanes_half(const uint16_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)p));
}
static inline void lanes_store_half(uint16_t *p, lanes v) {
    _mm256_storeu_si256((void *)p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
static inline lanes lanes_bf16(const uint16_t *p) {
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
/* 2^n for n already a whole number within the exponent's range */
static inline lanes lanes_power(lanes n) {
    __m512i e = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
    return _mm512_castsi512_ps(_mm512_slli_epi32(e, 23));
}
static inline lanes lanes_round(lanes v) {
    return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline codes32 codes_from_u8(__m256i v) { return _mm512_cvtepu8_epi16(v); }
static inline codes32 codes_from_i8(__m256i v) { return _mm512_cvtepi8_epi16(v); }

/* sum + scale * (weights . activations), integers exact within the group */
static inline lanes codes_fma(lanes sum, codes32 weights, const int16_t *activations, float scale) {
    __m512i dot = _mm512_madd_epi16(weights, _mm512_loadu_si512((const void *)activations));
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), _mm512_set1_ps(scale), sum);
}
/* the same with one scale for each half of the group */
static inline lanes codes_fma2(lanes sum, codes32 weights, const int16_t *activations, float first,
                               float second) {
    __m512i dot = _mm512_madd_epi16(weights, _mm512_loadu_si512((const void *)activations));
    lanes scale = _mm512_mask_blend_ps(0xFF00, _mm512_set1_ps(first), _mm512_set1_ps(second));
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), scale, sum);
}
static inline void codes_spill(int16_t *to, codes32 c) { _mm512_storeu_si512((void *)to, c); }

/* LANES words of 32 bits, or of two int16 */
typedef __m512i words32;
static inline words32 words_zero(void) { return _mm512_setzero_si512(); }
static inline words32 words_all(int32_t x) { return _mm512_set1_epi32(x); }
static inline words32 words_load(const void *p) { return _mm512_loadu_si512(p); }
static inline words32 words_and(words32 a, int32_t m) {
    return _mm512_and_si512(a, _mm512_set1_epi32(m));
}
static inline words32 words_or(words32 a, words32 b) { return _mm512_or_si512(a, b); }
static inline words32 words_add(words32 a, words32 b) { return _mm512_add_epi32(a, b); }
static inline words32 words_sub(words32 a, words32 b) { return _mm512_sub_epi32(a, b); }
static inline words32 words_shift_left(words32 a, int n) {
    return _mm512_sll_epi16(a, _mm_cvtsi32_si128(n));
}
static inline words32 words_shift_right(words32 a, int n) {
    return _mm512_srl_epi16(a, _mm_cvtsi32_si128(n));
}
static inline words32 words_shift_signed(words32 a, int n) {
    return _mm512_sra_epi16(a, _mm_cvtsi32_si128(n));
}
/* sum + the products of both int16 of each lane with a pair of activations */
static inline words32 words_dot(words32 sum, words32 codes, const int16_t *pair) {
    int32_t both;
    __builtin_memcpy(&both, pair, 4);
    return _mm512_dpwssd_epi32(sum, codes, _mm512_set1_epi32(both));
}
/* int16 of 0 to 15 as the int16 that a table of bytes has there */
static inline words32 words_looked_up(words32 a, const int8_t table[16]) {
    __m512i values = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)table));
    return _mm512_srai_epi16(_mm512_slli_epi16(_mm512_shuffle_epi8(values, a), 8), 8);
}
/* LANES floats of 8 bits (E4M3, no NaN among them) over CODE_UNIT */
static inline lanes lanes_code(const uint8_t *p) {
    __m256i w = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)p));
    __m256i size = _mm256_slli_epi16(_mm256_and_si256(w, _mm256_set1_epi16(0x7F)), 7);
    __m256i sign = _mm256_and_si256(_mm256_slli_epi16(w, 8), _mm256_set1_epi16((short)0x8000));
    return _mm512_cvtph_ps(_mm256_or_si256(size, sign));
}
/* 2 * LANES floats of 8 bits (E4M3) over 256 */
static inline void lanes_e4m3(const uint8_t *p, lanes to[2]) {
    __m512i w = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)p));
    __m512i size = _mm512_and_si512(w, _mm512_set1_epi16(0x7F));
    __m512i sign = _mm512_and_si512(_mm512_slli_epi16(w, 8), _mm512_set1_epi16((short)0x8000));
    __mmask32 none = _mm512_cmpeq_epi16_mask(size, _mm512_set1_epi16(0x7F));
    __m512i half = _mm512_or_si512(_mm512_slli_epi16(size, 7), sign);
    half = _mm512_mask_mov_epi16(half, none, _mm512_set1_epi16(-1));
    to[0] = _mm512_cvtph_ps(_mm512_castsi512_si256(half));
    to[1] = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(half, 1));
}
/* the low or high int16 of each lane */
static inline words32 words_half(words32 a, int high) {
    return _mm512_srai_epi32(high ? a : _mm512_slli_epi32(a, 16), 16);
}
static inline lanes words_to_lanes(words32 a) { return _mm512_cvtepi32_ps(a); }
static inline lanes lanes_from_u8(const uint8_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)p)));
}
static inline lanes lanes_from_i8(const int8_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)p)));
}

/* 32 values into 32 int16, times `inverse`, rounded to nearest; returns their sum */
static inline int32_t codes_store(int16_t *to, const float *values, float inverse) {
    lanes k = lanes_all(inverse);
    __m512i low = _mm512_cvtps_epi32(lanes_mul(lanes_load(values), k));
    __m512i high = _mm512_cvtps_epi32(lanes_mul(lanes_load(values + 16), k));
    _mm256_storeu_si256((void *)to, _mm512_cvtepi32_epi16(low));
    _mm256_storeu_si256((void *)(to + 16), _mm512_cvtepi32_epi16(high));
    return _mm512_reduce_add_epi32(_mm512_add_epi32(low, high));
}
/* the 32 codes as floats */
static inline void codes_to_floats(codes32 c, float *to) {
    __m256i low = _mm512_castsi512_si256(c), high = _mm512_extracti64x4_epi64(c, 1);
    lanes_store(to, _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(low)));
    lanes_store(to + 16, _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(high)));
}

#else

enum { LANES = 8 };
typedef __m256 lanes;
typedef struct {
    __m256i low, high;
} codes32;

static inline lanes lanes_zero(void) { return _mm256_setzero_ps(); }
static inline lanes lanes_all(float x) { return _mm256_set1_ps(x); }
static inline lanes lanes_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void lanes_store(float *p, lanes v) { _mm256_storeu_ps(p, v); }
static inline lanes lanes_add(lanes a, lanes b) { return _mm256_add_ps(a, b); }
static inline lanes lanes_sub(lanes a, lanes b) { return _mm256_sub_ps(a, b); }
static inline lanes lanes_mul(lanes a, lanes b) { return _mm256_mul_ps(a, b); }
static inline lanes lanes_div(lanes a, lanes b) { return _mm256_div_ps(a, b); }
static inline lanes lanes_max(lanes a, lanes b) { return _mm256_max_ps(a, b); }
static inline lanes lanes_min(lanes a, lanes b) { return _mm256_min_ps(a, b); }
static inline lanes lanes_fma(lanes a, lanes b, lanes c) { return _mm256_fmadd_ps(a, b, c); }
static inline lanes lanes_abs(lanes a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
static inline lanes lanes_zero_below(lanes v, lanes limit, lanes value) {
    return _mm256_and_ps(_mm256_cmp_ps(v, limit, _CMP_NLT_UQ), value);
}
static inline float lanes_sum(lanes v) {
    __m128 a = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    a = _mm_add_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)));
}
static inline float lanes_top(lanes v) {
    __m128 a = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    a = _mm_max_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_max_ss(a, _mm_movehdup_ps(a)));
}
static inline __m256 lanes_fold(lanes v) { return v; }
static inline lanes lanes_half(const uint16_t *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const void *)p));
}
static inline void lanes_store_half(uint16_t *p, lanes v) {
    _mm_storeu_si128((void *)p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
static inline lanes lanes_bf16(const uint16_t *p) {
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
static inline lanes lanes_power(lanes n) {
    __m256i e = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(e, 23));
}
static inline lanes lanes_round(lanes v) {
    return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline codes32 codes_from_u8(__m256i v) {
    return (codes32){_mm256_cvtepu8_epi16(_mm256_castsi256_si128(v)),
                     _mm256_cvtepu8_epi16(_mm256_extracti128_si256(v, 1))};
}
static inline codes32 codes_from_i8(__m256i v) {
    return (codes32){_mm256_cvtepi8_epi16(_mm256_castsi256_si128(v)),
                     _mm256_cvtepi8_epi16(_mm256_extracti128_si256(v, 1))};
}
static inline lanes codes_fma(lanes sum, codes32 weights, const int16_t *activations, float scale) {
    __m256i low = _mm256_madd_epi16(weights.low, _mm256_loadu_si256((const void *)activations));
    __m256i high =
        _mm256_madd_epi16(weights.high, _mm256_loadu_si256((const void *)(activations + 16)));
    lanes dot = _mm256_cvtepi32_ps(_mm256_add_epi32(low, high));
    return _mm256_fmadd_ps(dot, _mm256_set1_ps(scale), sum);
}
static inline lanes codes_fma2(lanes sum, codes32 weights, const int16_t *activations, float first,
                               float second) {
    __m256i low = _mm256_madd_epi16(weights.low, _mm256_loadu_si256((const void *)activations));
    __m256i high =
        _mm256_madd_epi16(weights.high, _mm256_loadu_si256((const void *)(activations + 16)));
    sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(low), _mm256_set1_ps(first), sum);
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(high), _mm256_set1_ps(second), sum);
}
static inline void codes_spill(int16_t *to, codes32 c) {
    _mm256_storeu_si256((void *)to, c.low);
    _mm256_storeu_si256((void *)(to + 16), c.high);
}

typedef __m256i words32;
static inline words32 words_zero(void) { return _mm256_setzero_si256(); }
static inline words32 words_all(int32_t x) { return _mm256_set1_epi32(x); }
static inline words32 words_load(const void *p) { return _mm256_loadu_si256(p); }
static inline words32 words_and(words32 a, int32_t m) {
    return _mm256_and_si256(a, _mm256_set1_epi32(m));
}
static inline words32 words_or(words32 a, words32 b) { return _mm256_or_si256(a, b); }
static inline words32 words_add(words32 a, words32 b) { return _mm256_add_epi32(a, b); }
static inline words32 words_sub(words32 a, words32 b) { return _mm256_sub_epi32(a, b); }
static inline words32 words_shift_left(words32 a, int n) {
    return _mm256_sll_epi16(a, _mm_cvtsi32_si128(n));
}
static inline words32 words_shift_right(words32 a, int n) {
    return _mm256_srl_epi16(a, _mm_cvtsi32_si128(n));
}
static inline words32 words_shift_signed(words32 a, int n) {
    return _mm256_sra_epi16(a, _mm_cvtsi32_si128(n));
}
static inline words32 words_dot(words32 sum, words32 codes, const int16_t *pair) {
    int32_t both;
    __builtin_memcpy(&both, pair, 4);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(codes, _mm256_set1_epi32(both)));
}
static inline words32 words_looked_up(words32 a, const int8_t table[16]) {
    __m256i values = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)table));
    return _mm256_srai_epi16(_mm256_slli_epi16(_mm256_shuffle_epi8(values, a), 8), 8);
}
static inline lanes lanes_code(const uint8_t *p) {
    __m128i w = _mm_cvtepu8_epi16(_mm_loadl_epi64((const void *)p));
    __m128i size = _mm_slli_epi16(_mm_and_si128(w, _mm_set1_epi16(0x7F)), 7);
    __m128i sign = _mm_and_si128(_mm_slli_epi16(w, 8), _mm_set1_epi16((short)0x8000));
    return _mm256_cvtph_ps(_mm_or_si128(size, sign));
}
static inline void lanes_e4m3(const uint8_t *p, lanes to[2]) {
    __m256i w = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)p));
    __m256i size = _mm256_and_si256(w, _mm256_set1_epi16(0x7F));
    __m256i sign = _mm256_and_si256(_mm256_slli_epi16(w, 8), _mm256_set1_epi16((short)0x8000));
    __m256i none = _mm256_cmpeq_epi16(size, _mm256_set1_epi16(0x7F));
    __m256i half = _mm256_or_si256(_mm256_slli_epi16(size, 7), _mm256_or_si256(sign, none));
    to[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(half));
    to[1] = _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1));
}
static inline words32 words_half(words32 a, int high) {
    return _mm256_srai_epi32(high ? a : _mm256_slli_epi32(a, 16), 16);
}
static inline lanes words_to_lanes(words32 a) { return _mm256_cvtepi32_ps(a); }
static inline lanes lanes_from_u8(const uint8_t *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p)));
}
static inline lanes lanes_from_i8(const int8_t *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)p)));
}
static inline int32_t codes_store(int16_t *to, const float *values, float inverse) {
    lanes k = lanes_all(inverse);
    __m256i a = _mm256_cvtps_epi32(lanes_mul(lanes_load(values), k));
    __m256i b = _mm256_cvtps_epi32(lanes_mul(lanes_load(values + 8), k));
    __m256i c = _mm256_cvtps_epi32(lanes_mul(lanes_load(values + 16), k));
    __m256i d = _mm256_cvtps_epi32(lanes_mul(lanes_load(values + 24), k));
    /* packs works within 128-bit halves; the permutation puts the quarters in order */
    __m256i first = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xD8);
    __m256i second = _mm256_permute4x64_epi64(_mm256_packs_epi32(c, d), 0xD8);
    _mm256_storeu_si256((void *)to, first);
    _mm256_storeu_si256((void *)(to + 16), second);
    __m256i sum = _mm256_add_epi32(_mm256_add_epi32(a, b), _mm256_add_epi32(c, d));
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xB1)));
}
static inline void codes_to_floats(codes32 c, float *to) {
    __m128i part[4] = {_mm256_castsi256_si128(c.low), _mm256_extracti128_si256(c.low, 1),
                       _mm256_castsi256_si128(c.high), _mm256_extracti128_si256(c.high, 1)};
    for (int i = 0; i < 4; i++) {
        lanes_store(to + 8 * i, _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(part[i])));
    }
}

#endif

/* the sum of 16 int16 */
static inline int32_t half_sum(const int16_t *p) {
    __m256i pairs = _mm256_madd_epi16(_mm256_loadu_si256((const void *)p), _mm256_set1_epi16(1));
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xB1)));
}

static inline float half_at(const uint8_t *p) {
    uint16_t bits;
    __builtin_memcpy(&bits, p, 2);
    return _cvtsh_ss(bits);
}

/* e^v, within two units in the last place of float; v below -87 gives about 1e-38, never less */
static inline lanes lanes_exp(lanes v) {
    v = lanes_max(lanes_min(v, lanes_all(88.0f)), lanes_all(-87.0f));
    lanes n = lanes_round(lanes_mul(v, lanes_all(1.44269504f)));
    lanes r = lanes_fma(n, lanes_all(-0.693145752f), v);
    r = lanes_fma(n, lanes_all(-1.42860677e-6f), r);
    lanes p = lanes_all(1.9841270e-4f); /* 1/7!, and so on down the series */
    p = lanes_fma(p, r, lanes_all(1.3888889e-3f));
    p = lanes_fma(p, r, lanes_all(8.3333333e-3f));
    p = lanes_fma(p, r, lanes_all(4.1666667e-2f));
    p = lanes_fma(p, r, lanes_all(1.6666667e-1f));
    p = lanes_fma(p, r, lanes_all(0.5f));
    p = lanes_fma(p, r, lanes_all(1.0f));
    p = lanes_fma(p, r, lanes_all(1.0f));
    return lanes_mul(p, lanes_power(n));
}

/* e^v, and exactly 0 for minus infinity */
static inline lanes lanes_exp_or_zero(lanes v) {
    return lanes_zero_below(v, lanes_all(-87.0f), lanes_exp(v));
}

#endif
