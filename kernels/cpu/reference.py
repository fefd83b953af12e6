"""What each operation of the library means, in plain torch: float64, no order of additions.

This is what the tests judge by. Only ``prepared`` and ``stored_half`` are exact definitions, in
float32: rounding is what they do. Shapes are those of ``native/hearth_cpu.h``; a row is a token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

from kernels.cpu.records import GROUP, PAGE_ROWS

LARGEST_CODE: Final = 32767
HALF_LARGEST: Final = 65504.0


@dataclass(frozen=True, slots=True)
class Prepared:
    """Inputs of a product: int16 codes [row, column], float32 scales and sums [row, group]."""

    codes: torch.Tensor
    scales: torch.Tensor
    sums: torch.Tensor

    def values(self) -> torch.Tensor:
        """What the codes stand for, float64 [row, column]."""
        return self.codes.double() * self.scales.double().repeat_interleave(GROUP, dim=1)


def prepared(values: torch.Tensor) -> Prepared:
    """Groups of 32 as int16 and a scale, bit for bit.

    Args:
        values: [row, column] float32, finite, each group's largest 0 or above 1e-34.
    """
    groups = values.view(values.shape[0], -1, GROUP)
    largest = groups.abs().amax(-1)
    # Not 32767 / largest: torch multiplies a number by the reciprocal, which rounds twice.
    inverse = torch.where(largest > 0, torch.tensor(float(LARGEST_CODE)).div(largest), 0.0)
    codes = (groups * inverse.unsqueeze(-1)).round()
    scales = largest * torch.tensor(1.0 / LARGEST_CODE)
    sums = scales * codes.sum(-1)
    return Prepared(codes.to(torch.int16).view(values.shape), scales, sums)


def product(
    values: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """``values @ weight.T + bias``: [row, column] and [out, column] to [row, out]."""
    found = values.double() @ weight.double().T
    return found if bias is None else found + bias.double()


def normed(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """RMS norm over the last dimension."""
    x = x.double()
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * weight.double()


def angle_table(
    positions: torch.Tensor, frequencies: torch.Tensor, magnitude: float
) -> torch.Tensor:
    """Cosines and sines of position * frequency: [row, 2, pair]."""
    angles = torch.outer(positions.double(), frequencies.double())
    return torch.stack((angles.cos(), angles.sin()), dim=1) * magnitude


def rotated(heads: torch.Tensor, table: torch.Tensor, *, halves: bool) -> torch.Tensor:
    """Turn pairs of each head; elements past ``2 * pairs`` pass.

    Args:
        heads: [row, head, head_dim].
        table: [row, 2, pair] of ``angle_table``.
        halves: pairs are (p, p + pairs), else (2p, 2p + 1).
    """
    found = heads.double().clone()
    pairs = table.shape[-1]
    first = slice(0, pairs) if halves else slice(0, 2 * pairs, 2)
    second = slice(pairs, 2 * pairs) if halves else slice(1, 2 * pairs, 2)
    a, b = heads[..., first].double(), heads[..., second].double()
    cosine, sine = table[:, :1].double(), table[:, 1:].double()
    found[..., first] = a * cosine - b * sine
    found[..., second] = a * sine + b * cosine
    return found


def stored_half(x: torch.Tensor) -> torch.Tensor:
    """float32 as the pages keep it: fp16, the ends of its range in place of infinities."""
    return x.clamp(-HALF_LARGEST, HALF_LARGEST).half()


def attention(
    query: torch.Tensor, pages: torch.Tensor, table: list[int], position: int, window: int
) -> torch.Tensor:
    """Softmax attention of the row at ``position``.

    Args:
        query: [head, head_dim], already scaled.
        pages: [page, 2, kv_head, 256, head_dim].
        table: page ids in order of positions.
        window: rows attended, the own one included; 0 for all.

    Returns:
        [head, head_dim] float64.
    """
    first = max(0, position + 1 - window) if window else 0
    rows = [
        pages[table[at // PAGE_ROWS], :, :, at % PAGE_ROWS] for at in range(first, position + 1)
    ]
    keys, values = torch.stack(rows, dim=2).double()
    repeat = query.shape[0] // keys.shape[0]
    keys, values = (part.repeat_interleave(repeat, dim=0) for part in (keys, values))
    weights = (keys @ query.double().unsqueeze(-1)).squeeze(-1).softmax(-1)
    mixed: torch.Tensor = (weights.unsqueeze(1) @ values).squeeze(1)
    return mixed


def gated(gates: torch.Tensor, up: torch.Tensor, *, gelu: bool) -> torch.Tensor:
    """``activation(gates) * up``: SiLU, or GELU in its tanh form."""
    gates = gates.double()
    if gelu:
        activated = torch.nn.functional.gelu(gates, approximate="tanh")
    else:
        activated = torch.nn.functional.silu(gates)
    return activated * up.double()


def capped(logits: torch.Tensor, cap: float) -> torch.Tensor:
    """``cap * tanh(logits / cap)``."""
    return (logits.double() / cap).tanh() * cap


@dataclass(frozen=True, slots=True)
class DeltaWeights:
    """One layer's own numbers: [kernel, channels], [value_head], [value_head], [value_dim]."""

    taps: torch.Tensor
    decay: torch.Tensor
    time_bias: torch.Tensor
    norm: torch.Tensor


@dataclass(slots=True)
class DeltaState:
    """float64 [value_head, key_dim, value_dim] and [kernel - 1, channels]; rows change it."""

    state: torch.Tensor
    tail: torch.Tensor


@dataclass(frozen=True, slots=True)
class DeltaRow:
    """What one row's products gave.

    Attributes:
        mixed: q | k | v before the convolution, [channels].
        gate: [value_head, value_dim].
        beta, alpha: [value_head].
    """

    mixed: torch.Tensor
    gate: torch.Tensor
    beta: torch.Tensor
    alpha: torch.Tensor


def delta_row(
    row: DeltaRow, weights: DeltaWeights, state: DeltaState, key_heads: int, *, tiled: bool
) -> torch.Tensor:
    """One row of the gated delta rule, [value_head, value_dim]; ``state`` becomes the next one.

    Both eps are 1e-6.
    """
    value_heads, key_dim, value_dim = state.state.shape
    window = torch.cat([state.tail, row.mixed.double()[None]])
    state.tail = window[1:]
    x = torch.nn.functional.silu((window * weights.taps.double()).sum(0))
    keys = key_heads * key_dim
    q, k = x[:keys].view(-1, key_dim), x[keys : 2 * keys].view(-1, key_dim)
    v = x[2 * keys :].view(-1, value_dim)
    q, k = (part / (part.square().sum(-1, keepdim=True) + 1e-6).sqrt() for part in (q, k))
    shared = value_heads // key_heads
    serving = [h % key_heads if tiled else h // shared for h in range(value_heads)]
    q, k = q[serving] * key_dim**-0.5, k[serving]
    soft = torch.nn.functional.softplus(row.alpha.double() + weights.time_bias.double())
    decayed = state.state * (weights.decay.double() * soft).exp()[:, None, None]
    change = row.beta.double().sigmoid()[:, None] * (v - torch.einsum("hk,hkv->hv", k, decayed))
    state.state = decayed + torch.einsum("hk,hv->hkv", k, change)
    out = normed(torch.einsum("hk,hkv->hv", q, state.state), weights.norm, 1e-6)
    return out * torch.nn.functional.silu(row.gate.double())


def routed(
    logits: torch.Tensor, active: int, scale: float, scales: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Each row's experts in ascending order, and their weights in float64: [row, active] both."""
    likely = (logits.double() * scale).softmax(-1)
    chosen = (
        likely.sort(dim=-1, descending=True, stable=True).indices[:, :active].sort(dim=-1).values
    )
    weights = likely.gather(-1, chosen)
    weights /= weights.sum(-1, keepdim=True)
    return chosen, weights if scales is None else weights * scales.double()[chosen]
