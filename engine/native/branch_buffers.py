"""Scratch of a layer's second half: the sum of its branches, experts, per-layer inputs."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.models.spec import ExpertsSpec, LayerSpec, ModelSpec
from kernels.cpu.records import GROUP, Activations


class Codes:
    """Owns the int16 codes, scales and sums of a step's inputs."""

    def __init__(self, rows: int, columns: int) -> None:
        self._columns = columns
        self._codes = torch.zeros(rows, columns, dtype=torch.int16)
        self._scales_and_sums = torch.zeros(2, rows, columns // GROUP)

    @staticmethod
    def total_bytes(rows: int, columns: int) -> int:
        """Bytes of codes for ``rows`` inputs of ``columns``."""
        return rows * (2 * columns + 8 * (columns // GROUP))

    def inputs(self, values: torch.Tensor) -> Activations:
        """The record of inputs whose float values are ``values`` [row, column]."""
        return Activations(
            values.data_ptr(),
            self._codes.data_ptr(),
            self._scales_and_sums[0].data_ptr(),
            self._scales_and_sums[1].data_ptr(),
            self._columns,
            self._columns // GROUP,
        )


@dataclass(frozen=True, slots=True)
class BranchSizes:
    """Widths in elements a row; what a model has not is 0.

    Attributes:
        rows, step_rows: of a chunk and of a step.
        sums: hidden where some layer adds up branches.
        per_layer: what all layers together take in beside the residual.
        experts, active: the most of any layer.
        hidden, width: inputs and inner width of an expert.
    """

    rows: int
    step_rows: int
    sums: int
    per_layer: int
    experts: int
    active: int
    hidden: int
    width: int

    @property
    def total_bytes(self) -> int:
        """Bytes of all buffers."""
        a_pair = self.hidden + 3 * self.width + 3
        a_row = self.sums + self.per_layer + self.experts + 1 + self.active * a_pair
        starts = self.experts + 1 if self.experts else 0
        return 4 * (self.rows * a_row + starts) + Codes.total_bytes(
            self.step_rows * self.active, self.width
        )


def branch_sizes(spec: ModelSpec, rows: int, step_rows: int) -> BranchSizes:
    """What a model needs for chunks of ``rows`` and steps of ``step_rows``."""
    mixtures = [
        branch.body
        for layer in spec.layers
        for branch in layer.branches
        if isinstance(branch.body, ExpertsSpec)
    ]
    return BranchSizes(
        rows=rows,
        step_rows=step_rows,
        sums=spec.hidden if any(adds_up(layer) for layer in spec.layers) else 0,
        per_layer=0 if spec.per_layer is None else len(spec.layers) * spec.per_layer.width,
        experts=max((len(each.experts) for each in mixtures), default=0),
        active=max((each.active_count for each in mixtures), default=0),
        hidden=spec.hidden if mixtures else 0,
        width=max((each.experts[0].width for each in mixtures), default=0),
    )


def adds_up(layer: LayerSpec) -> bool:
    """Whether a layer's branches are summed apart from the residual."""
    first = layer.branches[0]
    normed_twice = first.post_norm is not None and layer.branches_post_norm is not None
    return len(layer.branches) > 1 or first.gate is not None or normed_twice


class BranchBuffers:
    """Owns the tensors.

    Attributes:
        sums: [row, hidden], of branches.
        gates: [row, 1], before the sigmoid.
        per_layer: [row, layer * width].
        logits: [row, expert], of a router.
        weights: [row, active]; ``choice`` is [2, row, active]: experts, then places.
        starts: [expert + 1], the first place of each expert.
        gathered, outputs, values: one row a pair of a row and one of its experts.
    """

    def __init__(self, sizes: BranchSizes) -> None:
        pairs = sizes.rows * sizes.active
        self.sizes = sizes
        self.sums = torch.zeros(sizes.rows, sizes.sums)
        self.gates = torch.zeros(sizes.rows, 1)
        self.per_layer = torch.zeros(sizes.rows, sizes.per_layer)
        self.logits = torch.zeros(sizes.rows, sizes.experts)
        self.weights = torch.zeros(sizes.rows, sizes.active)
        self.gathered = torch.zeros(pairs, sizes.hidden)
        self.outputs = torch.zeros(pairs, 2 * sizes.width)
        self.values = torch.zeros(pairs, sizes.width)
        self.choice = torch.zeros(2, sizes.rows, sizes.active, dtype=torch.int32)
        self.starts = torch.zeros(sizes.experts + 1 if pairs else 0, dtype=torch.int32)
        self._codes = Codes(sizes.step_rows * sizes.active, sizes.width)

    def pair_inputs(self, *, codes: bool) -> Activations:
        """Inputs of the experts' last product, a row a pair."""
        if codes:
            return self._codes.inputs(self.values)
        return Activations(self.values.data_ptr(), None, None, None, self.sizes.width, 0)
