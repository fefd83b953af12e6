"""Launches of gates: ``activation(gate) * up``, and what a gated branch adds to the residual."""

from __future__ import annotations

from typing import Final

import torch

from kernels.checks import KernelShapeError
from kernels.dependent import dependent
from kernels.gated.kernel import add_gated_kernel, gated_prompt_kernel, gated_step_kernel
from kernels.packed.layout import BLOCK
from kernels.rows import QuantizedRows

ACTIVATIONS: Final = ("silu", "gelu_tanh")
STEP_TILE: Final = 512
PROMPT_TILE: Final = 2048
ADD_TILE: Final = 1024
WARPS: Final = 4


def gated_step(
    gate: torch.Tensor, up: torch.Tensor, out: QuantizedRows, *, activation: str
) -> None:
    """Write ``activation(gate) * up`` as codes: ``quantized()`` of it to the bit.

    Args:
        gate, up: [rows, columns] float32 or bfloat16, the last dimension dense.
        out: at least as many rows of as many columns.
        activation: "silu" or "gelu_tanh".

    Raises:
        KernelShapeError: shapes that differ, or columns that are not whole blocks.
    """
    rows, columns = _checked(gate, up, activation)
    if out.columns != columns or out.rows < rows or columns % BLOCK:
        raise KernelShapeError(f"Codes of {out.rows} x {out.columns} for {rows} x {columns}.")
    gated_step_kernel[(rows, -(-columns // STEP_TILE))](
        gate,
        up,
        out.high,
        out.low,
        out.scales,
        out.sums,
        columns,
        gate.stride(0),
        up.stride(0),
        GELU=activation == "gelu_tanh",
        TILE=STEP_TILE,
        num_warps=WARPS,
        **dependent(gate.device),
    )


def gated_prompt(
    gate: torch.Tensor, up: torch.Tensor, out: torch.Tensor, *, activation: str
) -> None:
    """The same for prompt rows: ``out`` is [rows, columns] bfloat16, any row stride."""
    rows, columns = _checked(gate, up, activation)
    if out.shape != gate.shape or out.stride(1) != 1:
        raise KernelShapeError(f"An output of {list(out.shape)} for {rows} x {columns}.")
    gated_prompt_kernel[(rows, -(-columns // PROMPT_TILE))](
        gate,
        up,
        out,
        columns,
        gate.stride(0),
        up.stride(0),
        out.stride(0),
        GELU=activation == "gelu_tanh",
        TILE=PROMPT_TILE,
        num_warps=WARPS,
    )


def add_gated(x: torch.Tensor, value: torch.Tensor, gate: torch.Tensor) -> None:
    """``x += value * sigmoid(gate[:, 0:1])``, generated or prompt rows.

    Args:
        x: [rows, columns] float32, any row stride; updated in place.
        value: [rows, columns] float32 or bfloat16.
        gate: [rows, 1 or more] float32 or bfloat16; the first column counts.

    Raises:
        KernelShapeError: shapes that do not belong together.
    """
    rows, columns = x.shape
    if value.shape != x.shape or len(gate) != rows or x.stride(1) != 1 or value.stride(1) != 1:
        raise KernelShapeError(f"{list(value.shape)} and {list(gate.shape)} for {list(x.shape)}.")
    add_gated_kernel[(rows, -(-columns // ADD_TILE))](
        x,
        value,
        gate,
        columns,
        x.stride(0),
        value.stride(0),
        gate.stride(0),
        TILE=ADD_TILE,
        num_warps=WARPS,
        **dependent(x.device),
    )


def _checked(gate: torch.Tensor, up: torch.Tensor, activation: str) -> tuple[int, int]:
    if gate.shape != up.shape or gate.dim() != 2 or gate.stride(1) != 1 or up.stride(1) != 1:
        raise KernelShapeError(f"A gate of {list(gate.shape)} for {list(up.shape)}.")
    if activation not in ACTIVATIONS:
        raise KernelShapeError(f"The activation {activation} is none of {ACTIVATIONS}.")
    return gate.shape[0], gate.shape[1]
