"""A model's rows, layer after layer, over whatever computes them.

``Operations`` are the launches: of generated rows (``engine.gpu.step``) or of a prompt chunk
(``engine.gpu.chunk``). This file alone knows their order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

import torch

from engine.gpu.layers import (
    Attention,
    BranchWeights,
    Delta,
    FeedForward,
    Joint,
    LayerWeights,
    Mixture,
    NormWeight,
)
from engine.gpu.names import FED, RESIDUAL, ROW_GATE, SEPARATE, TOTAL
from engine.gpu.workspace import Workspace
from kernels.gated.launch import add_gated

Inner = TypeVar("Inner")
"""Activations as products take them in: 16-bit numbers in two planes, or bfloat16."""


@dataclass(frozen=True, slots=True)
class Added:
    """What the residual gains before it is read next: ``(x + norm(rows)) * scale``.

    Attributes:
        rows: [rows, hidden]; None where products have added theirs already.
    """

    rows: torch.Tensor | None = None
    norm: NormWeight | None = None
    scale: float = 1.0


NOTHING = Added()


class Operations(Protocol[Inner]):
    """Launches over the rows at hand, each into scratch that holds until its next use."""

    @property
    def residual(self) -> torch.Tensor:
        """x: [rows, hidden] float32."""

    def normed(self, norm: NormWeight, added: Added, *, keeps_floats: bool = False) -> Inner:
        """Bring the residual up to date, then its norm; in float32 too where a router reads it."""

    def joint(self, inner: Inner, joint: Joint) -> torch.Tensor:
        """Products side by side: [rows, columns]."""

    def output(self, inner: Inner, joint: Joint, into: torch.Tensor) -> None:
        """``into`` [rows, hidden] gains a product."""

    def separate(self, inner: Inner, joint: Joint) -> torch.Tensor:
        """A product with ``hidden`` columns, in scratch."""

    def attend(self, layer: Attention, joined: torch.Tensor) -> Inner:
        """K and V into the pages, and what the rows take in of them."""

    def advance(self, layer: Delta, joined: torch.Tensor) -> Inner:
        """The recurrent state moved over the rows, and what they read of it."""

    def gated(self, joined: torch.Tensor, body: FeedForward) -> Inner:
        """``activation(gate) * up`` of gate | up."""

    def experts(self, inner: Inner, body: Mixture, into: torch.Tensor) -> None:
        """``into`` gains the chosen experts' outputs, weighted."""

    def row_gate(self, inner: Inner, joint: Joint) -> torch.Tensor:
        """One number a row: [rows, 1]."""

    def add_gated(self, into: torch.Tensor, value: torch.Tensor, gate: torch.Tensor) -> None:
        """``into += value * sigmoid(gate)``."""

    def add_normed(self, into: torch.Tensor, value: torch.Tensor, norm: NormWeight) -> None:
        """``into += norm(value)``."""

    def zeros(self, place: int) -> torch.Tensor:
        """Zeros [rows, hidden] float32, for the sum of branches (place 0) or one branch (1)."""


class RowLaunches(ABC, Generic[Inner]):
    """What both kinds of ``Operations`` do alike; the scratch is the caller's."""

    def __init__(self, scratch: Workspace, rows: int, hidden: int) -> None:
        self._scratch = scratch
        self._rows = rows
        self._hidden = hidden

    @property
    def residual(self) -> torch.Tensor:
        """See ``Operations``."""
        return self._scratch.view(RESIDUAL, (self._rows, self._hidden))

    def output(self, inner: Inner, joint: Joint, into: torch.Tensor) -> None:
        """See ``Operations``."""
        self._multiply(inner, joint, into, add=True)

    def separate(self, inner: Inner, joint: Joint) -> torch.Tensor:
        """See ``Operations``."""
        return self._alone(inner, joint, SEPARATE)

    def row_gate(self, inner: Inner, joint: Joint) -> torch.Tensor:
        """See ``Operations``."""
        return self._alone(inner, joint, ROW_GATE)

    def add_gated(self, into: torch.Tensor, value: torch.Tensor, gate: torch.Tensor) -> None:
        """See ``Operations``."""
        add_gated(into, value, gate)

    def zeros(self, place: int) -> torch.Tensor:
        """See ``Operations``."""
        return self._scratch.view((TOTAL, FED)[place], (self._rows, self._hidden)).zero_()

    def _alone(self, inner: Inner, joint: Joint, name: str) -> torch.Tensor:
        out = self._scratch.view(name, (self._rows, joint.columns))
        self._multiply(inner, joint, out, add=False)
        return out

    @abstractmethod
    def _multiply(self, inner: Inner, joint: Joint, out: torch.Tensor, *, add: bool) -> None:
        """Products side by side, written to ``out`` or added to it."""


def run_layers(operations: Operations[Inner], layers: tuple[LayerWeights, ...]) -> Added:
    """Every layer in order; returns what the residual gains at last."""
    added = NOTHING
    for layer in layers:
        normed = operations.normed(layer.mixer_norm, added)
        joined = operations.joint(normed, layer.mixer.inputs)
        match layer.mixer:
            case Attention() as mixer:
                inner = operations.attend(mixer, joined)
            case Delta() as mixer:
                inner = operations.advance(mixer, joined)
        added = _put(operations, inner, layer.mixer.output, layer.mixer_post_norm)
        added = replace(_branches(operations, layer, added), scale=layer.scale)
    return added


def _put(
    operations: Operations[Inner], inner: Inner, joint: Joint, norm: NormWeight | None
) -> Added:
    """A product into the residual: at once, or through its norm when the residual is read next."""
    if norm is None:
        operations.output(inner, joint, operations.residual)
        return NOTHING
    return Added(operations.separate(inner, joint), norm)


def _branches(operations: Operations[Inner], layer: LayerWeights, added: Added) -> Added:
    first = layer.branches[0]
    if len(layer.branches) == 1 and first.gate is None and isinstance(first.body, FeedForward):
        normed = operations.normed(first.norm, added)
        inner = operations.gated(operations.joint(normed, first.body.inputs), first.body)
        norm = first.post_norm or layer.branches_post_norm
        return _put(operations, inner, first.body.output, norm)
    if _adds_at_once(layer):
        normed = operations.normed(first.norm, added, keeps_floats=True)
        for branch in layer.branches:
            _branch(operations, branch, normed, operations.residual)
        return NOTHING
    total = operations.zeros(0)
    for branch in layer.branches:
        normed = operations.normed(branch.norm, added, keeps_floats=True)
        _branch(operations, branch, normed, total)
        added = NOTHING
    return Added(total, layer.branches_post_norm)


def _adds_at_once(layer: LayerWeights) -> bool:
    """Whether all branches read one norm of the residual and none has a norm of its own.

    They may then add to the residual itself: nothing reads it once that norm is taken.
    """
    norms = [layer.branches_post_norm, *(branch.post_norm for branch in layer.branches)]
    bodies = [branch.body for branch in layer.branches]
    reads = [body.router_norm for body in bodies if isinstance(body, Mixture)]
    same = all(branch.norm == layer.branches[0].norm for branch in layer.branches)
    return same and all(norm is None for norm in (*norms, *reads))


def _branch(
    operations: Operations[Inner], branch: BranchWeights, normed: Inner, into: torch.Tensor
) -> None:
    """``into`` gains one branch."""
    norm = branch.post_norm
    match branch.body:
        case Mixture() as body:
            own = into if norm is None else operations.zeros(1)
            operations.experts(normed, body, own)
            if norm is not None:
                operations.add_normed(into, own, norm)
        case FeedForward() as body:
            gate = None if branch.gate is None else operations.row_gate(normed, branch.gate)
            inner = operations.gated(operations.joint(normed, body.inputs), body)
            if gate is None and norm is None:
                operations.output(inner, body.output, into)
                return
            value = operations.separate(inner, body.output)
            if gate is not None:
                operations.add_gated(into, value, gate)
            elif norm is not None:
                operations.add_normed(into, value, norm)
