"""One native operation a method: the records of a chunk or a step, filled from a ``ModelSpec``.

The operations are described in ``kernels/cpu/native/hearth_cpu.h``. A builder makes the records of
one program and keeps what they point to alive.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from engine.cache.kv import KvArena
from engine.models.spec import (
    Activation,
    AttentionSpec,
    FeedForwardSpec,
    Linear,
    ModelSpec,
    Norm,
    RopeSpec,
    RopeStyle,
)
from engine.native.buffers import NativeBuffers
from engine.native.weights import StoredWeights
from kernels.cpu import records
from kernels.cpu.records import Activations, Kind

Entry = tuple[Kind, ctypes.Structure]


class OperationBuilder:
    """Makes the operations of one program.

    ``inputs`` says which products it has: with codes those of a step, without those of a chunk.
    """

    def __init__(
        self,
        spec: ModelSpec,
        weights: StoredWeights,
        kv: KvArena,
        buffers: NativeBuffers,
        inputs: Activations,
    ) -> None:
        self.spec = spec
        self.is_step = bool(inputs.codes)
        self._weights = weights
        self._kv = kv
        self._buffers = buffers
        self._inputs = ctypes.pointer(inputs)
        self._frequencies: list[ctypes.Array[ctypes.c_double]] = []

    def embed(self) -> Entry:
        """Token ids to the residual."""
        weight = self._weights.file_rows(self.spec.embedding)
        residual = self._buffers.residual.data_ptr()
        return Kind.EMBED, records.Embed(weight, residual, self.spec.embedding_scale, 0)

    def angles(self, rope: RopeSpec) -> Entry:
        """Positions to cosines and sines, shared by every layer with this rule."""
        pairs = len(rope.frequencies)
        table = self._buffers.angles(rope)
        frequencies = (ctypes.c_double * pairs)(*rope.frequencies)
        self._frequencies.append(frequencies)
        return Kind.ANGLES, records.Angles(frequencies, table.data_ptr(), pairs, rope.magnitude, 0)

    def residual(self, *, adds: bool, post: Norm | None, then: Norm | None) -> Entry:
        """Add the last product to the residual, after ``post``; ``then`` norms the next input."""
        buffers = self._buffers
        return Kind.RESIDUAL, records.Residual(
            residual=buffers.residual.data_ptr(),
            added=buffers.outputs.data_ptr() if adds else None,
            post=self._norm_address(post),
            weight=self._norm_address(then),
            to=self._inputs,
            columns=self.spec.hidden,
            added_stride=buffers.sizes.outputs,
            post_eps=0.0 if post is None else post.eps,
            eps=0.0 if then is None else then.eps,
        )

    def product(self, linears: Sequence[Linear]) -> Entry:
        """The inputs times up to three weights, side by side, into the outputs."""
        buffers = self._buffers
        record = records.Product(
            source=self._inputs,
            output=buffers.outputs.data_ptr(),
            stride=buffers.sizes.outputs,
            count=len(linears),
            scratch=buffers.dense_scratch.data_ptr(),
            scratch_stride=buffers.sizes.dense_scratch,
            packed=buffers.packed.data_ptr(),
        )
        offset = 0
        for part, linear in enumerate(linears):
            weight = self._weights.product(linear)
            record.weights[part] = weight
            record.offsets[part] = offset
            offset += weight.rows
        return (Kind.PRODUCT if self.is_step else Kind.DENSE), record

    def head(self) -> Entry:
        """The inputs times the head, into the logits."""
        logits = self._buffers.logits
        record = records.Product(
            source=self._inputs, output=logits.data_ptr(), stride=logits.stride(0), count=1
        )
        record.weights[0] = self._weights.product(Linear(self.spec.head))
        return Kind.PRODUCT, record

    def rotate(self, attention: AttentionSpec) -> Entry:
        """Norm and turn q and k, write k and v to their page."""
        rope, queries = attention.rope, attention.head_count * attention.head_dim
        query_norm, key_norm = attention.query_norm, attention.key_norm
        return Kind.ROTATE, records.Rotate(
            kv=self._layer_kv(attention),
            rows=self._buffers.outputs.data_ptr(),
            query_norm=self._norm_address(query_norm),
            key_norm=self._norm_address(key_norm),
            angles=None if rope is None else self._buffers.angles(rope).data_ptr(),
            stride=self._buffers.sizes.outputs,
            heads=attention.head_count,
            k_offset=queries,
            v_offset=queries + attention.kv_head_count * attention.head_dim,
            pairs=0 if rope is None else len(rope.frequencies),
            halves=int(rope is not None and rope.style is RopeStyle.HALVES),
            query_scale=attention.scale,
            query_eps=0.0 if query_norm is None else query_norm.eps,
            key_eps=0.0 if key_norm is None else key_norm.eps,
        )

    def attend(self, attention: AttentionSpec) -> list[Entry]:
        """Softmax attention over the pages, into the inputs."""
        buffers = self._buffers
        if not self.is_step:
            chunk = records.Chunk(
                kv=self._layer_kv(attention),
                queries=buffers.outputs.data_ptr(),
                to=self._inputs,
                scratch=buffers.chunk_scratch.data_ptr(),
                stride=buffers.sizes.outputs,
                heads=attention.head_count,
                scratch_stride=buffers.sizes.chunk_scratch,
            )
            return [(Kind.CHUNK, chunk)]
        attend = records.Attend(
            kv=self._layer_kv(attention),
            queries=buffers.outputs.data_ptr(),
            partials=buffers.partials.data_ptr(),
            to=self._inputs,
            stride=buffers.sizes.outputs,
            heads=attention.head_count,
            partial_pages=buffers.sizes.partial_pages,
        )
        return [(Kind.ATTEND, attend), (Kind.MERGE, attend)]

    def gate(self, spec: FeedForwardSpec) -> Entry:
        """``activation(gate) * up`` into the inputs."""
        return Kind.GATE, records.Gate(
            rows=self._buffers.outputs.data_ptr(),
            to=self._inputs,
            stride=self._buffers.sizes.outputs,
            up_offset=spec.width,
            columns=spec.width,
            gelu=int(spec.activation is Activation.GELU_TANH),
            reserved=0,
        )

    def _layer_kv(self, attention: AttentionSpec) -> records.LayerKv:
        layout = self._kv.layout(attention.group)
        return records.LayerKv(
            layout.address + attention.slot * layout.layer_stride,
            attention.kv_head_count,
            attention.head_dim,
            attention.group,
            attention.window or 0,
        )

    def _norm_address(self, norm: Norm | None) -> int | None:
        return None if norm is None else self._weights.norm(norm).data_ptr()
