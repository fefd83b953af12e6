"""One chunk of rows through a ``ModelSpec`` in torch, eagerly, with K and V in pages.

The residual stream, norms, softmax and logits are float32; the products are whatever ``Products``
does. Rows of a chunk lie within one page, so the cut of a prompt into chunks is the page grid and
a row's bits are a function of the prefix.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import torch
from torch.nn import functional

from engine.cache.lane import Lane
from engine.cache.pages import PAGE_ROWS
from engine.errors import InvariantBroken
from engine.forward.attention import RowBlock, attend, row_blocks
from engine.forward.products import Products
from engine.forward.rotation import Rotation, rotation
from engine.forward.weights import Weights
from engine.models.parts import attention_of, feed_forward_of
from engine.models.spec import (
    Activation,
    AttentionSpec,
    FeedForwardSpec,
    LayerSpec,
    Linear,
    ModelSpec,
    Norm,
    RopeSpec,
)


class Wanted(Enum):
    """Which rows of a chunk need logits; what nobody wants is not computed."""

    NOTHING = "nothing"
    LAST = "last"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class _Rows:
    """Consecutive rows of one lane and what all layers share about them.

    Attributes:
        positions: absolute, all in one page.
        pages: page id that the rows are written to, one a group.
        blocks: what the rows attend to, one entry a group.
        rotations: by ``id`` of the layer's rope; the spec keeps the rules alive.
    """

    positions: range
    pages: tuple[int, ...]
    blocks: tuple[tuple[RowBlock, ...], ...]
    rotations: dict[int, Rotation]

    @property
    def slots(self) -> slice:
        """Where in its page each row lies."""
        first = self.positions.start % PAGE_ROWS
        return slice(first, first + len(self.positions))


class TorchForward:
    """Computes rows of one model; used from the engine thread only.

    Owns the decoded norm weights. The arenas ([layer, page, 2, kv_head, slot, head_dim], one a
    group, any float dtype) and the products belong to the caller.
    """

    def __init__(
        self,
        spec: ModelSpec,
        weights: Weights,
        products: Products,
        arenas: Sequence[torch.Tensor],
    ) -> None:
        self._spec = spec
        self._weights = weights
        self._products = products
        self._arenas = tuple(arenas)
        self._norms = {norm: weights.norm(norm) for norm in _norms(spec)}
        self._repeats = _repeats(spec)
        self._ropes = {
            id(rope): rope for layer in spec.attentions if (rope := layer.rope) is not None
        }
        self._head = Linear(spec.head)

    @torch.inference_mode()
    def rows(self, lane: Lane, ids: Sequence[int], position: int, wanted: Wanted) -> torch.Tensor:
        """Compute rows ``position .. position + len(ids)`` and write their K and V.

        All rows must lie in one page; the lane holds pages for them, and every earlier row that
        they attend to was computed.

        Returns:
            float32 logits [rows, vocabulary] with 0, 1 or ``len(ids)`` rows, as ``wanted`` says.
        """
        if not ids or position // PAGE_ROWS != (position + len(ids) - 1) // PAGE_ROWS:
            raise InvariantBroken(f"{len(ids)} rows from position {position} are not in one page.")
        positions = range(position, position + len(ids))
        rows = self._facts(lane, positions)
        x = self._weights.rows(self._spec.embedding, ids)
        if self._spec.embedding_scale != 1.0:
            x.mul_(self._spec.embedding_scale)
        for layer in self._spec.layers[:-1]:
            x = self._block(x, layer, rows, rows)
        last = self._spec.layers[-1]
        match wanted:
            case Wanted.NOTHING:
                self._store(self._norm(x, last.mixer_norm), attention_of(last), rows)
                return x.new_empty(0, self._spec.vocabulary)
            case Wanted.LAST:
                tail = self._facts(lane, positions[-1:])
                x = self._block(x, last, rows, tail)
            case Wanted.ALL:
                x = self._block(x, last, rows, rows)
        return self._products.multiply(self._norm(x, self._spec.final_norm), self._head)

    def _facts(self, lane: Lane, positions: range) -> _Rows:
        tables = [lane.table(group) for group in range(len(self._spec.groups))]
        return _Rows(
            positions=positions,
            pages=tuple(int(table[positions.start // PAGE_ROWS]) for table in tables),
            blocks=tuple(
                row_blocks(table, positions, group.window, repeat)
                for table, group, repeat in zip(
                    tables, self._spec.groups, self._repeats, strict=True
                )
            ),
            rotations={key: rotation(rope, positions) for key, rope in self._ropes.items()},
        )

    def _block(self, x: torch.Tensor, layer: LayerSpec, rows: _Rows, asking: _Rows) -> torch.Tensor:
        """One block; ``asking`` are the rows that go on, all of ``rows`` or its last one."""
        attention = attention_of(layer)
        normed = self._norm(x, layer.mixer_norm)
        self._store(normed, attention, rows)
        if asking is not rows:
            count = len(asking.positions)
            x, normed = x[-count:].clone(), normed[-count:]
        x.add_(self._post(self._attention(normed, attention, asking), layer.mixer_post_norm))
        normed = self._norm(x, layer.branches[0].norm)
        fed = self._feed_forward(normed, feed_forward_of(layer))
        return x.add_(self._post(fed, layer.branches_post_norm))

    def _store(self, normed: torch.Tensor, attention: AttentionSpec, rows: _Rows) -> None:
        """Write the rows' K and V into their page."""
        shape = (-1, attention.kv_head_count, 1, attention.head_dim)
        assert attention.key is not None and attention.value is not None
        key = self._products.multiply(normed, attention.key).view(shape)
        if attention.key_norm is not None:
            key = self._norm(key, attention.key_norm)
        page = self._arenas[attention.group][attention.slot, rows.pages[attention.group]]
        target = page[:, :, rows.slots].transpose(1, 2).unsqueeze(3)
        _rotate(key, target[0], attention.rope, rows)
        target[1].copy_(self._products.multiply(normed, attention.value).view(shape))

    def _attention(
        self, normed: torch.Tensor, attention: AttentionSpec, rows: _Rows
    ) -> torch.Tensor:
        kv_heads, head_dim = attention.kv_head_count, attention.head_dim
        query = self._products.multiply(normed, attention.query).view(
            len(rows.positions), kv_heads, -1, head_dim
        )
        if attention.query_norm is not None:
            query = self._norm(query, attention.query_norm)
        turned = query.new_empty(kv_heads, len(rows.positions), query.shape[2], head_dim)
        _rotate(query, turned.transpose(0, 1), attention.rope, rows)
        mixed = attend(
            turned.view(kv_heads, -1, head_dim),
            self._arenas[attention.group][attention.slot],
            rows.blocks[attention.group],
            attention.scale,
        )
        by_row = mixed.view(turned.shape).transpose(0, 1)
        return self._products.multiply(by_row.reshape(len(rows.positions), -1), attention.output)

    def _feed_forward(self, normed: torch.Tensor, spec: FeedForwardSpec) -> torch.Tensor:
        gate = self._products.multiply(normed, spec.gate)
        match spec.activation:
            case Activation.SILU:
                gate = functional.silu(gate, inplace=True)
            case Activation.GELU_TANH:
                gate = _gelu_tanh(gate)
        gate.mul_(self._products.multiply(normed, spec.up))
        return self._products.multiply(gate, spec.down)

    def _post(self, x: torch.Tensor, norm: Norm | None) -> torch.Tensor:
        return x if norm is None else self._norm(x, norm)

    def _norm(self, x: torch.Tensor, norm: Norm) -> torch.Tensor:
        weight = self._norms[norm]
        return functional.rms_norm(x, weight.shape, weight, norm.eps)


def _gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    """``x / 2 * (1 + tanh(z))`` as ``x * sigmoid(2 z)``, z = sqrt(2 / pi) * (x + 0.044715 x^3).

    The same function; torch's own takes three times as long on a CPU.
    """
    slope = 2.0 * (2.0 / math.pi) ** 0.5
    turn = (x * x).mul_(0.044715 * slope).add_(slope)
    return turn.mul_(x).sigmoid_().mul_(x)


def _rotate(heads: torch.Tensor, out: torch.Tensor, rope: RopeSpec | None, rows: _Rows) -> None:
    """Turn ``heads`` [rows, kv_head, head, head_dim] into ``out`` of any float dtype."""
    if rope is None:
        out.copy_(heads)
    elif out.dtype is torch.float32:
        rows.rotations[id(rope)].apply(heads, out)
    else:
        turned = torch.empty_like(heads)
        rows.rotations[id(rope)].apply(heads, turned)
        out.copy_(turned)


def _norms(spec: ModelSpec) -> list[Norm]:
    found: list[Norm | None] = [spec.final_norm]
    for layer in spec.layers:
        mixer = layer.mixer
        found += [layer.mixer_norm, layer.mixer_post_norm, layer.branches_post_norm]
        if isinstance(mixer, AttentionSpec):
            found += [mixer.query_norm, mixer.key_norm]
        found += [branch.norm for branch in layer.branches]
    return [norm for norm in found if norm is not None]


def _repeats(spec: ModelSpec) -> tuple[int, ...]:
    """Query heads a kv head, one entry a page group."""
    repeats = [1] * len(spec.groups)
    for attention in spec.attentions:
        repeats[attention.group] = attention.head_count // attention.kv_head_count
    return tuple(repeats)
