"""One native operation a method: the records of a chunk or a step, filled from a ``ModelSpec``.

The operations are described in ``kernels/cpu/native/hearth_cpu.h``. A builder makes the records of
one program and keeps what they point to alive. What only some layers have is in ``mixers`` and
``branches``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from engine.cache.kv import KvArena
from engine.cache.recurrent import RecurrentArena
from engine.models.spec import Activation, Linear, ModelSpec, Norm, RopeSpec
from engine.native.buffers import NativeBuffers
from engine.native.weights import StoredWeights
from kernels.cpu import records
from kernels.cpu.records import Activations, Kind

Entry = tuple[Kind, ctypes.Structure]


@dataclass(frozen=True, slots=True)
class Added:
    """What the residual gains next: rows of a buffer, normed by ``post``, all times ``scale``."""

    rows: torch.Tensor
    post: Norm | None
    scale: str | None = None


@dataclass(frozen=True, slots=True)
class NativeParts:
    """What the operations of a model work on.

    Attributes:
        recurrent: None for a model without recurrent layers.
    """

    spec: ModelSpec
    weights: StoredWeights
    kv: KvArena
    recurrent: RecurrentArena | None
    buffers: NativeBuffers


class OperationBuilder:
    """Makes the operations of one program.

    ``inputs`` says which products it has: with codes those of a step, without those of a chunk.
    """

    def __init__(self, parts: NativeParts, inputs: Activations) -> None:
        self.parts = parts
        self.spec = parts.spec
        self.is_step = bool(inputs.codes)
        self.inputs = ctypes.pointer(inputs)
        self._weights = parts.weights
        self._buffers = parts.buffers
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

    def residual(self, added: Added | None, then: Norm | None) -> Entry:
        """Add to the residual; ``then`` norms it as the next inputs, None takes it as it is."""
        post = None if added is None else added.post
        return Kind.RESIDUAL, records.Residual(
            residual=self._buffers.residual.data_ptr(),
            added=None if added is None else added.rows.data_ptr(),
            post=self.norm(post, self.spec.hidden),
            weight=self.norm(then, self.spec.hidden),
            to=self.inputs,
            columns=self.spec.hidden,
            added_stride=0 if added is None else added.rows.stride(0),
            post_eps=0.0 if post is None else post.eps,
            eps=0.0 if then is None else then.eps,
            scale=None
            if added is None or added.scale is None
            else self._weights.floats(added.scale).data_ptr(),
            raw=int(then is None),
        )

    def product(self, linears: Sequence[Linear], output: torch.Tensor | None = None) -> Entry:
        """The inputs times up to four weights, side by side, into the outputs."""
        buffers = self._buffers
        to = buffers.outputs if output is None else output
        record = records.Product(
            source=self.inputs,
            output=to.data_ptr(),
            stride=to.stride(0),
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

    def head(self) -> list[Entry]:
        """The inputs times the head, into the logits."""
        logits, cap = self._buffers.logits, self.spec.logit_cap
        found = [self.product([Linear(self.spec.head)], logits)]
        if cap is not None:
            record = records.Cap(logits.data_ptr(), logits.stride(0), self.spec.vocabulary, cap, 0)
            found.append((Kind.CAP, record))
        return found

    def gate(self, activation: Activation, width: int, ups: torch.Tensor | None = None) -> Entry:
        """``activation(outputs) * ups`` into the inputs; None takes what follows the gates."""
        outputs = self._buffers.outputs
        ups = outputs[:, width:] if ups is None else ups
        return Kind.GATE, records.Gate(
            gates=outputs.data_ptr(),
            ups=ups.data_ptr(),
            to=self.inputs,
            stride=outputs.stride(0),
            up_stride=ups.stride(0),
            columns=width,
            gelu=int(activation is Activation.GELU_TANH),
            copies=1,
        )

    def norm(self, norm: Norm | None, width: int) -> int | None:
        """The address of a norm's factors over ``width`` elements, None for no norm."""
        return None if norm is None else self._weights.norm(norm, width).data_ptr()
