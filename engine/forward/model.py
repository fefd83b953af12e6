"""One chunk of rows through a ``ModelSpec`` in torch, eagerly, with K and V in pages.

The residual stream, norms, softmax, states and logits are float32; the products are whatever
``Products`` does. Rows of a chunk lie within one page, so the cut of a prompt into chunks is the
page grid and a row's bits are a function of the prefix.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import torch

from engine.cache.formats import PAGE_ROWS
from engine.cache.kv import KvArena
from engine.cache.lane import Lane
from engine.cache.recurrent import RecurrentArena
from engine.errors import InvariantBroken
from engine.forward.layers.attention import AttentionLayers
from engine.forward.layers.delta import DeltaLayers
from engine.forward.layers.feed_forward import FeedForwards
from engine.forward.layers.norms import Norms
from engine.forward.layers.per_layer import PerLayer
from engine.forward.layers.rows import RowFacts, Rows
from engine.forward.products import Products
from engine.forward.weights import Weights
from engine.models.spec import AttentionSpec, DeltaSpec, LayerSpec, Linear, ModelSpec

LayerInputs = Sequence[torch.Tensor]


class Wanted(Enum):
    """Which rows of a chunk need logits; what nobody wants is not computed."""

    NOTHING = "nothing"
    LAST = "last"
    ALL = "all"


class TorchForward:
    """Computes rows of one model; used from the engine thread only.

    Owns the decoded norms and other small tensors. The arena of K and V, in any format, the
    recurrent states and the products belong to the caller.
    """

    def __init__(
        self,
        spec: ModelSpec,
        weights: Weights,
        products: Products,
        kv: KvArena,
        recurrent: RecurrentArena | None = None,
    ) -> None:
        self._spec = spec
        self._weights = weights
        self._products = products
        self._norms = Norms(spec, weights)
        self._attention = AttentionLayers(self._norms, products, kv)
        self._delta = DeltaLayers(spec, weights, self._norms, products, recurrent)
        self._feed = FeedForwards(spec, weights, self._norms, products)
        self._per_layer = PerLayer(weights, self._norms, products)
        self._facts = RowFacts(spec)
        self._head = Linear(spec.head)
        self._scales = _scales(spec, weights)

    @torch.inference_mode()
    def rows(self, lane: Lane, ids: Sequence[int], position: int, wanted: Wanted) -> torch.Tensor:
        """Compute prompt rows ``position .. position + len(ids)``, and write K, V and states.

        All rows must lie in one page; the lane holds pages for them, and every earlier row was
        computed.

        Returns:
            float32 logits [rows, vocabulary] with 0, 1 or ``len(ids)`` rows, as ``wanted`` says.
        """
        if not ids or position // PAGE_ROWS != (position + len(ids) - 1) // PAGE_ROWS:
            raise InvariantBroken(f"{len(ids)} rows from position {position} are not in one page.")
        positions = range(position, position + len(ids))
        rows = self._facts.of(lane, positions, generated=False)
        match wanted:
            case Wanted.NOTHING:
                return self._logits(ids, rows, None)
            case Wanted.LAST if len(ids) > 1:
                return self._logits(
                    ids, rows, self._facts.of(lane, positions[-1:], generated=False)
                )
            case _:
                return self._logits(ids, rows, rows)

    @torch.inference_mode()
    def step(self, lane: Lane, token: int, position: int) -> torch.Tensor:
        """Compute one generated row after what the lane holds: [1, vocabulary] float32."""
        rows = self._facts.of(lane, range(position, position + 1), generated=True)
        return self._logits([token], rows, rows)

    def _logits(self, ids: Sequence[int], rows: Rows, asking: Rows | None) -> torch.Tensor:
        """``asking`` are the rows whose logits are wanted: all, the last one or none.

        From the last layer that writes something on, the other rows need not be computed.
        """
        x = self._weights.rows(self._spec.embedding, ids)
        if self._spec.embedding_scale != 1.0:
            x.mul_(self._spec.embedding_scale)
        made = self._spec.per_layer
        inputs = () if made is None else self._per_layer.inputs(made, ids, x)
        last = _last_writer(self._spec)
        for index in range(last):
            x = self._layer(x, index, rows, rows, inputs)
        if asking is None:
            self._write(x, self._spec.layers[last], rows)
            return x.new_empty(0, self._spec.vocabulary)
        x = self._layer(x, last, rows, asking, inputs)
        for index in range(last + 1, len(self._spec.layers)):
            x = self._layer(x, index, asking, asking, inputs)
        logits = self._products.multiply(self._norms.apply(x, self._spec.final_norm), self._head)
        cap = self._spec.logit_cap
        return logits if cap is None else logits.div_(cap).tanh_().mul_(cap)

    def _layer(
        self, x: torch.Tensor, index: int, rows: Rows, asking: Rows, inputs: LayerInputs
    ) -> torch.Tensor:
        """One layer; ``asking`` are the rows that go on, all of ``rows`` or its last one."""
        layer, count = self._spec.layers[index], len(asking.positions)
        normed = self._norms.apply(x, layer.mixer_norm)
        match layer.mixer:
            case AttentionSpec() as mixer:
                self._attention.store(normed, mixer, rows)
                mixed = self._attention.mix(normed[-count:], mixer, asking)
            case DeltaSpec() as mixer:
                read = self._delta.advance(normed, mixer, rows)
                mixed = self._delta.output(normed[-count:], read[:, -count:], mixer)
        if asking is not rows:
            x = x[-count:].clone()
        x.add_(self._norms.after(mixed, layer.mixer_post_norm))
        fed = self._feed.branches(x, layer)
        x.add_(self._norms.after(fed, layer.branches_post_norm))
        if layer.per_layer is not None:
            x.add_(self._per_layer.taken_in(x, inputs[index][-count:], layer.per_layer))
        return x if layer.scale is None else x.mul_(self._scales[layer.scale])

    def _write(self, x: torch.Tensor, layer: LayerSpec, rows: Rows) -> None:
        """Only what a layer leaves behind for later rows."""
        normed = self._norms.apply(x, layer.mixer_norm)
        match layer.mixer:
            case AttentionSpec() as mixer:
                self._attention.store(normed, mixer, rows)
            case DeltaSpec() as mixer:
                self._delta.advance(normed, mixer, rows)


def _last_writer(spec: ModelSpec) -> int:
    """The last layer that owns K and V or has a state."""
    return max(index for index, layer in enumerate(spec.layers) if _writes(layer))


def _writes(layer: LayerSpec) -> bool:
    return isinstance(layer.mixer, DeltaSpec) or layer.mixer.owns_kv


def _scales(spec: ModelSpec, weights: Weights) -> dict[str, float]:
    names = {layer.scale for layer in spec.layers if layer.scale is not None}
    return {name: float(weights.whole(name)) for name in names}
