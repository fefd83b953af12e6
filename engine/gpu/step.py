"""Launches over generated rows: one row a stream, up to ``MOST_ROWS`` of them.

Used from the engine thread only. Everything is written into scratch that the caller owns, so that a
step can be recorded as a CUDA graph; what differs from one step to the next is read on the device.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.cache.kv import KvArena
from engine.cache.recurrent import RecurrentArena
from engine.errors import InvariantBroken
from engine.gpu.layers import (
    Attention,
    Delta,
    FeedForward,
    Joint,
    Mixture,
    ModelWeights,
    NormWeight,
)
from engine.gpu.names import (
    CHOSEN,
    EXPERT_OUTPUTS,
    EXPERT_WEIGHTS,
    INNER,
    JOINED,
    LOGITS,
    NORMED,
    PARTIALS,
    PLAIN,
    QUERY,
    READ,
    ROUTED,
)
from engine.gpu.rows import DeviceRows
from engine.gpu.walk import Added, RowLaunches, run_layers
from engine.gpu.workspace import Workspace
from engine.models.spec import AttentionSpec, DeltaSpec
from kernels.delta_step.launch import delta_step
from kernels.draw.launch import soft_cap
from kernels.gated.launch import gated_step
from kernels.mixture.launch import route, sum_experts
from kernels.norm.launch import norm_step
from kernels.packed.weight import DenseWeight
from kernels.rotary.launch import rotary_step
from kernels.rows import QuantizedRows
from kernels.step_attention.launch import step_attention
from kernels.step_product.launch import Product, step_experts, step_product, step_products
from kernels.unpack.launch import unpack_rows


@dataclass(frozen=True, slots=True)
class Places:
    """What rows are read from and written to beside scratch; the arenas are the caller's."""

    kv: KvArena
    recurrent: RecurrentArena | None

    def pages(self, spec: AttentionSpec) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Pages and scales of the layer that owns an attention layer's keys and values."""
        kv, group, slot = self.kv, spec.group, spec.slot
        return kv.tensors[group][slot], kv.scales[group][slot] if kv.scales else None

    def recurrent_state(self, spec: DeltaSpec) -> tuple[torch.Tensor, torch.Tensor]:
        """States [slot, value_head, key_dim, value_dim] and tails [slot, size - 1, channels]."""
        if self.recurrent is None:
            raise InvariantBroken("Rows of a recurrent model were given without a state.")
        return self.recurrent.states[:, spec.slot], self.recurrent.tails[:, spec.slot]


class StepOperations(RowLaunches[QuantizedRows]):
    """Implements ``engine.gpu.walk.Operations`` for ``rows`` generated rows."""

    def __init__(
        self,
        model: ModelWeights,
        places: Places,
        workspace: Workspace,
        facts: DeviceRows,
        rows: int,
    ) -> None:
        super().__init__(workspace, rows, model.spec.hidden)
        self._model = model
        self._places = places
        self._facts = facts
        self._tables = [table[:rows] for table in facts.tables]
        self._positions = facts.positions[:rows]
        self._slots = facts.slots[:rows]

    def run(self) -> torch.Tensor:
        """From the ids to the logits: [rows, vocabulary] float32, in scratch."""
        spec = self._model.spec
        ids = self._facts.ids[: self._rows]
        unpack_rows(self._model.embedding, ids, self.residual, spec.embedding_scale)
        added = run_layers(self, self._model.layers)
        return self.logits(added)

    def logits(self, added: Added) -> torch.Tensor:
        """The head over the residual, once ``added`` is in it."""
        spec = self._model.spec
        inner = self.normed(self._model.final_norm, added)
        logits = self._scratch.view(LOGITS, (self._rows, spec.vocabulary))
        step_product(inner, self._model.head, logits)
        if spec.logit_cap is not None:
            soft_cap(logits, spec.logit_cap)
        return logits

    def normed(
        self, norm: NormWeight, added: Added, *, keeps_floats: bool = False
    ) -> QuantizedRows:
        """See ``Operations``."""
        out = self._scratch.rows(NORMED, self._rows, self._hidden)
        self._norm(self.residual, norm, added, out, self._plain() if keeps_floats else None)
        return out

    def joint(self, inner: QuantizedRows, joint: Joint) -> torch.Tensor:
        """See ``Operations``."""
        joined = self._scratch.view(JOINED, (self._rows, joint.columns))
        self._multiply(inner, joint, joined, add=False)
        return joined

    def attend(self, layer: Attention, joined: torch.Tensor) -> QuantizedRows:
        """See ``Operations``."""
        spec, tables = layer.spec, self._tables[layer.spec.group]
        pages = self._places.pages(spec)
        width = spec.head_count * spec.head_dim
        query = self._scratch.view(QUERY, (self._rows, spec.head_count, spec.head_dim))
        rotary_step(
            joined,
            layer.columns,
            layer.norms,
            layer.turns,
            self._positions,
            *pages,
            tables,
            query,
        )
        out = self._scratch.rows(INNER, self._rows, width)
        step_attention(
            query,
            *pages,
            tables,
            self._positions,
            self._scratch.whole(PARTIALS).view(torch.float32),
            out,
            window=spec.window,
            scale=spec.scale,
            gate=None if layer.gate is None else joined[:, layer.gate : layer.gate + width],
        )
        return out

    def advance(self, layer: Delta, joined: torch.Tensor) -> QuantizedRows:
        """See ``Operations``."""
        spec = layer.spec
        states, tails = self._places.recurrent_state(spec)
        values = spec.value_head_count * spec.value_dim
        mixed, gate, beta, alpha = split_delta(layer, joined)
        out = self._scratch.rows(INNER, self._rows, values)
        delta_step(
            mixed,
            gate,
            beta,
            alpha,
            layer.weights,
            states,
            tails,
            self._slots,
            self._scratch.view(READ, (self._rows, spec.value_head_count, spec.value_dim)),
            out,
        )
        return out

    def gated(self, joined: torch.Tensor, body: FeedForward) -> QuantizedRows:
        """See ``Operations``."""
        out = self._scratch.rows(INNER, self._rows, body.width)
        gated_step(
            joined[:, : body.width], joined[:, body.width :], out, activation=body.activation.value
        )
        return out

    def experts(self, inner: QuantizedRows, body: Mixture, into: torch.Tensor) -> None:
        """See ``Operations``."""
        rows, active, width = self._rows, body.spec.active_count, body.width
        weights, chosen = self._routed(body)
        gate, up = self._scratch.view(JOINED, (2, rows, active, width))
        step_experts(inner, body.gate, chosen, gate)
        step_experts(inner, body.up, chosen, up)
        pairs = self._scratch.rows(INNER, rows * active, width)
        gated_step(
            gate.view(-1, width), up.view(-1, width), pairs, activation=body.activation.value
        )
        outputs = self._scratch.view(EXPERT_OUTPUTS, (rows, active, self._hidden))
        step_experts(pairs, body.down, chosen, outputs)
        sum_experts(outputs, weights, into)

    def add_normed(self, into: torch.Tensor, value: torch.Tensor, norm: NormWeight) -> None:
        """See ``Operations``; the norm of the sum is made too, and not read."""
        unread = self._scratch.rows(NORMED, self._rows, self._hidden)
        self._norm(into, NormWeight(None, norm.eps), Added(value, norm), unread, None)

    def _plain(self) -> torch.Tensor:
        return self._scratch.view(PLAIN, (self._rows, self._hidden))

    def _routed(self, body: Mixture) -> tuple[torch.Tensor, torch.Tensor]:
        """Weights [rows, active] float32 and experts [rows, active] int32."""
        rows, active = self._rows, body.spec.active_count
        inner = self._scratch.rows(NORMED, rows, self._hidden)
        if body.router_norm is not None:
            inner = self._scratch.rows(INNER, rows, self._hidden)
            self._norm(self.residual, body.router_norm, Added(), inner, None)
        logits = self._scratch.view(ROUTED, (rows, len(body.spec.experts)))
        step_product(inner, DenseWeight(body.router), logits, bias=body.router_bias)
        weights = self._scratch.view(EXPERT_WEIGHTS, (rows, active))
        chosen = self._scratch.view(CHOSEN, (rows, active), torch.int32)
        route(logits, body.scales, weights, chosen)
        return weights, chosen

    def _norm(
        self,
        x: torch.Tensor,
        norm: NormWeight,
        added: Added,
        out: QuantizedRows,
        plain: torch.Tensor | None,
    ) -> None:
        norm_step(
            x,
            norm.weight,
            norm.eps,
            out,
            added=added.rows,
            added_weight=None if added.norm is None else added.norm.weight,
            added_eps=None if added.norm is None else added.norm.eps,
            scale=added.scale,
            plain=plain,
        )

    def _multiply(
        self, inner: QuantizedRows, joint: Joint, out: torch.Tensor, *, add: bool
    ) -> None:
        products = [
            Product(part.weight, out[:, part.first : part.first + part.weight.rows], part.bias)
            for part in joint.parts
        ]
        step_products(inner, products, add=add)


def split_delta(layer: Delta, joined: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """mixed, gate, beta and alpha of a delta layer's joint output, as views."""
    spec, heads = layer.spec, layer.spec.value_head_count
    values = heads * spec.value_dim
    ends = (0, spec.channels, spec.channels + values, spec.channels + values + heads)
    return tuple(
        joined[:, first:end] for first, end in zip(ends, (*ends[1:], ends[-1] + heads), strict=True)
    )
