"""Launches over a prompt chunk: consecutive rows of one lane, products on tensor cores.

Used from the engine thread only. Weights are unpacked to bfloat16 into scratch, one at a time, and
multiplied from there; rows are bfloat16 between float32 residuals. A row's bits do not depend on
how many rows there are.
"""

from __future__ import annotations

import torch

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
    COUNTS,
    DELTA,
    EXPERT_OUTPUTS,
    EXPERT_WEIGHTS,
    INNER,
    JOINED,
    NORMED,
    ORDER,
    PAIRS,
    PLAIN,
    QUERY,
    ROUTED,
    STARTS,
    UNPACKED,
)
from engine.gpu.rows import DeviceRows
from engine.gpu.step import Places, split_delta
from engine.gpu.walk import Added, RowLaunches, run_layers
from engine.gpu.workspace import Workspace
from kernels.delta_prompt.launch import delta_prompt, prompt_scratch
from kernels.expert_prompt.launch import expert_prompt
from kernels.gated.launch import gated_prompt
from kernels.mixture.launch import order_pairs, route, sum_experts
from kernels.norm.launch import norm_prompt
from kernels.packed.weight import DenseWeight, Weight
from kernels.prompt_attention.launch import prompt_attention
from kernels.prompt_product.launch import prompt_product
from kernels.rotary.launch import rotary_prompt
from kernels.unpack.launch import unpack, unpack_rows

HALF = torch.bfloat16


class ChunkOperations(RowLaunches[torch.Tensor]):
    """Implements ``engine.gpu.walk.Operations`` for one chunk's rows; made for each chunk."""

    def __init__(
        self,
        model: ModelWeights,
        places: Places,
        workspace: Workspace,
        facts: DeviceRows,
        rows: range,
        *,
        slot: int | None,
    ) -> None:
        """Take absolute positions and the lane's slot; ids and block table are in ``facts``."""
        super().__init__(workspace, len(rows), model.spec.hidden)
        self._model = model
        self._places = places
        self._facts = facts
        self._positions = rows
        self._slot = slot

    def run(self) -> Added:
        """From the ids to the last layer; returns what the residual still gains."""
        ids = self._facts.ids[: self._rows]
        unpack_rows(self._model.embedding, ids, self.residual, self._model.spec.embedding_scale)
        return run_layers(self, self._model.layers)

    def normed(self, norm: NormWeight, added: Added, *, keeps_floats: bool = False) -> torch.Tensor:
        """See ``Operations``."""
        out = self._halves(NORMED, self._hidden)
        plain = self._scratch.view(PLAIN, (self._rows, self._hidden)) if keeps_floats else None
        self._norm(self.residual, norm, added, out, plain)
        return out

    def joint(self, inner: torch.Tensor, joint: Joint) -> torch.Tensor:
        """See ``Operations``."""
        joined = self._halves(JOINED, joint.columns)
        self._multiply(inner, joint, joined, add=False)
        return joined

    def attend(self, layer: Attention, joined: torch.Tensor) -> torch.Tensor:
        """See ``Operations``."""
        spec, first = layer.spec, self._positions.start
        pages = self._places.pages(spec)
        table = self._facts.tables[spec.group][0]
        width = spec.head_count * spec.head_dim
        query = self._scratch.view(QUERY, (self._rows, spec.head_count, spec.head_dim), HALF)
        rotary_prompt(
            joined,
            layer.columns,
            layer.norms,
            layer.turns,
            first,
            *pages,
            table,
            query,
        )
        out = self._halves(INNER, width)
        prompt_attention(
            query,
            *pages,
            table,
            first,
            out,
            window=spec.window,
            scale=spec.scale,
            gate=None if layer.gate is None else joined[:, layer.gate : layer.gate + width],
        )
        return out

    def advance(self, layer: Delta, joined: torch.Tensor) -> torch.Tensor:
        """See ``Operations``."""
        spec, slot = layer.spec, self._slot
        states, tails = self._places.recurrent_state(spec)
        if slot is None:
            raise InvariantBroken("Rows of a recurrent model were given without a slot.")
        mixed, gate, beta, alpha = split_delta(layer, joined)
        out = self._halves(INNER, spec.value_head_count * spec.value_dim)
        delta_prompt(
            mixed,
            gate,
            beta,
            alpha,
            layer.weights,
            states,
            tails,
            slot,
            prompt_scratch(self._rows, layer.weights, self._scratch.whole(DELTA)),
            out,
        )
        return out

    def gated(self, joined: torch.Tensor, body: FeedForward) -> torch.Tensor:
        """See ``Operations``."""
        out = self._halves(INNER, body.width)
        gated_prompt(
            joined[:, : body.width], joined[:, body.width :], out, activation=body.activation.value
        )
        return out

    def experts(self, inner: torch.Tensor, body: Mixture, into: torch.Tensor) -> None:
        """See ``Operations``."""
        active, width, count = body.spec.active_count, body.width, len(body.spec.experts)
        pairs = self._rows * active
        weights, chosen = self._routed(body)
        order = self._scratch.view(ORDER, (pairs,), torch.int32)
        starts = self._scratch.view(STARTS, (count + 1,), torch.int32)
        order_pairs(chosen, order, starts, self._scratch.whole(COUNTS))
        gate, up = self._scratch.view(JOINED, (2, pairs, width), HALF)
        for stack, out in ((body.gate, gate), (body.up, up)):
            expert_prompt(
                inner, self._stack(stack, count), order, starts, out, rows_per_pair=active
            )
        fed = self._scratch.view(PAIRS, (pairs, width), HALF)
        gated_prompt(gate, up, fed, activation=body.activation.value)
        outputs = self._scratch.view(EXPERT_OUTPUTS, (pairs, self._hidden), HALF)
        expert_prompt(fed, self._stack(body.down, count), order, starts, outputs, rows_per_pair=1)
        sum_experts(outputs.view(self._rows, active, self._hidden), weights, into)

    def add_normed(self, into: torch.Tensor, value: torch.Tensor, norm: NormWeight) -> None:
        """See ``Operations``; the norm of the sum is made too, and not read."""
        unread = self._halves(NORMED, self._hidden)
        self._norm(into, NormWeight(None, norm.eps), Added(value, norm), unread, None)

    def _halves(self, name: str, columns: int) -> torch.Tensor:
        return self._scratch.view(name, (self._rows, columns), HALF)

    def _routed(self, body: Mixture) -> tuple[torch.Tensor, torch.Tensor]:
        """Weights [rows, active] float32 and experts [rows, active] int32."""
        rows, active = self._rows, body.spec.active_count
        plain = self._scratch.view(PLAIN, (rows, self._hidden))
        if body.router_norm is not None:
            unread = self._halves(INNER, self._hidden)
            self._norm(self.residual, body.router_norm, Added(), unread, plain)
        logits = self._scratch.view(ROUTED, (rows, len(body.spec.experts)))
        prompt_product(plain, body.router, logits, bias=body.router_bias)
        weights = self._scratch.view(EXPERT_WEIGHTS, (rows, active))
        chosen = self._scratch.view(CHOSEN, (rows, active), torch.int32)
        route(logits, body.scales, weights, chosen)
        return weights, chosen

    def _norm(
        self,
        x: torch.Tensor,
        norm: NormWeight,
        added: Added,
        out: torch.Tensor,
        plain: torch.Tensor | None,
    ) -> None:
        norm_prompt(
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

    def _multiply(self, inner: torch.Tensor, joint: Joint, out: torch.Tensor, *, add: bool) -> None:
        for part in joint.parts:
            columns = out[:, part.first : part.first + part.weight.rows]
            prompt_product(inner, self._unpacked(part.weight), columns, bias=part.bias, add=add)

    def _unpacked(self, weight: Weight) -> torch.Tensor:
        """A weight in bfloat16: [rows, columns], in scratch unless it is stored so."""
        if isinstance(weight, DenseWeight) and weight.values.dtype is HALF:
            return weight.values
        scratch = self._scratch.view(UNPACKED, (weight.rows, weight.columns), HALF)
        unpack(weight, 0, scratch)
        return scratch

    def _stack(self, stack: Weight, count: int) -> torch.Tensor:
        """All experts' rows unpacked: [expert, rows, columns]."""
        return self._unpacked(stack).view(count, stack.rows // count, stack.columns)
