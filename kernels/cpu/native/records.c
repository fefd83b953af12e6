/* What the library was built from, and how its records lie in memory: what tests compare. */
#include <stddef.h>

#include "hearth_cpu.h"

#ifndef HEARTH_SOURCE_DIGEST
#error "build.py gives the digest of the sources"
#endif

#define SIZE(T) (int64_t)sizeof(T)
#define AT(T, FIELD) (int64_t)offsetof(T, FIELD)
#define END (-1)

static const int64_t LAYOUT[] = {
    SIZE(hearth_activations), AT(hearth_activations, values), AT(hearth_activations, codes),
    AT(hearth_activations, scales), AT(hearth_activations, sums),
    AT(hearth_activations, value_stride), AT(hearth_activations, group_stride), END,

    SIZE(hearth_weight), AT(hearth_weight, bytes), AT(hearth_weight, bias),
    AT(hearth_weight, rows), AT(hearth_weight, columns), AT(hearth_weight, row_bytes),
    AT(hearth_weight, format), AT(hearth_weight, is_strips), AT(hearth_weight, scales), AT(hearth_weight, minima),
    AT(hearth_weight, group), AT(hearth_weight, scale_format), AT(hearth_weight, reserved), END,

    SIZE(hearth_embed), AT(hearth_embed, weight), AT(hearth_embed, residual),
    AT(hearth_embed, scale), AT(hearth_embed, reserved), END,

    SIZE(hearth_residual), AT(hearth_residual, residual), AT(hearth_residual, added),
    AT(hearth_residual, post), AT(hearth_residual, weight), AT(hearth_residual, to),
    AT(hearth_residual, columns), AT(hearth_residual, added_stride), AT(hearth_residual, post_eps),
    AT(hearth_residual, eps), AT(hearth_residual, scale), AT(hearth_residual, raw),
    AT(hearth_residual, reserved), END,

    SIZE(hearth_combine), AT(hearth_combine, added), AT(hearth_combine, post),
    AT(hearth_combine, gates), AT(hearth_combine, sum), AT(hearth_combine, columns),
    AT(hearth_combine, added_stride), AT(hearth_combine, gate_stride),
    AT(hearth_combine, post_eps), AT(hearth_combine, first), END,

    SIZE(hearth_per_layer), AT(hearth_per_layer, embedding), AT(hearth_per_layer, projected),
    AT(hearth_per_layer, norm), AT(hearth_per_layer, to), AT(hearth_per_layer, stride),
    AT(hearth_per_layer, layers), AT(hearth_per_layer, width),
    AT(hearth_per_layer, embedding_scale), AT(hearth_per_layer, projection_scale),
    AT(hearth_per_layer, scale), AT(hearth_per_layer, eps), END,

    SIZE(hearth_cap), AT(hearth_cap, logits), AT(hearth_cap, stride), AT(hearth_cap, columns),
    AT(hearth_cap, cap), AT(hearth_cap, reserved), END,

    SIZE(hearth_product), AT(hearth_product, from), AT(hearth_product, output),
    AT(hearth_product, stride), AT(hearth_product, weights), AT(hearth_product, offsets),
    AT(hearth_product, count), AT(hearth_product, scratch), AT(hearth_product, scratch_stride),
    AT(hearth_product, packed), END,

    SIZE(hearth_angles), AT(hearth_angles, frequencies), AT(hearth_angles, angles),
    AT(hearth_angles, pairs), AT(hearth_angles, magnitude), AT(hearth_angles, reserved), END,

    SIZE(hearth_layer_kv), AT(hearth_layer_kv, pages), AT(hearth_layer_kv, kv_heads),
    AT(hearth_layer_kv, head_dim), AT(hearth_layer_kv, group), AT(hearth_layer_kv, window),
    AT(hearth_layer_kv, scales), END,

    SIZE(hearth_rotate), AT(hearth_rotate, kv), AT(hearth_rotate, rows),
    AT(hearth_rotate, query_norm), AT(hearth_rotate, key_norm), AT(hearth_rotate, value_norm),
    AT(hearth_rotate, angles), AT(hearth_rotate, stride), AT(hearth_rotate, heads),
    AT(hearth_rotate, k_offset), AT(hearth_rotate, v_offset), AT(hearth_rotate, pairs),
    AT(hearth_rotate, halves), AT(hearth_rotate, query_scale), AT(hearth_rotate, query_eps),
    AT(hearth_rotate, key_eps), AT(hearth_rotate, value_eps), AT(hearth_rotate, borrows), END,

    SIZE(hearth_attend), AT(hearth_attend, kv), AT(hearth_attend, queries),
    AT(hearth_attend, gates), AT(hearth_attend, partials), AT(hearth_attend, to),
    AT(hearth_attend, stride), AT(hearth_attend, heads), AT(hearth_attend, partial_pages), END,

    SIZE(hearth_chunk), AT(hearth_chunk, kv), AT(hearth_chunk, queries), AT(hearth_chunk, gates),
    AT(hearth_chunk, to), AT(hearth_chunk, scratch), AT(hearth_chunk, stride),
    AT(hearth_chunk, heads), AT(hearth_chunk, scratch_stride), END,

    SIZE(hearth_gate), AT(hearth_gate, gates), AT(hearth_gate, ups), AT(hearth_gate, to),
    AT(hearth_gate, stride), AT(hearth_gate, up_stride), AT(hearth_gate, columns),
    AT(hearth_gate, gelu), AT(hearth_gate, copies), END,

    SIZE(hearth_delta), AT(hearth_delta, rows), AT(hearth_delta, convolution),
    AT(hearth_delta, decay), AT(hearth_delta, time_bias), AT(hearth_delta, norm),
    AT(hearth_delta, states), AT(hearth_delta, tails), AT(hearth_delta, to),
    AT(hearth_delta, stride), AT(hearth_delta, gate_offset), AT(hearth_delta, beta_offset),
    AT(hearth_delta, alpha_offset), AT(hearth_delta, state_stride), AT(hearth_delta, tail_stride),
    AT(hearth_delta, key_heads), AT(hearth_delta, value_heads), AT(hearth_delta, key_dim),
    AT(hearth_delta, value_dim), AT(hearth_delta, kernel), AT(hearth_delta, length_eps),
    AT(hearth_delta, norm_eps), AT(hearth_delta, tiled), AT(hearth_delta, chunk), END,

    SIZE(hearth_route), AT(hearth_route, logits), AT(hearth_route, scales),
    AT(hearth_route, chosen), AT(hearth_route, weights), AT(hearth_route, places),
    AT(hearth_route, starts), AT(hearth_route, stride), AT(hearth_route, experts),
    AT(hearth_route, active), AT(hearth_route, scale), AT(hearth_route, reserved), END,

    SIZE(hearth_experts), AT(hearth_experts, route), AT(hearth_experts, from),
    AT(hearth_experts, weights), AT(hearth_experts, output), AT(hearth_experts, gathered),
    AT(hearth_experts, scratch), AT(hearth_experts, count), AT(hearth_experts, stride),
    AT(hearth_experts, scratch_stride), END,

    SIZE(hearth_operation), AT(hearth_operation, kind), AT(hearth_operation, record), END,

    SIZE(hearth_rows), AT(hearth_rows, ids), AT(hearth_rows, positions), AT(hearth_rows, tables),
    AT(hearth_rows, first), AT(hearth_rows, rows), AT(hearth_rows, total), AT(hearth_rows, slots),
    END, END,
};

const int64_t *hearth_record_layout(void) { return LAYOUT; }

const char *hearth_source_digest(void) { return HEARTH_SOURCE_DIGEST; }
