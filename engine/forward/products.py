"""Products of activations and weights, behind one Protocol, and their float32 reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import torch

from engine.forward.weights import Weights
from engine.models.spec import (
    DeltaSpec,
    ExpertsSpec,
    FeedForwardSpec,
    Linear,
    Mixer,
    ModelSpec,
    RowRuns,
)


class Products(Protocol):
    """Whatever multiplies rows by a checkpoint's weights; used from the engine thread only."""

    def multiply(self, x: torch.Tensor, linear: Linear) -> torch.Tensor:
        """``x @ weight.T + bias``.

        Args:
            x: [rows, in] float32, contiguous. The same tensor object may be passed several times
                in a row (query, key, value); it is not changed between those calls.

        Returns:
            [rows, out] float32, contiguous. The caller may overwrite it and keeps it no longer
            than until the same ``linear`` is multiplied again.
        """

    def close(self) -> None:
        """Free the weights and scratch; may be repeated."""


class DequantizedProducts:
    """Every weight decoded to float32 once and kept: slow, large, and what others are judged by.

    Owns the decoded weights. A tensor that several products share (a stack of experts, a fused
    projection) is decoded once; products of one run of its rows are views of it.
    """

    def __init__(
        self, spec: ModelSpec, weights: Weights, made: Callable[[int], None] | None = None
    ) -> None:
        """Decode all weights of ``spec``; ``made`` is told the bytes after each tensor."""
        self._transposed: dict[Linear, torch.Tensor] = {}
        self._biases: dict[Linear, torch.Tensor] = {}
        sharing: dict[str, dict[Linear, None]] = {}
        for linear in linears(spec):
            sharing.setdefault(linear.weight, {})[linear] = None
            if linear.bias is not None:
                self._biases[linear] = _cut(weights.vector(linear.bias), linear.rows)
        for parts in sharing.values():
            self._transposed |= {part: rows.t() for part, rows in _decoded(weights, list(parts))}
            if made is not None:
                made(4 * sum(self._transposed[part].numel() for part in parts))

    def multiply(self, x: torch.Tensor, linear: Linear) -> torch.Tensor:
        """See ``Products.multiply``."""
        weight = self._transposed[linear]
        if linear.bias is None:
            return torch.mm(x, weight)
        return torch.addmm(self._biases[linear], x, weight)

    def close(self) -> None:
        """Free the weights; may be repeated."""
        self._transposed.clear()
        self._biases.clear()


def _decoded(weights: Weights, sharing: Sequence[Linear]) -> Iterator[tuple[Linear, torch.Tensor]]:
    """[out, in] of products that share a tensor; views of it where they are one run of its rows."""
    scattered = [linear for linear in sharing if len(linear.rows or ()) > 1]
    if len(scattered) < len(sharing):
        whole = weights.whole(sharing[0].weight)
        matrix = whole.view(-1, whole.shape[-1])
    for linear in sharing:
        yield linear, weights.linear(linear) if linear in scattered else _cut(matrix, linear.rows)


def _cut(rows: torch.Tensor, runs: RowRuns | None) -> torch.Tensor:
    """Some runs of rows; a view where there is one."""
    if runs is None:
        return rows
    parts = [rows[first : first + count] for first, count in runs]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def linears(spec: ModelSpec) -> tuple[Linear, ...]:
    """Every product of a model in the order of computation, the head last."""
    found: list[Linear] = []
    for layer in spec.layers:
        found += _mixer_linears(layer.mixer)
        for branch in layer.branches:
            found += _body_linears(branch.body)
            found += [] if branch.gate is None else [branch.gate]
        if layer.per_layer is not None:
            found += [layer.per_layer.gate, layer.per_layer.project]
    if spec.per_layer is not None:
        found.append(spec.per_layer.projection)
    return (*found, Linear(spec.head))


def _mixer_linears(mixer: Mixer) -> list[Linear]:
    if isinstance(mixer, DeltaSpec):
        return [mixer.mixed, mixer.gate, mixer.beta, mixer.alpha, mixer.output]
    own = (mixer.query, mixer.key, mixer.value, mixer.gate, mixer.output)
    return [linear for linear in own if linear is not None]


def _body_linears(body: FeedForwardSpec | ExpertsSpec) -> list[Linear]:
    if isinstance(body, FeedForwardSpec):
        return [body.gate, body.up, body.down]
    inner = [linear for expert in body.experts for linear in _body_linears(expert)]
    return [body.router, *inner]
