"""Native operations of a layer's first half: attention over pages and the gated delta rule.

Each comes in two lists: ``rows`` runs for every row, for it writes what later rows read, and
``rest`` may run for those rows alone whose result is wanted.
"""

from __future__ import annotations

from engine.errors import InvariantBroken
from engine.models.spec import AttentionSpec, DeltaSpec, HeadOrder, Linear, Mixer, Norm, RopeStyle
from engine.native.operations import Entry, OperationBuilder
from kernels.cpu import records
from kernels.cpu.records import Kind


def mixer_rows(build: OperationBuilder, mixer: Mixer) -> list[Entry]:
    """From the inputs to what the pages or the recurrent state gain."""
    if isinstance(mixer, DeltaSpec):
        record = _delta(build, mixer)
        return [
            build.product([mixer.mixed, mixer.gate, mixer.beta, mixer.alpha]),
            (Kind.DELTA_MIX, record),
            (Kind.DELTA_RULE, record),
        ]
    gate = [] if mixer.gate is None else [mixer.gate]
    return [build.product([*projections(mixer), *gate]), (Kind.ROTATE, _rotate(build, mixer))]


def mixer_rest(build: OperationBuilder, mixer: Mixer) -> list[Entry]:
    """From there to the mixer's outputs."""
    if isinstance(mixer, DeltaSpec):
        return [(Kind.DELTA_OUT, _delta(build, mixer)), build.product([mixer.output])]
    return [*_attend(build, mixer), build.product([mixer.output])]


def _rotate(build: OperationBuilder, attention: AttentionSpec) -> records.Rotate:
    outputs, rope, dim = build.parts.buffers.outputs, attention.rope, attention.head_dim
    keys = attention.head_count * dim
    values = keys if attention.value is None else keys + attention.kv_head_count * dim
    return records.Rotate(
        kv=_layer_kv(build, attention),
        rows=outputs.data_ptr(),
        query_norm=build.norm(attention.query_norm, dim),
        key_norm=build.norm(attention.key_norm, dim),
        value_norm=build.norm(attention.value_norm, dim),
        angles=None if rope is None else build.parts.buffers.angles(rope).data_ptr(),
        stride=outputs.stride(0),
        heads=attention.head_count,
        k_offset=keys,
        v_offset=values,
        pairs=0 if rope is None else len(rope.frequencies),
        halves=int(rope is not None and rope.style is RopeStyle.HALVES),
        query_scale=attention.scale,
        query_eps=_eps(attention.query_norm),
        key_eps=_eps(attention.key_norm),
        value_eps=_eps(attention.value_norm),
        borrows=int(not attention.owns_kv),
    )


def _attend(build: OperationBuilder, attention: AttentionSpec) -> list[Entry]:
    """Softmax attention over the pages, into the inputs."""
    buffers = build.parts.buffers
    outputs, gates = buffers.outputs, None
    if attention.gate is not None:
        own = 0 if attention.key is None else 1 if attention.value is None else 2
        before = attention.head_count + own * attention.kv_head_count
        gates = outputs[:, before * attention.head_dim :].data_ptr()
    if not build.is_step:
        chunk = records.Chunk(
            kv=_layer_kv(build, attention),
            queries=outputs.data_ptr(),
            gates=gates,
            to=build.inputs,
            scratch=buffers.chunk_scratch.data_ptr(),
            stride=outputs.stride(0),
            heads=attention.head_count,
            scratch_stride=buffers.sizes.chunk_scratch,
        )
        return [(Kind.CHUNK, chunk)]
    attend = records.Attend(
        kv=_layer_kv(build, attention),
        queries=outputs.data_ptr(),
        gates=gates,
        partials=buffers.partials.data_ptr(),
        to=build.inputs,
        stride=outputs.stride(0),
        heads=attention.head_count,
        partial_pages=buffers.sizes.partial_pages,
    )
    return [(Kind.ATTEND, attend), (Kind.MERGE, attend)]


def _layer_kv(build: OperationBuilder, attention: AttentionSpec) -> records.LayerKv:
    kv = build.parts.kv
    layout, scales = kv.layout(attention.group), kv.scale_layout(attention.group)
    return records.LayerKv(
        layout.address + attention.slot * layout.layer_stride,
        attention.kv_head_count,
        attention.head_dim,
        attention.group,
        attention.window or 0,
        None if scales is None else scales.address + attention.slot * scales.layer_stride,
    )


def _delta(build: OperationBuilder, delta: DeltaSpec) -> records.Delta:
    outputs, weights, arena = (
        build.parts.buffers.outputs,
        build.parts.weights,
        build.parts.recurrent,
    )
    if arena is None:
        raise InvariantBroken("A model with recurrent layers was given no states.")
    values = delta.value_head_count * delta.value_dim
    return records.Delta(
        rows=outputs.data_ptr(),
        convolution=weights.taps(delta.convolution, delta.channels).data_ptr(),
        decay=weights.decay(delta.decay, is_log=delta.decay_is_log).data_ptr(),
        time_bias=weights.floats(delta.time_bias).data_ptr(),
        norm=build.norm(delta.norm, delta.value_dim),
        states=arena.states[:, delta.slot].data_ptr(),
        tails=arena.tails[:, delta.slot].data_ptr(),
        to=build.inputs,
        stride=outputs.stride(0),
        gate_offset=delta.channels,
        beta_offset=delta.channels + values,
        alpha_offset=delta.channels + values + delta.value_head_count,
        state_stride=arena.states.stride(0),
        tail_stride=arena.tails.stride(0),
        key_heads=delta.key_head_count,
        value_heads=delta.value_head_count,
        key_dim=delta.key_dim,
        value_dim=delta.value_dim,
        kernel=delta.kernel,
        length_eps=delta.eps,
        norm_eps=delta.norm.eps,
        tiled=int(delta.order is HeadOrder.TILED),
        chunk=int(not build.is_step),
    )


def _eps(norm: Norm | None) -> float:
    return 0.0 if norm is None else norm.eps


def projections(attention: AttentionSpec) -> list[Linear]:
    """Query, key and value, as far as the layer has them."""
    own = (attention.query, attention.key, attention.value)
    return [linear for linear in own if linear is not None]
